/**
 * The statements that check and write the rows of one table, each for any number of rows: one array per column. The texts depend only on
 * the table, so each is prepared once per connection.
 * Every row gets the revision that the transaction drew (transaction.ts keeps it in the setting `comity.rev`, which ends with the
 * transaction: outside of one these statements fail) less those of later units in the batch. If an expected row is missing, `comity_expect`
 * or the primary key fails the transaction, so the client need not wait for a count.
 * A plan is made once, perhaps for an empty table, and kept while the table grows. So the texts force the planner to look each row up by
 * index: an array of ids to compare with beside the rows to join, or a subquery per row whose LIMIT prevents a join
 * (test/postgres/commit/plans.test.ts).
 */
import type { Field } from '../../../model/field.ts';
import { kindOf, type ValueKind } from '../../field-value.ts';
import { rowColumns } from '../../kept-row.ts';
import { quoteName } from '../../quote-name.ts';
import { eventsTable } from '../../store.ts';
import { valueSql } from '../compile/value.ts';
import { quoteText } from '../quote-text.ts';
import type { Layout } from '../schema/schema-layout.ts';

/** A reference field; tables are given by their place in the list. */
export type Naming = {
  readonly field: Field;
  /** The table that has the field. */
  readonly from: number;
  /** The table that the field refers to. */
  readonly to: number;
};

/** The texts; each comment lists the arrays in the order of the parameters. */
export type TableStatements = {
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
  /** For each unique field: the undeleted rows that hold one of the values, with the value. */
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

export function tableStatements(layout: Layout, surroundings: Surroundings): TableStatements {
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
    holders: table.unique.map(
      (field) =>
        `SELECT id, ${valueSql(field)} FROM ${name} WHERE ${valueSql(field)} = ANY($1::${arrayTypes[kindOf(field)]}) AND deleted_at IS NULL`,
    ),
    namings: surroundings.dependants.map((naming) => {
      const { from, value, others } = namingSql(surroundings.layouts, naming);
      return `SELECT ${value}, count(*) FROM ${from} WHERE ${value} = ANY($1::text[]) AND deleted_at IS NULL${others(value)} GROUP BY 1`;
    }),
  };
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
