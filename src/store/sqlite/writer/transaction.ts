/**
 * Commits the batches of one or more stores, one for each store, in one transaction. The first attempt uses no savepoints. If a unit is
 * refused after it wrote something, or SQLite rejects its values, the transaction starts over with a savepoint around every unit: that is
 * rare, and cheaper than a savepoint (two statements) for every unit.
 */
import type { DatabaseSync } from 'node:sqlite';
import { isMistake } from '../sqlite-failure.ts';
import { applyUnit, type Effects } from './apply.ts';
import type { Statements } from './statements.ts';
import { type EncodedUnits, noRevision, type Refusal, UnitReader } from './writer-messages.ts';

export type Outcome = {
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
