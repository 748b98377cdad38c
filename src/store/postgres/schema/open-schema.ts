/**
 * The look at the schema that every start begins with. A schema that was never made is made at once, in one transaction, so that a
 * first start with a fresh database just works and processes that start together agree. One that lacks something is
 * refused: changing tables that others may be serving is the operator's decision (`comity migrate`, migrate.ts).
 *
 * It keeps nothing in the session beyond a transaction, and so works through a pooler in transaction mode.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Observe } from '../../../observe/observation.ts';
import type { Table } from '../../store.ts';
import type { Address } from '../connection/address.ts';
import { SchemaBusy, SchemaOutdated } from './failure.ts';
import { checkFitness, isFresh } from './fitness.ts';
import { type Found, inspectSchema } from './inspect.ts';
import { layoutsOf, type TableNumbers } from './layout.ts';
import { tryLockInTransaction } from './lock.ts';
import { missingThings, type PlanOptions, planSteps } from './plan.ts';
import { checkServer } from './server-check.ts';
import { inTransaction, openSession, type Session } from './session.ts';

export type OpenSchemaOptions = {
  readonly schema: string;
  readonly tables: readonly Table[];
  readonly observe: Observe;
  readonly connectTimeoutMs: number;
  /** Time that another process may take to make or migrate the schema. Default 30 s. */
  readonly waitMs?: number;
  /** Time for the server to answer one statement. Default 30 s. */
  readonly answerTimeoutMs?: number;
  /** Version of the program, kept with the migrations it makes. Default `unknown`. */
  readonly program?: string;
  /** Milliseconds since the epoch; replaced in tests alone. */
  readonly clock?: () => number;
};

const askAgainMs = 100;

/**
 * @throws SchemaOutdated, SchemaTooNew, UnfitServer, SchemaBusy, DatabaseFailed, TypeError (a declaration that cannot be stored)
 */
export async function openSchema(
  address: Address,
  options: OpenSchemaOptions,
): Promise<{ readonly numbers: TableNumbers }> {
  const { schema, tables, connectTimeoutMs, answerTimeoutMs = 30_000, waitMs = 30_000 } = options;
  const layouts = layoutsOf(tables, schema);
  const plan: PlanOptions = {
    schema,
    layouts,
    program: options.program ?? 'unknown',
    now: (options.clock ?? Date.now)(),
  };
  const session = await openSession(address, 'comity start', connectTimeoutMs, answerTimeoutMs);
  try {
    const { user } = await checkServer(session);
    const endsAt = performance.now() + waitMs;
    for (;;) {
      const found = await inspectFit(session, plan, user);
      const missing = missingThings(planSteps(found, plan));
      if (missing.length === 0) return { numbers: found.numbers };
      if (!(await make(session, plan, user, options.observe)) && performance.now() >= endsAt) {
        if (!isFresh(found)) throw new SchemaOutdated(schema, missing);
        throw new SchemaBusy(
          `another process makes the schema "${schema}" and did not end within ${waitMs} ms`,
        );
      }
      await pause(askAgainMs * Math.random());
    }
  } finally {
    await session.end();
  }
}

async function inspectFit(session: Session, { schema, layouts }: PlanOptions, user: string): Promise<Found> {
  const found = await inspectSchema(session, schema);
  checkFitness(found, schema, layouts, user);
  return found;
}

/**
 * Makes the whole schema, if it was never made and nobody else is at it.
 * @returns whether this process had its turn; otherwise another holds the lock
 * @throws SchemaOutdated when the schema was made before, and nobody brings it up to date just now
 */
function make(session: Session, plan: PlanOptions, user: string, observe: Observe): Promise<boolean> {
  return inTransaction(session, '', async () => {
    if (!(await tryLockInTransaction(session, plan.schema))) return false;
    const found = await inspectFit(session, plan, user);
    const steps = planSteps(found, plan);
    const missing = missingThings(steps);
    if (missing.length === 0) return true;
    if (!isFresh(found)) throw new SchemaOutdated(plan.schema, missing);
    const started = performance.now();
    for (const { sql } of steps) for (const statement of sql) await session.rows(statement);
    const what = `schema ${plan.schema}`;
    observe({ kind: 'store-migrated', what, durationMs: performance.now() - started });
    return true;
  });
}
