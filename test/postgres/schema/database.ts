/** An empty database for the tests of a file, and declarations to bring it to. */
import { after } from 'node:test';
import pg from 'pg';
import type { Observation } from '../../../src/observe/observation.ts';
import { type Address, addressOf } from '../../../src/store/postgres/connection/address.ts';
import { type MigrateOptions, migrateSchema } from '../../../src/store/postgres/schema/migrate.ts';
import { type OpenSchemaOptions, openSchema } from '../../../src/store/postgres/schema/open-schema.ts';
import type { Table } from '../../../src/store/store.ts';
import { categories, tables } from '../../contract/fixture.ts';
import { emptyDatabase } from '../../harness/postgres-database.ts';

export type TestDatabase = {
  readonly url: string;
  readonly address: Address;
  /** A connection of the test's own, as the owner of everything. */
  readonly client: pg.Client;
};

/** Gone when the tests of the file are over. */
export async function testDatabase(): Promise<TestDatabase> {
  const server = await emptyDatabase();
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  after(async () => {
    await client.end();
    await server.dispose();
  });
  return { url: server.url, address: addressOf(server.url), client };
}

/** The same database as another user. */
export function asUser(url: string, user: string, password: string): string {
  const other = new URL(url);
  other.username = user;
  other.password = password;
  return other.href;
}

export function openOptions(schema: string, given: Partial<OpenSchemaOptions> = {}): OpenSchemaOptions {
  return {
    schema,
    tables,
    observe: ignore,
    connectTimeoutMs: 5000,
    program: 'test',
    clock: () => 1,
    ...given,
  };
}

export function migrateOptions(schema: string, given: Partial<MigrateOptions> = {}): MigrateOptions {
  return { schema, tables, connectTimeoutMs: 5000, program: 'test', clock: () => 1, ...given };
}

/** Makes the schema of the declaration; the observations of making it. */
export async function makeSchema(
  { address }: TestDatabase,
  schema: string,
  declared: readonly Table[] = tables,
): Promise<readonly Observation[]> {
  const observed: Observation[] = [];
  await openSchema(
    address,
    openOptions(schema, { tables: declared, observe: (fact) => observed.push(fact) }),
  );
  return observed;
}

/** Migrates and gives the names of the steps taken. */
export async function stepsTo(
  { address }: TestDatabase,
  schema: string,
  declared: readonly Table[],
): Promise<readonly string[]> {
  const steps = await migrateSchema(address, migrateOptions(schema, { tables: declared }));
  return steps.map(({ what }) => what);
}

/** The declaration with `categories` changed. */
export function withCategories(changed: Partial<Table>): readonly Table[] {
  return tables.map((table) => (table === categories ? { ...table, ...changed } : table));
}

/** Adds a category past the store: revisions are of no matter here. */
export async function insertCategory(
  { client }: TestDatabase,
  schema: string,
  id: string,
  doc: unknown,
): Promise<void> {
  const sql = `INSERT INTO ${schema}.categories (id, rev, created_at, updated_at, doc) VALUES ($1, 1, 1, 1, $2)`;
  await client.query(sql, [id, JSON.stringify(doc)]);
}

/** Names of indexes that an interrupted build left. */
export async function invalidIndexes({ client }: TestDatabase): Promise<readonly string[]> {
  const { rows } = await client.query(
    'SELECT c.relname FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid WHERE NOT (x.indisvalid AND x.indisready)',
  );
  return rows.map(({ relname }) => String(relname));
}

function ignore(): void {
  // The test looks elsewhere.
}
