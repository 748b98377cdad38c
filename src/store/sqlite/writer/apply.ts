/**
 * Commits the batches of one or more stores, one for each store, in one transaction. The first attempt uses no savepoints. If a unit is
 * refused after it wrote something, or SQLite rejects its values, the transaction starts over with a savepoint around every unit: that is
 * rare, and cheaper than a savepoint (two statements) for every unit.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { purgedCounter, purgedCounterName } from '../../revision.ts';
import { quoteName } from '../../sql-text.ts';
import { type Commit, eventsTable, rowColumns, rowOf } from '../../store.ts';
import { valueSql } from '../compile/value.ts';
import { type Cells, isMistake, messageOf, resultCode } from '../connection.ts';
import type { Layout } from '../sqlite-schema.ts';
import {
  absentRev,
  actPuts,
  actStays,
  type EncodedUnits,
  noRevision,
  type Refusal,
  UnitReader,
} from './writer-messages.ts';

type Outcome = {
  readonly lastRev: number;
  /** For each batch. */
  readonly results: readonly { readonly firstRev: number; readonly refusals: readonly Refusal[] }[];
  /** Numbers of the tables that were changed. */
  readonly changed: readonly number[];
};

/** @param rev the last revision used before @throws SQLite's error if storage fails; nothing is committed then */
export function commitBatches(
  database: DatabaseSync,
  statements: Statements,
  batches: readonly EncodedUnits[],
  rev: number,
): Outcome {
  try {
    const bare = tryBatches(database, statements, batches, rev, false);
    if (bare !== undefined) return bare;
    database.exec('ROLLBACK');
    const careful = tryBatches(database, statements, batches, rev, true);
    if (careful === undefined) throw new Error('a batch with savepoints must not start over');
    return careful;
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

/** @returns undefined if the transaction must start over with savepoints */
function tryBatches(
  database: DatabaseSync,
  statements: Statements,
  batches: readonly EncodedUnits[],
  before: number,
  careful: boolean,
): Outcome | undefined {
  const touched = new Map<number, number>();
  const results: Outcome['results'][number][] = [];
  let rev = before;
  database.exec('BEGIN IMMEDIATE');
  for (const batch of batches) {
    const applied = applyBatch(database, statements, batch, { before: rev, touched, careful });
    if (applied === undefined) return undefined;
    results.push({ firstRev: rev + 1, refusals: applied.refusals });
    rev = applied.lastRev;
  }
  if (rev > before) {
    statements.setCounter.run(rev, 0);
    for (const [table, last] of touched) statements.setCounter.run(last, table);
  }
  database.exec('COMMIT');
  return { lastRev: rev, results, changed: [...touched.keys()] };
}

type Applying = { readonly before: number; readonly touched: Map<number, number>; readonly careful: boolean };

function applyBatch(
  database: DatabaseSync,
  statements: Statements,
  batch: EncodedUnits,
  { before, touched, careful }: Applying,
): { readonly lastRev: number; readonly refusals: readonly Refusal[] } | undefined {
  const reader = new UnitReader(batch);
  // Each store numbers its provisional revisions itself.
  const revisions = new Map<number, number>();
  const effects: Effects = { touched, written: 0, revisions };
  const refusals: Refusal[] = [];
  let rev = before;
  for (let unit = 0; unit < batch.units; unit += 1) {
    reader.beginUnit();
    if (careful) database.exec('SAVEPOINT unit');
    const own: Effects = careful ? { touched: new Map(), written: 0, revisions } : effects;
    const provisional = reader.number();
    const written = own.written;
    const refusal = applyOne(statements, reader, unit, rev + 1, own, careful);
    if (refusal === 'start over') return undefined;
    if (refusal === undefined) {
      rev += 1;
      if (provisional !== noRevision) revisions.set(provisional, rev);
    } else {
      if (!careful && own.written > written) return undefined;
      refusals.push(refusal);
      reader.endUnit();
      if (careful) database.exec('ROLLBACK TO unit');
    }
    if (careful) {
      database.exec('RELEASE unit');
      if (refusal === undefined) {
        for (const [table, last] of own.touched) touched.set(table, last);
      }
    }
  }
  return { lastRev: rev, refusals };
}

function applyOne(
  statements: Statements,
  reader: UnitReader,
  unit: number,
  rev: number,
  effects: Effects,
  careful: boolean,
): Refusal | 'start over' | undefined {
  try {
    const refused = applyUnit(statements, reader, rev, effects);
    return refused === undefined ? undefined : { unit, commit: refused };
  } catch (error) {
    if (!isMistake(error)) throw error;
    if (!careful) return 'start over';
    return { unit, error: error instanceof Error ? new Error(error.message) : new Error(String(error)) };
  }
}

type Refused = Exclude<Commit, { outcome: 'committed' }>;

/** SQLITE_CONSTRAINT_UNIQUE */
/*
 * Applies one unit within the current transaction. In the common case every change is one compare-and-swap statement: an INSERT that does
 * nothing on an existing id, an UPDATE or DELETE with the expected revision. Only if it changes no row is the reason looked up. A refusal
 * does not undo earlier statements of the unit; the caller does.
 */

const uniqueViolation = 2067;

type Effects = {
  /** Counter numbers of the changed tables, with the revision. */
  readonly touched: Map<number, number>;
  /** Statements that changed a row; above 0, a refusal must be undone. */
  written: number;
  /** Revisions of earlier units of the batch, by their provisional ones. */
  readonly revisions: ReadonlyMap<number, number>;
};

/** @returns undefined if the unit was applied */
function applyUnit(
  statements: Statements,
  reader: UnitReader,
  rev: number,
  effects: Effects,
): Refused | undefined {
  const changes = reader.number();
  for (let change = 0; change < changes; change += 1) {
    const table = statements.at(reader.number());
    if (table === undefined) throw new TypeError('a change names an unknown table');
    const refused = applyChange(statements, table, reader, change, rev, effects);
    if (refused !== undefined) return refused;
  }
  const events = reader.number();
  for (let event = 0; event < events; event += 1) {
    const id = reader.text();
    const { changes: inserted } = statements.insertEvent.run(
      id,
      reader.text(),
      reader.text(),
      reader.textOrNull(),
      reader.textOrNull(),
      reader.textOrNull(),
      reader.text(),
      reader.number(),
      rev,
    );
    // An event with a known id is reported as a change that expected no row, after the unit's changes.
    if (inserted === 0) return superseded(statements.events, changes + event, id);
    effects.written += 1;
  }
  if (events > 0) {
    effects.touched.set(statements.events.number, rev);
  }
  return undefined;
}

function applyChange(
  statements: Statements,
  table: TableStatements,
  reader: UnitReader,
  change: number,
  rev: number,
  effects: Effects,
): Refused | undefined {
  const named = reader.number();
  const expected = effects.revisions.get(named) ?? named;
  const act = reader.number();
  const id = reader.text();
  if (act === actStays) return unexpected(table, change, id, expected);
  if (act !== actPuts) {
    if (expected === absentRev)
      return currentOf(table, id) === undefined ? undefined : superseded(table, change, id);
    if (table.dependants.length > 0) {
      const refused = refuseRemoval(table, change, id, expected);
      if (refused !== undefined) return refused;
    }
    if (table.remove.run(id, expected).changes === 0) return superseded(table, change, id);
  } else {
    const refused = put(statements, table, reader, change, id, expected, rev);
    if (refused !== undefined) return refused;
  }
  effects.written += 1;
  effects.touched.set(table.number, rev);
  return undefined;
}

function put(
  statements: Statements,
  table: TableStatements,
  reader: UnitReader,
  change: number,
  id: string,
  expected: number,
  rev: number,
): Refused | undefined {
  const createdAt = reader.number();
  const updatedAt = reader.number();
  const deletedAt = reader.numberOrNull();
  const references = reader.number();
  const doc = reader.text();
  const owner = reader.textOrNull();
  const search = reader.textOrNull();
  for (let index = 0; index < references; index += 1) {
    const field = reader.text();
    const target = reader.text();
    if (deletedAt !== null || targetExists(statements, table, field, target, id)) continue;
    return unexpected(table, change, id, expected) ?? { outcome: 'dangling', change, field };
  }
  if (deletedAt !== null && expected !== absentRev && table.dependants.length > 0) {
    const refused = refuseRemoval(table, change, id, expected);
    if (refused !== undefined) return refused;
  }
  const values = [doc, owner, createdAt, updatedAt, deletedAt, rev];
  if (table.searched) values.push(search);
  try {
    const { changes } =
      expected === absentRev ? table.insert.run(...values, id) : table.update.run(...values, id, expected);
    return changes === 0 ? superseded(table, change, id) : undefined;
  } catch (error) {
    const fields = takenFields(table, error);
    if (fields === undefined) throw error;
    return unexpected(table, change, id, expected) ?? { outcome: 'taken', change, fields };
  }
}

/** True if the referenced row exists; a new row may refer to itself. */
function targetExists(
  statements: Statements,
  table: TableStatements,
  field: string,
  target: string,
  id: string,
): boolean {
  const position = table.references.get(field);
  if (position === undefined)
    throw new TypeError(`${field} is not a reference of ${table.layout.table.name}`);
  const other = statements.at(position);
  if (other === undefined) return false;
  return (other === table && target === id) || other.live.get(target) !== undefined;
}

/** Refuses to remove a row, softly or not, to which undeleted rows refer. A softly deleted row was checked before. */
function refuseRemoval(
  table: TableStatements,
  change: number,
  id: string,
  expected: number,
): Refused | undefined {
  const current = currentOf(table, id);
  if (current === undefined || current[1] !== expected) return superseded(table, change, id);
  if (current[6] !== null) return undefined;
  for (const dependant of table.dependants) {
    const count = (dependant.count.get(id) as unknown as readonly number[])[0] ?? 0;
    if (count > 0)
      return { outcome: 'depended-on', change, table: dependant.table, field: dependant.field, count };
  }
  return undefined;
}

/** Reports a stale revision before any other reason for refusal. */
function unexpected(
  table: TableStatements,
  change: number,
  id: string,
  expected: number,
): Refused | undefined {
  const current = currentOf(table, id);
  const rev = current === undefined ? absentRev : current[1];
  return rev === expected ? undefined : superseded(table, change, id);
}

function superseded(table: TableStatements, change: number, id: string): Refused {
  const current = currentOf(table, id);
  return { outcome: 'superseded', change, current: current === undefined ? undefined : rowOf(current) };
}

function currentOf(table: TableStatements, id: string): Cells | undefined {
  return table.current.get(id) as unknown as Cells | undefined;
}

/** SQLite names the index in the message: `UNIQUE constraint failed: index 'products.unique["sku"]'`. */
function takenFields(table: TableStatements, error: unknown): readonly string[] | undefined {
  if (!isMistake(error) || resultCode(error) !== uniqueViolation) return undefined;
  const message = messageOf(error);
  const start = message.indexOf(`index '`);
  if (start >= 0) {
    const index = message.slice(start + 7, message.lastIndexOf(`'`)).replaceAll(`''`, `'`);
    const fields = table.layout.uniqueFields.get(index);
    if (fields !== undefined) return fields.map(({ name }) => name);
  }
  // For a unique field with a column of its own, SQLite names the column.
  for (const [index, fields] of table.layout.uniqueFields) {
    const key = table.layout.indexes.find(({ name }) => name === index)?.keys[0];
    if (key !== undefined && message.endsWith(`.${key}`)) return fields.map(({ name }) => name);
  }
  return undefined;
}

/*
 * The writer's prepared statements; all return arrays. Those of a table are prepared when it is first written: to prepare them all took a
 * fifth of the start of the thread, and most tables of most programs are never written.
 */

/** A reference from another table to this one, which blocks the removal of a row. */
type Dependant = { readonly table: string; readonly field: string; readonly count: StatementSync };

type TableStatements = {
  readonly layout: Layout;
  /** Row of comity_counters. */
  readonly number: number;
  readonly searched: boolean;
  readonly insert: StatementSync;
  readonly update: StatementSync;
  readonly remove: StatementSync;
  readonly current: StatementSync;
  /** Finds an undeleted row. */
  readonly live: StatementSync;
  /** Returns the revision of the row if it was removed. */
  readonly removeOld: StatementSync;
  readonly dependants: readonly Dependant[];
  /** Index of the target table by reference field. */
  readonly references: ReadonlyMap<string, number>;
};

export type Statements = {
  /** By the position of the table's layout. */
  at(position: number): TableStatements | undefined;
  /** By the table's name. */
  of(table: string): TableStatements | undefined;
  readonly insertEvent: StatementSync;
  readonly events: TableStatements;
  readonly setCounter: StatementSync;
  /** Raises the revision of the purged events. */
  readonly raisePurged: StatementSync;
};

export function prepareStatements(
  database: DatabaseSync,
  layouts: readonly Layout[],
  numbers: ReadonlyMap<string, number>,
): Statements {
  const prepare = (sql: string): StatementSync => {
    const statement = database.prepare(sql);
    statement.setReturnArrays(true);
    return statement;
  };
  const prepared = new Map<number, TableStatements>();
  const at = (position: number): TableStatements | undefined => {
    const layout = layouts[position];
    if (layout === undefined) return undefined;
    let found = prepared.get(position);
    if (found === undefined) {
      found = prepareTable(prepare, layout, layouts, numbers);
      prepared.set(position, found);
    }
    return found;
  };
  const of = (table: string): TableStatements | undefined => at(positionOf(layouts, table));
  const events = of(eventsTable);
  if (events === undefined) throw new TypeError('the layouts lack the table of events');
  return {
    at,
    of,
    events,
    insertEvent: prepare(
      `INSERT INTO ${quoteName(eventsTable)} (id, type, collection, owner, document, former, doc, created_at, updated_at, rev)
       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9) ON CONFLICT (id) DO NOTHING`,
    ),
    setCounter: prepare('UPDATE comity_counters SET rev = ? WHERE n = ?'),
    raisePurged: prepare(
      `INSERT INTO comity_counters (n, name, rev) VALUES (${purgedCounter}, '${purgedCounterName}', ?)
       ON CONFLICT (n) DO UPDATE SET rev = max(rev, excluded.rev)`,
    ),
  };
}

function positionOf(layouts: readonly Layout[], table: string): number {
  return layouts.findIndex((layout) => layout.table.name === table);
}

function prepareTable(
  prepare: (sql: string) => StatementSync,
  layout: Layout,
  layouts: readonly Layout[],
  numbers: ReadonlyMap<string, number>,
): TableStatements {
  const { name, table } = layout;
  const columns = ['doc', 'owner', 'created_at', 'updated_at', 'deleted_at', 'rev'];
  if (table.searched) columns.push('search');
  const marks = columns.map(() => '?').join(', ');
  // Units append and remove events, but never insert them like rows: these statements lack the columns type and collection.
  const insertable = table.name !== eventsTable;
  return {
    layout,
    number: numbers.get(table.name) ?? 0,
    searched: table.searched,
    insert: insertable
      ? prepare(
          `INSERT INTO ${name} (${columns.join(', ')}, id) VALUES (${marks}, ?) ON CONFLICT (id) DO NOTHING`,
        )
      : prepare('SELECT 1'),
    update: prepare(
      `UPDATE ${name} SET ${columns.map((column) => `${column} = ?`).join(', ')} WHERE id = ? AND rev = ?`,
    ),
    remove: prepare(`DELETE FROM ${name} WHERE id = ? AND rev = ?`),
    current: prepare(`SELECT ${rowColumns} FROM ${name} WHERE id = ?`),
    live: prepare(`SELECT 1 FROM ${name} WHERE id = ? AND deleted_at IS NULL`),
    removeOld: prepare(`DELETE FROM ${name} WHERE id = ? AND updated_at < ? RETURNING rev`),
    dependants: dependantsOf(prepare, layout, layouts),
    references: new Map(
      table.references.map((reference) => [reference.field.name, positionOf(layouts, reference.table)]),
    ),
  };
}

function dependantsOf(
  prepare: (sql: string) => StatementSync,
  layout: Layout,
  layouts: readonly Layout[],
): readonly Dependant[] {
  const dependants: Dependant[] = [];
  for (const other of layouts) {
    for (const { field, table } of other.table.references) {
      if (table !== layout.table.name) continue;
      // A reference to itself does not block the removal of a row.
      const others = other === layout ? ' AND id <> ?1' : '';
      dependants.push({
        table: other.table.name,
        field: field.name,
        count: prepare(
          `SELECT count(*) FROM ${other.name} WHERE ${valueSql(field)} = ?1 AND deleted_at IS NULL${others}`,
        ),
      });
    }
  }
  return dependants;
}
