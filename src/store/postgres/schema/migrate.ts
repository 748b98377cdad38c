/**
 * Brings a schema up to date while others serve from it: one process at a time, forwards only, step by step as plan.ts orders them.
 * Nothing is kept between runs but what stands in the schema, so a run that was killed is simply begun again.
 *
 * It needs a session of its own from its beginning to its end, for the lock and for building indexes beside writers, and so
 * refuses to go through a pooler (lock.ts says why).
 */
import type { Table } from '../../store.ts';
import type { Address } from '../connection/address.ts';
import { applyStep } from './apply-step.ts';
import { channelOf } from './channel.ts';
import { SchemaBusy, UnfitServer } from './failure.ts';
import { checkFitness } from './fitness.ts';
import { inspectSchema } from './inspect.ts';
import { layoutsOf } from './layout.ts';
import { lockSchema } from './lock.ts';
import { type PlanOptions, planSteps } from './plan.ts';
import { checkServer } from './server-check.ts';
import { openSession, type Session } from './session.ts';
import type { Step } from './step.ts';
import { watchBuilds } from './watch-build.ts';

export type MigrateOptions = {
  readonly schema: string;
  readonly tables: readonly Table[];
  readonly connectTimeoutMs: number;
  /** Drops no index of an earlier declaration: for the time in which its processes still serve. */
  readonly keepsUndeclared?: boolean;
  /** Version of the program, kept with the migrations it makes. */
  readonly program: string;
  /** Called before each step. What it throws ends the run between two steps. */
  readonly onStep?: (step: Step, at: number, of: number) => void;
  readonly onStepDone?: (step: Step, durationMs: number) => void;
  /** Called about twice a second while an index is built. Costs a second connection. */
  readonly onProgress?: (done: number, total: number) => void;
  /** Called once when another process migrates, which is then waited for. */
  readonly onWaiting?: () => void;
  /** Time that another migration may take. Default one hour. */
  readonly waitMs?: number;
  /** Time that a transaction of others may hold up a step. Default two minutes. */
  readonly lockWaitMs?: number;
  /** Milliseconds since the epoch; replaced in tests alone. */
  readonly clock?: () => number;
};

/** Two plans in a row: what the first did not know of, such as an index that an interrupted process left, is in the second. */
const plansMax = 2;

/**
 * @returns the steps that were carried out
 * @throws UnfitRows, UnfitServer, SchemaTooNew, SchemaBusy, DatabaseFailed, TypeError (a declaration that cannot be stored)
 */
export function migrateSchema(address: Address, options: MigrateOptions): Promise<readonly Step[]> {
  const { schema, waitMs = 3_600_000, lockWaitMs = 120_000, onWaiting = ignore } = options;
  return withSession(address, options, async (session, plan, user) => {
    if (!(await session.isDirect())) {
      throw new UnfitServer(
        'pooler',
        'the URL leads to a pooler (such as PgBouncer), and a migration needs a session of its own; give this command the URL of the server itself',
      );
    }
    await prepare(session);
    await lockSchema(session, schema, waitMs, onWaiting);
    const { onProgress, connectTimeoutMs } = options;
    const stopWatching =
      onProgress && (await watchBuilds(address, session.processNumber, { connectTimeoutMs, onProgress }));
    try {
      return await makeAll(session, plan, user, { ...options, lockWaitMs });
    } finally {
      await stopWatching?.();
    }
  });
}

async function makeAll(
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
    `another changed the schema "${plan.schema}" meanwhile: ${left[0]?.what} is to be made again`,
  );
}

/**
 * The steps that `migrateSchema` would take now. Changes nothing and waits for nobody.
 * @throws UnfitServer, SchemaTooNew, DatabaseFailed, TypeError
 */
export function previewMigration(address: Address, options: MigrateOptions): Promise<readonly Step[]> {
  return withSession(address, options, planOf);
}

async function withSession<T>(
  address: Address,
  options: MigrateOptions,
  work: (session: Session, plan: PlanOptions, user: string) => Promise<T>,
): Promise<T> {
  const { schema, tables, program, keepsUndeclared = false, connectTimeoutMs, clock = Date.now } = options;
  const layouts = layoutsOf(tables, schema);
  const plan: PlanOptions = { schema, layouts, keepsUndeclared, program, now: clock() };
  const session = await openSession(address, 'comity migrate', connectTimeoutMs);
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

/**
 * Bounds that a user or database carries are meant for requests: building an index takes as long as it takes. The
 * server shall notice that this process died, and let go of the lock, without waiting for the index to be whole.
 */
async function prepare(session: Session): Promise<void> {
  for (const name of ['statement_timeout', 'lock_timeout', 'idle_session_timeout']) {
    await session.rows(`SET ${name} = 0`);
  }
  // PostgreSQL 17 and later know this one.
  await session.rows('SET transaction_timeout = 0').catch(ignore);
  // Some systems cannot look at a socket while they work; there a killed run holds its lock until the index stands.
  await session.rows("SET client_connection_check_interval = '1s'").catch(ignore);
}

function ignore(): void {
  // Nobody asked.
}
