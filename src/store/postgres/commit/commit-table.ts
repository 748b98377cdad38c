/** The parts of each table that a commit needs: counter, references, dependants and statements. Built once when the store opens. */
import type { Field } from '../../../model/field.ts';
import { kindOf, type ValueKind } from '../../field-value.ts';
import type { ProvisionalRevisions } from '../../lines.ts';
import { quoteName } from '../../sql-text.ts';
import {
  type Change,
  type EventEntry,
  eventsTable,
  type NextRow,
  rowColumns,
  type Unit,
} from '../../store.ts';
import { quoteText, valueSql } from '../compile/expressions.ts';
import type { Bindable, Call } from '../connection/connection.ts';
import type { Layout, TableNumbers } from '../schema/schema-layout.ts';

export type CommitTable = {
  readonly layout: Layout;
  /** Index in the list of tables. */
  readonly place: number;
  readonly number: number;
  readonly searched: boolean;
  readonly references: ReadonlyMap<string, Naming>;
  /** References from any table to this one, in the order of checking; they block the removal of a row. */
  readonly dependants: readonly Naming[];
  readonly statements: TableStatements;
};

export type Placed = { readonly table: CommitTable; readonly change: Change };

export type Work = {
  readonly unit: Unit;
  readonly changes: readonly Placed[];
};

export function commitTables(
  layouts: readonly Layout[],
  numbers: TableNumbers,
  schema: string,
): readonly CommitTable[] {
  const places = new Map(layouts.map((layout, place) => [layout.table.name, place]));
  const namings = layouts.flatMap(({ table }, from) =>
    table.references.map((reference): Naming => {
      const to = places.get(reference.table);
      if (to === undefined) throw new TypeError(`no table is named ${reference.table}`);
      return { field: reference.field, from, to };
    }),
  );
  return layouts.map((layout, place) => {
    const { name } = layout.table;
    const number = numbers.get(name);
    if (number === undefined) throw new TypeError(`table ${name} has no counter`);
    const dependants = namings.filter(({ to }) => to === place);
    return {
      layout,
      place,
      number,
      searched: layout.table.searched,
      references: new Map(
        namings.filter(({ from }) => from === place).map((naming) => [naming.field.name, naming]),
      ),
      dependants,
      statements: tableStatements(layout, { layouts, dependants, schema }),
    };
  });
}

export function eventsOf(tables: readonly CommitTable[]): CommitTable {
  const events = tables.find(({ layout }) => layout.table.name === eventsTable);
  if (events === undefined) throw new TypeError('the layouts lack the table of events');
  return events;
}

/**
 * Finds what a unit concerns. Provisional revisions that it expects are replaced by those that the units got; the ones that stay are of the
 * same batch, or of failed units.
 * @throws TypeError for an undeclared table or reference, and for a change that writes an event: units only append and remove events
 */
export function resolveUnit(
  unit: Unit,
  byName: ReadonlyMap<string, CommitTable>,
  revisions: Pick<ProvisionalRevisions, 'resolve'>,
): Work {
  const changes: Placed[] = [];
  for (const change of unit.changes) {
    const { table: name, expect, next } = change;
    const table = byName.get(name);
    if (table === undefined) throw new TypeError(`no table is named ${name}`);
    const isProvisional = 'rev' in expect && expect.rev < 0;
    const expected = isProvisional ? { ...change, expect: { rev: revisions.resolve(expect.rev) } } : change;
    changes.push({ table, change: expected });
    if (next === null) continue;
    if (name === eventsTable) throw new TypeError('events are appended, not put');
    for (const { field } of next.references) {
      if (!table.references.has(field)) throw new TypeError(`${field} is not a reference of ${name}`);
    }
  }
  return { unit, changes };
}

/*
 * The statements that check and write the rows of one table, each for any number of rows: one array per column. The texts depend only on
 * the table, so each is prepared once per connection.
 * Every row gets the revision that the transaction drew (transaction.ts keeps it in the setting `comity.rev`, which ends with the
 * transaction: outside of one these statements fail) less those of later units in the batch. If an expected row is missing, `comity_expect`
 * or the primary key fails the transaction, so the client need not wait for a count.
 * A plan is made once, perhaps for an empty table, and kept while the table grows. So the texts force the planner to look each row up by
 * index: an array of ids to compare with beside the rows to join, or a subquery per row whose LIMIT prevents a join
 * (test/postgres/commit/plans.test.ts).
 */

