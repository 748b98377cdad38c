/** Checks that this version and this user may use a schema and a server; plan.ts finds what the schema lacks. */
import { quoteName } from '../../quote-name.ts';
import type { Found } from './inspect.ts';
import { schemaNumber } from './migrations.ts';
import { SchemaTooNew, UnfitServer } from './schema-failure.ts';
import type { Layout } from './schema-layout.ts';
import { occupiedNames } from './schema-plan.ts';

import type { Session } from './session.ts';

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
export function isFresh(found: Found): boolean {
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
