/**
 * Migrates a schema while other processes serve from it: one process at a time, forwards only, in the order of plan.ts. All state is in the
 * schema, so an interrupted run is simply repeated. It needs a session of its own throughout, for the lock and for building indexes beside
 * writers, and so rejects a pooler (lock.ts).
 */
import type { Table } from '../../store.ts';
import type { Address } from '../connection/address.ts';
import { applyStep, duplicatesOf, watchBuilds } from './apply-step.ts';
import { checkFitness, checkServer } from './fitness.ts';
import { inspectSchema } from './inspect.ts';
import { lockSchema } from './lock.ts';
import { channelOf } from './physical-name.ts';
import { SchemaBusy, UnfitServer } from './schema-failure.ts';
import { layoutsOf } from './schema-layout.ts';
import { type PlanOptions, planSteps } from './schema-plan.ts';

import { openSession, type Session, type SessionBounds } from './session.ts';
import type { Step } from './step.ts';

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
      await applyStep(session, step, { lockWaitMs });
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

function ignore(): void {
  // No callback was given.
}
