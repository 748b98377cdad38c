/**
 * Databases of a real PostgreSQL, on one server that the whole run shares. `databaseWith` gives one that has the tables of a declaration,
 * as good as new: where a test of this process has given one back, that one is emptied. `emptyDatabase` makes one with nothing in it,
 * for tests whose subject is how a schema is made, found or changed.
 */
import { createHash, randomBytes } from 'node:crypto';
import pg from 'pg';
import { addressOf } from '../../src/store/postgres/connection/address.ts';
import { openSchema } from '../../src/store/postgres/schema/open-schema.ts';
import type { Table } from '../../src/store/store.ts';
import { emptyTables, shapeOf } from './postgres-server/empty-tables.ts';
import { spawnKeeper } from './postgres-server/keeper-process.ts';
import { askForServer, quickSettings } from './postgres-server/run-server.ts';

export type TestDatabase = {
  /** With every right on the database. */
  readonly url: string;
  /** Gives it back, or drops it, with whoever is still connected to it. */
  dispose(): Promise<void>;
};

/**
 * The databases sort by the rules of a language, numbers in words by value: a comparison that forgets to ask for the
 * order of code points is found out here, and not by the first user whose cluster was made that way.
 */
const unlikeOrder = `LOCALE_PROVIDER icu ICU_LOCALE 'en-US-u-kn-true'`;

let serverUrl: Promise<string> | undefined;

/** An empty database in UTF-8, which `dispose` drops. Uses the server of COMITY_TEST_DATABASE_URL where one is given, else the run's, else one of this process. */
export async function emptyDatabase(): Promise<TestDatabase> {
  serverUrl ??= findServer();
  const url = await serverUrl;
  const name = newName();
  await withClient(url, (client) => createEmpty(client, name));
  return { url: urlOf(url, name), dispose: () => drop(url, name) };
}

type Kept = { readonly name: string; readonly shape: string };

/** Databases that tests of this process have given back, by template; no test is connected to them. */
const given = new Map<string, Kept[]>();

/**
 * A database with the tables in its schema `comity`, and no row. Its schema is made once a run: forty tables take most of a second, a copy
 * a tenth, emptying what a test wrote a fortieth. One that a test left with another schema is replaced by a new copy.
 */
export async function databaseWith(tables: readonly Table[]): Promise<TestDatabase> {
  serverUrl ??= findServer();
  const url = await serverUrl;
  if (givenServer() !== undefined) {
    // Neither copies nor templates are left behind on a server that outlives the run.
    const database = await emptyDatabase();
    await makeSchema(database.url, tables);
    return database;
  }
  const key = createHash('sha256').update(JSON.stringify(tables)).digest('hex').slice(0, 16);
  const template = `comity_template_${key}`;
  const free = given.get(template) ?? [];
  given.set(template, free);
  const last = free.pop();
  const kept = last !== undefined && (await makeNew(url, last)) ? last : await copy(url, template, tables);
  return {
    url: urlOf(url, kept.name),
    dispose: async () => {
      if (!free.includes(kept)) free.push(kept);
    },
  };
}

/** @returns false when the database is not what it was, and is dropped */
async function makeNew(url: string, { name, shape }: Kept): Promise<boolean> {
  let isSame = false;
  await withClient(urlOf(url, name), async (client) => {
    isSame = (await shapeOf(client)) === shape;
    if (isSame) await emptyTables(client);
  });
  if (!isSame) await drop(url, name);
  return isSame;
}

async function copy(url: string, template: string, tables: readonly Table[]): Promise<Kept> {
  const name = newName();
  await withClient(url, async (client) => {
    const isThere = async () =>
      (await client.query('SELECT FROM pg_database WHERE datname = $1', [template])).rowCount === 1;
    if (!(await isThere())) {
      // Processes of the run come at the same time: the first makes it, and the others wait.
      await client.query('SELECT pg_advisory_lock(7041976)');
      if (!(await isThere())) {
        const made = `${template}_made`;
        await client.query(`DROP DATABASE IF EXISTS ${made} WITH (FORCE)`);
        await createEmpty(client, made);
        await makeSchema(urlOf(url, made), tables);
        await client.query(`ALTER DATABASE ${made} RENAME TO ${template}`);
      }
      await client.query('SELECT pg_advisory_unlock(7041976)');
    }
    // Through the write-ahead log, as it is by default, a copy takes 43 ms and not 15.
    await client.query(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY FILE_COPY`);
  });
  let shape = '';
  await withClient(urlOf(url, name), async (client) => {
    shape = await shapeOf(client);
  });
  return { name, shape };
}

async function makeSchema(url: string, tables: readonly Table[]): Promise<void> {
  await openSchema(addressOf(url), {
    schema: 'comity',
    tables,
    observe: () => undefined,
    connectTimeoutMs: 10_000,
  });
}

function newName(): string {
  return `comity_test_${randomBytes(8).toString('hex')}`;
}

function urlOf(url: string, name: string): string {
  const own = new URL(url);
  own.pathname = `/${name}`;
  return own.href;
}

async function createEmpty(client: pg.Client, name: string): Promise<void> {
  const create = `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8'`;
  try {
    await client.query(`${create} ${unlikeOrder}`);
  } catch (error) {
    // A server built without ICU still serves.
    if (!(error instanceof pg.DatabaseError)) throw error;
    await client.query(create);
  }
}

function drop(url: string, name: string): Promise<void> {
  return withClient(url, async (client) => {
    await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  });
}

function givenServer(): string | undefined {
  const url = process.env.COMITY_TEST_DATABASE_URL;
  return url === '' ? undefined : url;
}

async function findServer(): Promise<string> {
  return givenServer() ?? (await askForServer()) ?? (await spawnKeeper(quickSettings).start());
}

async function withClient(url: string, use: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    await use(client);
  } finally {
    await client.end();
  }
}