/** A reference field; tables are given by their place in the list. */
export type Naming = {
  readonly field: Field;
  /** The table that has the field. */
  readonly from: number;
  /** The table that the field refers to. */
  readonly to: number;
};

/** The texts; each comment lists the arrays in the order of the parameters. */
type TableStatements = {
  /** $1 units of the batch, $2 separator of documents, then ids, places, docs, owners, created, updated, deleted[, search]. */
  readonly insert: string;
  /** As `insert`, with the expected revisions after the ids. */
  readonly update: string;
  /** Ids and expected revisions. */
  readonly remove: string;
  /** As `insert`, for ids, places, types, collections, owners, docs, created; empty for other tables. */
  readonly append: string;
  /** Fails unless every id is free. */
  readonly expectAbsent: string;
  /** Ids and revisions: fails unless each row has its revision. */
  readonly expectStanding: string;
  /** Fails unless every id is that of an undeleted row. */
  readonly expectLive: string;
  /** Fails if an undeleted row other than itself refers to one of the ids; empty if the table has no dependants. */
  readonly expectUnnamed: string;
  /** Rows by ids, in the columns that `rowOf` reads. */
  readonly current: string;
  /** Those of the ids that undeleted rows have. */
  readonly live: string;
  /** For each list of unique fields: the undeleted rows that hold some of the values, with them; an array for each field. */
  readonly holders: readonly string[];
  /** For each dependant: the number of other undeleted rows that refer to each of the ids. */
  readonly namings: readonly string[];
};

type Surroundings = {
  readonly layouts: readonly Layout[];
  readonly dependants: readonly Naming[];
  readonly schema: string;
};

/** The last revision that this transaction drew; every writing statement reads it, and so fails outside of a transaction. */
export const drawnRev = `(SELECT current_setting('comity.rev')::bigint)`;
const revOfPlace = `${drawnRev} - $1::int + put.place`;

function tableStatements(layout: Layout, surroundings: Surroundings): TableStatements {
  const { name, table } = layout;
  const expect = expectation(surroundings.schema);
  const columns = ['doc', 'owner', 'created_at', 'updated_at', 'deleted_at'];
  const types = ['text', 'text', 'bigint', 'bigint', 'bigint'];
  if (table.searched) {
    columns.push('search');
    types.push('text');
  }
  const put = columns.map((column) => `put.${column}`).join(', ');
  const insertFrom = unnest(3, ['id', 'place', ...columns], ['text', 'int', ...types]);
  const updateFrom = unnest(3, ['id', 'expected', 'place', ...columns], ['text', 'bigint', 'int', ...types]);
  const removeFrom = unnest(1, ['id', 'expected'], ['text', 'bigint']);
  const set = columns.map((column) => `${column} = put.${column}`).join(', ');
  return {
    insert: `INSERT INTO ${name} (id, rev, ${columns.join(', ')}) SELECT put.id, ${revOfPlace}, ${put} FROM ${insertFrom}`,
    update: `WITH made AS (UPDATE ${name} AS standing SET rev = ${revOfPlace}, ${set} FROM ${updateFrom} WHERE standing.id = ANY($3::text[]) AND standing.id = put.id AND standing.rev = put.expected RETURNING 1) SELECT ${expect('(SELECT count(*) FROM made)', 'cardinality($3::text[])', `${table.name}: update`)}`,
    remove: `WITH made AS (DELETE FROM ${name} AS standing USING ${removeFrom} WHERE standing.id = ANY($1::text[]) AND standing.id = put.id AND standing.rev = put.expected AND put.expected < ${drawnRev} RETURNING 1) SELECT ${expect('(SELECT count(*) FROM made)', 'cardinality($1::text[])', `${table.name}: remove`)}`,
    append: table.name === eventsTable ? appendSql(name) : '',
    expectAbsent: `SELECT ${expect(`(SELECT count(*) FROM ${name} WHERE id = ANY($1::text[]))`, '0', `${table.name}: absent`)}`,
    expectStanding: `SELECT ${expect(`(SELECT count(*) FROM ${removeFrom}, LATERAL (SELECT FROM ${name} WHERE id = put.id AND rev = put.expected LIMIT 1) AS found)`, 'cardinality($1::text[])', `${table.name}: standing`)}`,
    expectLive: `SELECT ${expect(`(SELECT count(*) FROM unnest($1::text[]) AS target (named), LATERAL (SELECT FROM ${name} WHERE id = target.named AND deleted_at IS NULL LIMIT 1) AS found)`, 'cardinality($1::text[])', `${table.name}: live`)}`,
    expectUnnamed: expectUnnamed(surroundings, table.name),
    current: `SELECT ${rowColumns} FROM ${name} WHERE id = ANY($1::text[])`,
    live: `SELECT id FROM ${name} WHERE id = ANY($1::text[]) AND deleted_at IS NULL`,
    holders: table.unique.map((fields) => holdersSql(layout, fields)),
    namings: surroundings.dependants.map((naming) => {
      const { from, value, others } = namingSql(surroundings.layouts, naming);
      return `SELECT ${value}, count(*) FROM ${from} WHERE ${value} = ANY($1::text[]) AND deleted_at IS NULL${others(value)} GROUP BY 1`;
    }),
  };
}

