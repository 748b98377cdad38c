/**
 * Checks the schema at every start. A schema without a store is created in one transaction, so that a first start with a new database just
 * works and processes that start together agree. A schema that lacks something is refused: the operator decides when to change tables in
 * use (`comity migrate`, migrate.ts). It keeps no state in the session beyond a transaction, and so works through a pooler in transaction
 * mode.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Observe } from '../../../observe/observation.ts';
import { quoteName } from '../../sql-text.ts';
import type { Table } from '../../store.ts';
import type { Address } from '../connection/address.ts';
import { SchemaBusy, SchemaOutdated, SchemaTooNew, UnfitServer } from '../postgres-failure.ts';
import { type Found, inspectSchema } from './inspect.ts';
import { type Layout, layoutsOf, type TableNumbers } from './schema-layout.ts';
import { missingThings, occupiedNames, type PlanOptions, planSteps, schemaNumber } from './schema-plan.ts';
import {
  inTransaction,
  openSession,
  type Session,
  type SessionBounds,
  tryLockInTransaction,
} from './session.ts';

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

/* Checks that this version and this user may use a schema and a server; plan.ts finds what the schema lacks. */

/** @param user the session's user, for the remedy @throws UnfitServer, SchemaTooNew */
export function checkFitness(found: Found, schema: string, layouts: readonly Layout[], user: string): void {
  const quoted = quoteName(schema);
  const asked = quoteName(user);
  if (found.schemaExists && !found.mayUse) {
    throw lacking(user, `USAGE on the schema ${schema}`, `GRANT USAGE ON SCHEMA ${quoted} TO ${asked}`);
  }
  if (isFresh(found)) {
    checkRoom(found, schema, layouts, user);
    return;
  }
  const newest = Math.max(0, ...found.migrations);
  if (newest > schemaNumber) throw new SchemaTooNew(schema, newest, schemaNumber);
  for (const [name, { rightsMissing }] of found.tables) {
    if (rightsMissing.length === 0) continue;
    if (!name.startsWith('comity_') && !layouts.some(({ table }) => table.name === name)) continue;
    const all = `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${quoted} TO ${asked}`;
    throw lacking(user, `${rightsMissing.join(', ')} on the table ${schema}.${name}`, all);
  }
  refuseOccupied(occupiedNames(found, layouts), schema);
}

/** True if no store was ever made in the schema. */
function isFresh(found: Found): boolean {
  return !found.tables.has('comity_migrations');
}

/** Before the first creation: checks that the names are free and that the user may create them. */
function checkRoom(found: Found, schema: string, layouts: readonly Layout[], user: string): void {
  const names = [...found.tables.keys(), ...found.others];
  const own = names.filter((name) => name.startsWith('comity_'));
  refuseOccupied([...own, ...occupiedNames(found, layouts)], schema);
  if (found.mayCreate) return;
  if (found.schemaExists) {
    const grant = `GRANT CREATE ON SCHEMA ${quoteName(schema)} TO ${quoteName(user)}`;
    throw lacking(user, `CREATE on the schema ${schema}`, grant);
  }
  const make = `CREATE SCHEMA ${quoteName(schema)} AUTHORIZATION ${quoteName(user)}`;
  throw lacking(user, `CREATE on the database, to create the schema ${schema}`, make);
}

function refuseOccupied(names: readonly string[], schema: string): void {
  const [name] = names;
  if (name === undefined) return;
  throw new UnfitServer(
    'occupied',
    `the schema ${schema} has a "${name}" that Comity did not create; give Comity a schema of its own with COMITY_DATABASE_SCHEMA`,
  );
}

function lacking(user: string, right: string, remedy: string): UnfitServer {
  return new UnfitServer(
    'rights',
    `the user ${user} lacks the privilege ${right}; as the owner run: ${remedy}`,
  );
}

/** The oldest version with every function that statements use and with support by its maintainers. */
const leastVersion = 14;

type ServerFacts = {
  /** As the server writes it: `18.4`. */
  readonly version: string;
  readonly user: string;
  readonly database: string;
};

/**
 * Checks the server's version, its encoding, and that it accepts writes. Does not look at the schema.
 * @throws UnfitServer, DatabaseFailed
 */
export async function checkServer(session: Session): Promise<ServerFacts> {
  const [row] = await session.rows(factsSql);
  const [versionNumber, version, encoding, isStandby, readOnly, user, database] = row ?? [];
  if (Number(versionNumber) < leastVersion * 10_000) {
    throw new UnfitServer(
      'version',
      `the server is PostgreSQL ${version}, but Comity needs ${leastVersion} or later`,
    );
  }
  if (encoding !== 'UTF8') {
    throw new UnfitServer(
      'encoding',
      `the database has the encoding ${encoding}, but Comity needs UTF8; create one with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0`,
    );
  }
  if (isStandby === true) {
    throw new UnfitServer(
      'standby',
      'the server is a standby, which accepts no writes; use the URL of the primary',
    );
  }
  if (readOnly === 'on') {
    throw new UnfitServer(
      'read-only',
      `transactions of ${user} are read-only (default_transaction_read_only is on); turn that off for this user and database`,
    );
  }
  return { version: String(version), user: String(user), database: String(database) };
}

const factsSql = `
SELECT current_setting('server_version_num')::integer, current_setting('server_version'), current_setting('server_encoding'),
  pg_catalog.pg_is_in_recovery(), current_setting('transaction_read_only'), current_user::text, current_database()::text`;
