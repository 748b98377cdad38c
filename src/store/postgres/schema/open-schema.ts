/**
 * Checks the schema at every start. A schema without a store is created in one transaction, so that a first start with a new database just
 * works and processes that start together agree. A schema that lacks something is refused: the operator decides when to change tables in
 * use (`comity migrate`, migrate.ts). It keeps no state in the session beyond a transaction, and so works through a pooler in transaction
 * mode.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Observe } from '../../../observe/observation.ts';
import type { Table } from '../../store.ts';
import type { Address } from '../connection/address.ts';
import { checkFitness, checkServer, isFresh } from './fitness.ts';
import { type Found, inspectSchema } from './inspect.ts';
import { tryLockInTransaction } from './lock.ts';
import { SchemaBusy, SchemaOutdated } from './schema-failure.ts';
import { layoutsOf, type TableNumbers } from './schema-layout.ts';
import { missingThings, type PlanOptions, planSteps } from './schema-plan.ts';

import { inTransaction, openSession, type Session, type SessionBounds } from './session.ts';

export type OpenSchemaOptions = Pick<SessionBounds, 'answerTimeoutMs'> & {
  readonly schema: string;
  readonly tables: readonly Table[];
  readonly observe: Observe;
  readonly connectTimeoutMs: number;
  /** Time that another process may take to create or migrate the schema. Default 30 s. */
  readonly waitMs?: number;
  /** Opens a schema that lacks something, or everything. */
  readonly looksOnly?: boolean;
  /** Version of the program, recorded with the migrations it makes. Default `unknown`. */
  readonly program?: string;
  /** Milliseconds since the epoch; only tests replace it. */
  readonly clock?: () => number;
};

const pollMs = 100;

/** @throws SchemaOutdated, SchemaTooNew, UnfitServer, SchemaBusy, DatabaseFailed, TypeError (a declaration that cannot be stored) */
export async function openSchema(
  address: Address,
  options: OpenSchemaOptions,
): Promise<{ readonly numbers: TableNumbers }> {
  const { schema, tables, connectTimeoutMs, waitMs = 30_000 } = options;
  const layouts = layoutsOf(tables, schema);
  const plan: PlanOptions = {
    schema,
    layouts,
    program: options.program ?? 'unknown',
    now: (options.clock ?? Date.now)(),
  };
  const session = await openSession(address, 'comity start', connectTimeoutMs, options);
  try {
    const { user } = await checkServer(session);
    const endsAt = performance.now() + waitMs;
    for (;;) {
      const found = await inspectFit(session, plan, user);
      const missing = missingThings(planSteps(found, plan));
      if (missing.length === 0 || options.looksOnly === true) return { numbers: found.numbers };
      if (!(await createSchema(session, plan, user, options.observe)) && performance.now() >= endsAt) {
        if (!isFresh(found)) throw new SchemaOutdated(schema, missing);
        throw new SchemaBusy(
          `another process creates the schema "${schema}" and did not end within ${waitMs} ms`,
        );
      }
      await pause(pollMs * Math.random());
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
 * Creates the whole schema, if it has no store and no other process holds the lock.
 * @returns false if another process holds the lock
 * @throws SchemaOutdated if the schema has a store that lacks something and no process migrates it
 */
function createSchema(session: Session, plan: PlanOptions, user: string, observe: Observe): Promise<boolean> {
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
