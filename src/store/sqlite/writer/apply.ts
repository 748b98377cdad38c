/**
 * Applies one unit within the current transaction. In the common case every change is one compare-and-swap statement: an INSERT that does
 * nothing on an existing id, an UPDATE or DELETE with the expected revision. Only if it changes no row is the reason looked up. A refusal
 * does not undo earlier statements of the unit; the caller does (transaction.ts).
 */
import { rowOf } from '../../kept-row.ts';
import type { Commit } from '../../store.ts';
import type { Cells } from '../cells.ts';
import { isMistake, messageOf, resultCode } from '../sqlite-failure.ts';
import type { Statements, TableStatements } from './statements.ts';
import { absentRev, actPuts, actStays, type UnitReader } from './writer-messages.ts';

export type Refused = Exclude<Commit, { outcome: 'committed' }>;

/** SQLITE_CONSTRAINT_UNIQUE */
const uniqueViolation = 2067;

export type Effects = {
  /** Counter numbers of the changed tables, with the revision. */
  readonly touched: Map<number, number>;
  /** Statements that changed a row; above 0, a refusal must be undone. */
  written: number;
  /** Revisions of earlier units of the batch, by their provisional ones. */
  readonly revisions: ReadonlyMap<number, number>;
};

/** @returns undefined if the unit was applied */
export function applyUnit(
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
    const field = takenField(table, error);
    if (field === undefined) throw error;
    return unexpected(table, change, id, expected) ?? { outcome: 'taken', change, field };
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
function takenField(table: TableStatements, error: unknown): string | undefined {
  if (!isMistake(error) || resultCode(error) !== uniqueViolation) return undefined;
  const message = messageOf(error);
  const start = message.indexOf(`index '`);
  if (start >= 0) {
    const index = message.slice(start + 7, message.lastIndexOf(`'`)).replaceAll(`''`, `'`);
    const field = table.layout.uniqueFields.get(index);
    if (field !== undefined) return field;
  }
  // For a unique field with a column of its own, SQLite names the column.
  for (const [index, field] of table.layout.uniqueFields) {
    const key = table.layout.indexes.find(({ name }) => name === index)?.keys[0];
    if (key !== undefined && message.endsWith(`.${key}`)) return field;
  }
  return undefined;
}
