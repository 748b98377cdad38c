/**
 * Migrates a schema while other processes serve from it: one process at a time, forwards only, in the order of plan.ts. All state is in the
 * schema, so an interrupted run is simply repeated. It needs a session of its own throughout, for the lock and for building indexes beside
 * writers, and so rejects a pooler (session.ts).
 */
import { setTimeout as pause } from 'node:timers/promises';
import { duplicatesSentence, duplicatesSql, UnfitRows } from '../../declared-indexes.ts';
import type { Table } from '../../store.ts';
import { valueSql } from '../compile/expressions.ts';
import type { Address } from '../connection/address.ts';
import { DatabaseFailed, messageOf, SchemaBusy, sqlState, UnfitServer } from '../postgres-failure.ts';
import { fillSearch } from '../search-sweep.ts';
import { inspectSchema } from './inspect.ts';
import { checkFitness, checkServer } from './open-schema.ts';
import { channelOf, layoutsOf } from './schema-layout.ts';
import { type PlanOptions, planSteps, type Step } from './schema-plan.ts';
import { inTransaction, lockSchema, openSession, type Session, type SessionBounds } from './session.ts';

export type MigrateOptions = Pick<SessionBounds, 'answerTimeoutMs'> & {
  readonly schema: string;
  readonly tables: readonly Table[];
  readonly connectTimeoutMs: number;
  /** Keeps indexes of an earlier declaration while its processes still serve. */
  readonly keepsUndeclared?: boolean;
  /** Version of the program, recorded with the migrations it makes. */
  readonly program: string;
  /** Called before each step. An exception ends the run between two steps. */
  readonly onStep?: (step: Step, at: number, of: number) => void;
  readonly onStepDone?: (step: Step, durationMs: number) => void;
  /** Called about twice a second while an index is built. Uses a second connection. */
  readonly onProgress?: (done: number, total: number) => void;
  /** Called once if the run waits for another process's migration. */
  readonly onWaiting?: () => void;
  /** Time that another migration may take. Default one hour. */
  readonly waitMs?: number;
  /** Time that transactions of other sessions may block a step. Default two minutes. */
  readonly lockWaitMs?: number;
  /** Milliseconds since the epoch; only tests replace it. */
  readonly clock?: () => number;
};

/** The second plan covers what the first could not know of, such as an index left by an interrupted process. */
const plansMax = 2;

/**
 * @returns the executed steps
 * @throws UnfitRows, UnfitServer, SchemaTooNew, SchemaBusy, DatabaseFailed, TypeError (a declaration that cannot be stored)
 */
export function migrateSchema(address: Address, options: MigrateOptions): Promise<readonly Step[]> {
  const { schema, waitMs = 3_600_000, lockWaitMs = 120_000, onWaiting = ignore } = options;
  return withSession(address, options, async (session, plan, user) => {
    if (!(await session.isDirect())) {
      throw new UnfitServer(
        'pooler',
        'the URL leads to a pooler (such as PgBouncer), but a migration needs a session of its own; use the URL of the server itself',
      );
    }
    await prepare(session);
    await lockSchema(session, schema, waitMs, onWaiting);
    const { onProgress, connectTimeoutMs } = options;
    const stopWatching =
      onProgress && (await watchBuilds(address, session.processNumber, { connectTimeoutMs, onProgress }));
    try {
      return await applyPlans(session, plan, user, { ...options, lockWaitMs });
    } finally {
      await stopWatching?.();
    }
  });
}

async function applyPlans(
  session: Session,
  plan: PlanOptions,
  user: string,
  { lockWaitMs, onStep, onStepDone }: MigrateOptions & { readonly lockWaitMs: number },
): Promise<readonly Step[]> {
  const done: Step[] = [];
  for (let round = 0; round < plansMax; round += 1) {
    const steps = await planOf(session, plan, user);
    if (steps.length === 0) return done;
    const of = done.length + steps.length;
    for (const step of steps) {
      onStep?.(step, done.length + 1, of);
      const started = performance.now();
      await applyStep(session, step, lockWaitMs);
      done.push(step);
      onStepDone?.(step, performance.now() - started);
    }
    await session.rows('SELECT pg_catalog.pg_notify($1::text, $2::text)', [channelOf(plan.schema), 'schema']);
  }
  const left = await planOf(session, plan, user);
  if (left.length === 0) return done;
  throw new SchemaBusy(
    `another process changed the schema "${plan.schema}" meanwhile: ${left[0]?.what} is missing again; run the migration again`,
  );
}

/**
 * Lists the steps that `migrateSchema` would take now. Changes nothing and waits for no lock.
 * @throws UnfitServer, SchemaTooNew, DatabaseFailed, TypeError
 */