function holdersSql({ name, schema }: Layout, fields: readonly Field[]): string {
  const values = fields.map((field) => valueSql(field, '', schema));
  const arrays = fields.map((field, at) => `$${at + 1}::${arrayTypes[kindOf(field)]}`).join(', ');
  const columns = fields.map((_, at) => `v${at}`).join(', ');
  const equal = values.map((value, at) => `${value} = wanted.v${at}`).join(' AND ');
  return `SELECT found.id, ${columns} FROM unnest(${arrays}) AS wanted (${columns}), LATERAL (SELECT id FROM ${name} WHERE ${equal} AND deleted_at IS NULL LIMIT 1) AS found`;
}

function appendSql(name: string): string {
  const columns = ['type', 'collection', 'owner', 'document', 'former', 'doc', 'created_at'];
  const types = ['text', 'text', 'text', 'text', 'text', 'text', 'bigint'];
  const from = unnest(3, ['id', 'place', ...columns], ['text', 'int', ...types]);
  const put = columns.map((column) => `put.${column}`).join(', ');
  return `INSERT INTO ${name} (id, rev, ${columns.join(', ')}, updated_at) SELECT put.id, ${revOfPlace}, ${put}, put.created_at FROM ${from}`;
}

function expectUnnamed(surroundings: Surroundings, tableName: string): string {
  const expect = expectation(surroundings.schema);
  const checks = surroundings.dependants.map((naming) => {
    const { from, value, others } = namingSql(surroundings.layouts, naming);
    const named = `SELECT FROM ${from} WHERE ${value} = leaving.named AND deleted_at IS NULL${others('leaving.named')} LIMIT 1`;
    return expect(
      `(SELECT count(*) FROM unnest($1::text[]) AS leaving (named), LATERAL (${named}) AS found)`,
      '0',
      `${tableName}: named`,
    );
  });
  return checks.length === 0 ? '' : `SELECT ${checks.join(', ')}`;
}

/** A reference to itself does not block the removal of a row. */
function namingSql(
  layouts: readonly Layout[],
  { field, from, to }: Naming,
): { readonly from: string; readonly value: string; readonly others: (named: string) => string } {
  return {
    from: layouts[from]?.name ?? '',
    value: valueSql(field),
    others: (named) => (from === to ? ` AND id <> ${named}` : ''),
  };
}

/**
 * Joins the arrays, from the parameter `first` on, to rows. Documents are one text separated by $2: as elements of an array literal each of
 * their quotes would be escaped, which took more than the rest of the row (5 of 8 µs of the client's time).
 */
