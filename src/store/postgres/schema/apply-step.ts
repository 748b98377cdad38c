/**
 * Executes one step while other processes read and write. A step that needs an exclusive lock requests it briefly and then stands back,
 * because everything that comes after a waiting ALTER TABLE waits with it.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { duplicatesSentence, duplicatesSql, UnfitRows } from '../../unfit-rows.ts';
import { valueSql } from '../compile/value.ts';
import type { Address } from '../connection/address.ts';
import { messageOf, sqlState } from '../connection/connection-failure.ts';
import { fillSearch } from './fill-search.ts';
import { DatabaseFailed, SchemaBusy } from './schema-failure.ts';
import { inTransaction, openSession, type Session } from './session.ts';
import type { Step } from './step.ts';

/** Longest delay of readers by one attempt. */
const lockTimeoutMs = 200;
/** Pause between two attempts, so that waiting statements get through. */
const standBackMs = 500;

const lockNotAvailable = '55P03';
const deadlock = '40P01';

export type ApplyOptions = {
  /** Time that transactions of other sessions may block a step. */
  readonly lockWaitMs: number;
};

/** @throws UnfitRows, SchemaBusy, DatabaseFailed; the step then left nothing behind */
export async function applyStep(session: Session, step: Step, { lockWaitMs }: ApplyOptions): Promise<void> {
  const endsAt = performance.now() + lockWaitMs;
  for (;;) {
    try {
      return await (step.transactional ? applyAtOnce(session, step) : applyOneByOne(session, step));
    } catch (error) {
      const state = stateOf(error);
      if (state !== lockNotAvailable && state !== deadlock) throw error;
      if (performance.now() >= endsAt) {
        throw new SchemaBusy(
          `${step.what} could not lock its table within ${lockWaitMs} ms: a long transaction of another session holds it; end that transaction and run the migration again`,
        );
      }
    }
    await pause(standBackMs * (0.5 + Math.random()));
  }
}

function applyAtOnce(session: Session, { sql }: Step): Promise<void> {
  return inTransaction(session, '', async () => {
    await session.rows(`SET LOCAL lock_timeout = ${lockTimeoutMs}`);
    for (const statement of sql) await session.rows(statement);
  });
}

async function applyOneByOne(session: Session, step: Step): Promise<void> {
  try {
    for (const statement of step.sql) await session.rows(statement);
    if (step.fills !== undefined) await fillSearch(session, step.fills);
  } catch (error) {
    for (const statement of step.undo ?? []) await session.rows(statement).catch(ignore);
    throw isAboutRows(error) ? await unfitRows(session, step, error) : error;
  }
}

/** True for errors of data, constraint, or program limit (an index row too long), which the rows cause, not the server. */
function isAboutRows(error: unknown): boolean {
  return ['22', '23', '54'].includes(stateOf(error)?.slice(0, 2) ?? '');
}

async function unfitRows(session: Session, { what, builds }: Step, error: unknown): Promise<UnfitRows> {
  const duplicates = builds === undefined ? undefined : await duplicatesOf(session, builds).catch(ignore);
  const reason = messageOf(error instanceof DatabaseFailed ? error.cause : error);
  const message = duplicates ?? `cannot make ${what}: ${reason}; the database is unchanged by this step`;
  return new UnfitRows(message, { index: builds?.index.label, cause: error });
}

/** A sentence about rows with the same value of the field that the index makes unique. Reads the table, as the index does. */
export async function duplicatesOf(
  session: Session,
  { layout, index }: NonNullable<Step['builds']>,
): Promise<string | undefined> {
  const field = layout.table.unique.find(({ name }) => name === layout.uniqueFields.get(index.name));
  if (field === undefined) return undefined;
  const rows = await session.rows(duplicatesSql(layout.name, valueSql(field)));
  return duplicatesSentence(layout.table.name, field, rows);
}

function stateOf(error: unknown): string | undefined {
  return sqlState(error instanceof DatabaseFailed ? error.cause : error);
}

function ignore(): undefined {
  // The original error is reported.
}

const progressPollMs = 500;

type WatchOptions = {
  readonly connectTimeoutMs: number;
  /** Counts blocks of the table, then rows, depending on the phase of the build. */
  readonly onProgress: (done: number, total: number) => void;
};

/**
 * Reports the progress of an index build, which the server shows to other connections only. A failure to watch does not stop the build.
 * @param processNumber of the server process that builds
 * @returns a function that stops it
 */
export async function watchBuilds(
  address: Address,
  processNumber: number,
  { connectTimeoutMs, onProgress }: WatchOptions,
): Promise<() => Promise<void>> {
  const session = await openSession(address, 'comity migrate watch', connectTimeoutMs).catch(
    ignoreWatchFailure,
  );
  if (session === undefined) return async () => undefined;
  let looking: Promise<void> = Promise.resolve();
  const look = async (): Promise<void> => {
    const [row] = (await session.rows(progressSql, [processNumber]).catch(ignoreWatchFailure)) ?? [];
    const [blocksDone, blocks, rowsDone, rows] = (row ?? []).map(Number);
    // A second phase counts rows where the first counted blocks.
    if (rows !== undefined && rows > 0) onProgress(rowsDone ?? 0, rows);
    else if (blocks !== undefined && blocks > 0) onProgress(blocksDone ?? 0, blocks);
  };
  const timer = setInterval(() => {
    looking = looking.then(look);
  }, progressPollMs);
  return async () => {
    clearInterval(timer);
    await looking;
    await session.end();
  };
}

const progressSql = `SELECT blocks_done, blocks_total, tuples_done, tuples_total
  FROM pg_catalog.pg_stat_progress_create_index WHERE pid = $1`;

function ignoreWatchFailure(): undefined {
  // The build does not depend on its progress report.
}