export function previewMigration(address: Address, options: MigrateOptions): Promise<readonly Step[]> {
  return withSession(address, options, planOf);
}

/**
 * Sentences about unique fields whose index is missing and whose values are not unique. Changes nothing and waits for no lock.
 * @throws UnfitServer, SchemaTooNew, DatabaseFailed, TypeError
 */
export function findDuplicates(address: Address, options: MigrateOptions): Promise<readonly string[]> {
  return withSession(address, options, async (session, plan, user) => {
    const found: string[] = [];
    for (const { builds } of await planOf(session, plan, user)) {
      const sentence = builds?.index.unique ? await duplicatesOf(session, builds) : undefined;
      if (sentence !== undefined) found.push(sentence);
    }
    return found;
  });
}

async function withSession<T>(
  address: Address,
  options: MigrateOptions,
  work: (session: Session, plan: PlanOptions, user: string) => Promise<T>,
): Promise<T> {
  const { schema, tables, program, keepsUndeclared = false, connectTimeoutMs, clock = Date.now } = options;
  const layouts = layoutsOf(tables, schema);
  const plan: PlanOptions = { schema, layouts, keepsUndeclared, program, now: clock() };
  const session = await openSession(address, 'comity migrate', connectTimeoutMs, {
    ...options,
    isLong: true,
  });
  try {
    const { user } = await checkServer(session);
    return await work(session, plan, user);
  } finally {
    await session.end();
  }
}

async function planOf(session: Session, plan: PlanOptions, user: string): Promise<readonly Step[]> {
  const found = await inspectSchema(session, plan.schema);
  checkFitness(found, plan.schema, plan.layouts, user);
  return planSteps(found, plan);
}

/** Removes time limits meant for requests, and makes the server notice a dead client and release its lock. */
async function prepare(session: Session): Promise<void> {
  for (const name of ['statement_timeout', 'lock_timeout', 'idle_session_timeout']) {
    await session.rows(`SET ${name} = 0`);
  }
  // PostgreSQL 17 and later.
  await session.rows('SET transaction_timeout = 0').catch(ignore);
  // Some systems cannot check a socket during work; there a killed run holds its lock until the index is built.
  await session.rows("SET client_connection_check_interval = '1s'").catch(ignore);
}

/*
 * Executes one step while other processes read and write. A step that needs an exclusive lock requests it briefly and then stands back,
 * because everything that comes after a waiting ALTER TABLE waits with it.
 */

/** Longest delay of readers by one attempt. */
const lockTimeoutMs = 200;
/** Pause between two attempts, so that waiting statements get through. */
const standBackMs = 500;

const lockNotAvailable = '55P03';
const deadlock = '40P01';

/**
 * @param lockWaitMs time that transactions of other sessions may block the step
 * @throws UnfitRows, SchemaBusy, DatabaseFailed; the step then left nothing behind
 */
export async function applyStep(session: Session, step: Step, lockWaitMs: number): Promise<void> {
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

/** A sentence about rows with the same values of the fields that the index makes unique. Reads the table, as the index does. */
async function duplicatesOf(
  session: Session,
  { layout, index }: NonNullable<Step['builds']>,
): Promise<string | undefined> {
  const fields = layout.uniqueFields.get(index.name);
  if (fields === undefined) return undefined;
  const values = fields.map((field) => valueSql(field, '', layout.schema));
  const rows = await session.rows(duplicatesSql(layout.name, values));
  return duplicatesSentence(layout.table.name, fields, rows);
}

function stateOf(error: unknown): string | undefined {
  return sqlState(error instanceof DatabaseFailed ? error.cause : error);
}

function ignore(): undefined {
  // No callback was given, another error is reported, or a build is watched, which does not depend on it.
}

const progressPollMs = 500;

/**
 * Reports the progress of an index build, which the server shows to other connections only. A failure to watch does not stop the build.
 * @param processNumber of the server process that builds
 * @param watching `onProgress` gets blocks of the table, then rows, depending on the phase of the build
 * @returns a function that stops it
 */
export async function watchBuilds(
  address: Address,
  processNumber: number,
  watching: Required<Pick<MigrateOptions, 'connectTimeoutMs' | 'onProgress'>>,
): Promise<() => Promise<void>> {
  const { connectTimeoutMs, onProgress } = watching;
  const session = await openSession(address, 'comity migrate watch', connectTimeoutMs).catch(ignore);
  if (session === undefined) return async () => undefined;
  let looking: Promise<void> = Promise.resolve();
  const look = async (): Promise<void> => {
    const [row] = (await session.rows(progressSql, [processNumber]).catch(ignore)) ?? [];
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
