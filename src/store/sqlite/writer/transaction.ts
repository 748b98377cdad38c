/**
 * Commits a batch of units in one transaction. The first attempt uses no savepoints. If a unit is refused after it wrote something, or
 * SQLite rejects its values, the batch starts over with a savepoint around every unit: that is rare, and cheaper than a savepoint (two
 * statements) for every unit.
 */
import type { DatabaseSync } from 'node:sqlite';
import { isMistake } from '../sqlite-failure.ts';
import { applyUnit, type Effects } from './apply.ts';
import type { Statements } from './statements.ts';
import { type Cell, CellReader, noRevision, type Refusal } from './writer-messages.ts';

export type Outcome = {
  readonly firstRev: number;
  readonly lastRev: number;
  readonly refusals: readonly Refusal[];
};

/** @param rev the last revision used before @throws SQLite's error if storage fails; nothing is committed then */
export function commitBatch(
  database: DatabaseSync,
  statements: Statements,
  units: number,
  cells: readonly Cell[],
  rev: number,
): Outcome {
  try {
    const bare = tryBatch(database, statements, units, cells, rev, false);
    if (bare !== undefined) return bare;
    database.exec('ROLLBACK');
    const careful = tryBatch(database, statements, units, cells, rev, true);
    if (careful === undefined) throw new Error('a batch with savepoints must not start over');
    return careful;
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

/** @returns undefined if the batch must start over with savepoints */
function tryBatch(
  database: DatabaseSync,
  statements: Statements,
  units: number,
  batch: readonly Cell[],
  before: number,
  careful: boolean,
): Outcome | undefined {
  const cells = new CellReader(batch);
  const revisions = new Map<number, number>();
  const effects: Effects = { touched: new Map(), written: 0, revisions };
  const refusals: Refusal[] = [];
  let rev = before;
  database.exec('BEGIN IMMEDIATE');
  for (let unit = 0; unit < units; unit += 1) {
    const end = cells.number() + cells.position;
    if (careful) database.exec('SAVEPOINT unit');
    const own: Effects = careful ? { touched: new Map(), written: 0, revisions } : effects;
    const provisional = cells.number();
    const written = own.written;
    const refusal = applyOne(statements, cells, unit, rev + 1, own, careful);
    if (refusal === 'start over') return undefined;
    if (refusal === undefined) {
      rev += 1;
      if (provisional !== noRevision) revisions.set(provisional, rev);
    } else {
      if (!careful && own.written > written) return undefined;
      refusals.push(refusal);
      cells.seek(end);
      if (careful) database.exec('ROLLBACK TO unit');
    }
    if (careful) {
      database.exec('RELEASE unit');
      if (refusal === undefined) {
        for (const [table, last] of own.touched) effects.touched.set(table, last);
      }
    }
  }
  if (rev > before) {
    statements.setCounter.run(rev, 0);
    for (const [table, last] of effects.touched) statements.setCounter.run(last, table);
  }
  database.exec('COMMIT');
  return { firstRev: before + 1, lastRev: rev, refusals };
}

function applyOne(
  statements: Statements,
  cells: CellReader,
  unit: number,
  rev: number,
  effects: Effects,
  careful: boolean,
): Refusal | 'start over' | undefined {
  try {
    const refused = applyUnit(statements, cells, rev, effects);
    return refused === undefined ? undefined : { unit, commit: refused };
  } catch (error) {
    if (!isMistake(error)) throw error;
    if (!careful) return 'start over';
    return { unit, error: error instanceof Error ? new Error(error.message) : new Error(String(error)) };
  }
}