function unnest(first: number, columns: readonly string[], types: readonly string[]): string {
  const arrays = types.map((type, at) => {
    const parameter = `$${first + at}`;
    if (columns[at] === 'doc') return `string_to_array(${parameter}::text, $2::text)`;
    // No JSON text is empty: the empty one stands for null.
    if (columns[at] === 'former') return `string_to_array(${parameter}::text, $2::text, '')`;
    return `${parameter}::${type}[]`;
  });
  return `unnest(${arrays.join(', ')}) AS put (${columns.join(', ')})`;
}

function expectation(schema: string): (actual: string, wanted: string, what: string) => string {
  const name = `${quoteName(schema)}.comity_expect`;
  return (actual, wanted, what) => `${name}(${actual}, ${wanted}, ${quoteText(what)})`;
}

/** Types of arrays for `= ANY`: numbers as the index holds them. A field without an order has no unique index. */
const arrayTypes: Readonly<Record<ValueKind, string>> = {
  text: 'text[]',
  instant: 'text[]',
  number: 'float8[]',
  boolean: 'int[]',
  time: 'bigint[]',
  none: 'jsonb[]',
};

export function isLookedUp(field: Field): boolean {
  return kindOf(field) !== 'none';
}

/*
 * Rows to write or check, collected by table and kind, and the calls for them: one per table and kind, however many rows there are.
 * Within one collection rows are inserted before others are updated or removed, so that a unique value freed by one row and taken by
 * another fails the transaction: which came first is decided only by judging.
 */

/** The order of the calls where kinds depend on each other. */
type Order = 'checks first' | 'removals first';

export class Writes {
  readonly #tables = new Map<CommitTable, TableWrites>();

  of(table: CommitTable): TableWrites {
    let writes = this.#tables.get(table);
    if (writes === undefined) {
      writes = new TableWrites(table);
      this.#tables.set(table, writes);
    }
    return writes;
  }

  /** @param units revisions that the batch draws */
  addCalls(calls: Call[], units: number, order: Order): void {
    const all = [...this.#tables.values()];
    if (order === 'removals first') {
      for (const writes of all) writes.addRemovals(calls);
      for (const writes of all) writes.addUpdates(calls, units);
      for (const writes of all) writes.addInserts(calls, units);
      return;
    }
    for (const writes of all) writes.addChecks(calls);
    for (const writes of all) writes.addInserts(calls, units);
    for (const writes of all) writes.addUpdates(calls, units);
    for (const writes of all) writes.addRemovals(calls);
  }
}

class Columns {
  readonly ids: string[] = [];
  readonly places: number[] = [];
  readonly docs: string[] = [];
  readonly owners: (string | null)[] = [];
  readonly created: number[] = [];
  readonly updated: number[] = [];
  readonly deleted: (number | null)[] = [];
  readonly searches: (string | null)[] = [];

  add(id: string, next: NextRow, place: number): void {
    this.ids.push(id);
    this.places.push(place);
    this.docs.push(next.doc);
    this.owners.push(next.owner);
    this.created.push(next.createdAt);
    this.updated.push(next.updatedAt);
    this.deleted.push(next.deletedAt);
    this.searches.push(next.search);
  }

  rest(searched: boolean, separator: string): Bindable[] {
    const docs = this.docs.join(separator);
    const rest = [this.places, docs, this.owners, this.created, this.updated, this.deleted];
    return searched ? [...rest, this.searches] : rest;
  }
}

class TableWrites {
  readonly #table: CommitTable;
  readonly #inserts = new Columns();
  readonly #updates = new Columns();
  readonly #expected: number[] = [];
  readonly #removed: string[] = [];
  readonly #removedRevs: number[] = [];
  readonly #absent: string[] = [];
  readonly #standing: string[] = [];
  readonly #standingRevs: number[] = [];
  readonly #named = new Set<string>();
  readonly #leaving: string[] = [];

  constructor(table: CommitTable) {
    this.#table = table;
  }

  /** @param place of the unit in the batch, from 1 */
  insert(id: string, next: NextRow, place: number): void {
    this.#inserts.add(id, next, place);
  }

  update(id: string, expected: number, next: NextRow, place: number): void {
    this.#updates.add(id, next, place);
    this.#expected.push(expected);
  }

  remove(id: string, expected: number): void {
    this.#removed.push(id);
    this.#removedRevs.push(expected);
  }

  expectAbsent(id: string): void {
    this.#absent.push(id);
  }

  /** For a row that the unit depends on and leaves as it is. */
  expectStanding(id: string, expected: number): void {
    // Many units of a batch depend on one row, such as those that send webhooks.
    if (this.#standing.at(-1) === id && this.#standingRevs.at(-1) === expected) return;
    this.#standing.push(id);
    this.#standingRevs.push(expected);
  }

  /** For a reference to a row of this table. */
  expectLive(id: string): void {
    this.#named.add(id);
  }

  /** For a row that is removed, softly or not. */
  expectUnnamed(id: string): void {
    this.#leaving.push(id);
  }

  addChecks(calls: Call[]): void {
    const { statements } = this.#table;
    if (this.#absent.length > 0) calls.push({ sql: statements.expectAbsent, values: [this.#absent] });
    if (this.#standing.length > 0) {
      calls.push({ sql: statements.expectStanding, values: [this.#standing, this.#standingRevs] });
    }
    if (this.#named.size > 0) calls.push({ sql: statements.expectLive, values: [[...this.#named]] });
    if (this.#leaving.length > 0) calls.push({ sql: statements.expectUnnamed, values: [this.#leaving] });
  }

  addInserts(calls: Call[], units: number): void {
    const { statements, searched } = this.#table;
    if (this.#inserts.ids.length === 0) return;
    const separator = separatorOf(this.#inserts.docs);
    const rest = this.#inserts.rest(searched, separator);
    calls.push({ sql: statements.insert, values: [units, separator, this.#inserts.ids, ...rest] });
  }

  addUpdates(calls: Call[], units: number): void {
    const { statements, searched } = this.#table;
    if (this.#updates.ids.length === 0) return;
    const separator = separatorOf(this.#updates.docs);
    const rest = this.#updates.rest(searched, separator);
    const values = [units, separator, this.#updates.ids, this.#expected, ...rest];
    calls.push({ sql: statements.update, values });
  }

  addRemovals(calls: Call[]): void {
    if (this.#removed.length === 0) return;
    calls.push({ sql: this.#table.statements.remove, values: [this.#removed, this.#removedRevs] });
  }
}

/** The events of a batch, written after all changes. */
export class Appends {
  readonly #ids: string[] = [];
  readonly #places: number[] = [];
  readonly #types: string[] = [];
  readonly #collections: string[] = [];
  readonly #owners: (string | null)[] = [];
  readonly #docs: string[] = [];
  readonly #documents: (string | null)[] = [];
  readonly #formers: string[] = [];
  readonly #created: number[] = [];

  add(event: EventEntry, place: number): void {
    this.#ids.push(event.id);
    this.#places.push(place);
    this.#types.push(event.type);
    this.#collections.push(event.collection);
    this.#owners.push(event.owner);
    this.#documents.push(event.document ?? null);
    this.#formers.push(event.former ?? '');
    this.#docs.push(event.doc);
    this.#created.push(event.createdAt);
  }

  addCalls(calls: Call[], units: number, events: CommitTable): void {
    if (this.#ids.length === 0) return;
    const separator = separatorOf([...this.#docs, ...this.#formers]);
    calls.push({
      sql: events.statements.append,
      values: [
        units,
        separator,
        this.#ids,
        this.#places,
        this.#types,
        this.#collections,
        this.#owners,
        this.#documents,
        this.#formers.join(separator),
        this.#docs.join(separator),
        this.#created,
      ],
    });
  }
}

/** JSON contains control characters only escaped, but to the store a document is any text. */
const unitSeparator = '\u001f';

/** A text that occurs in none of the documents and cannot overlap itself. */
export function separatorOf(docs: readonly string[]): string {
  let separator = unitSeparator;
  for (let attempt = 1; docs.some((doc) => doc.includes(separator)); attempt += 1) {
    separator = `${unitSeparator}${attempt}\u001e`;
  }
  return separator;
}
