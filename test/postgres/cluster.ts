/**
 * A real PostgreSQL for tests. `testServer` gives an empty database on a server that the whole run shares;
 * `ownCluster` gives a server of its own to a test that stops or kills it.
 */
import { createHash, randomBytes } from 'node:crypto';
import pg from 'pg';
import { spawnKeeper } from './keeper-process.ts';
import { askForServer, quickSettings } from './run-server.ts';

export type TestServer = {
  /** Of an empty database in UTF-8, with every right on it. */
  readonly url: string;
  /** Drops the database, with whoever is still connected to it. */
  dispose(): Promise<void>;
};

export type OwnCluster = {
  /** Stays the same over stops and starts. */
  readonly url: string;
  stop(mode?: 'fast' | 'immediate'): Promise<void>;
  /** SIGKILL. Resolves when the server is gone; `start` recovers. */
  kill(): Promise<void>;
  start(): Promise<void>;
  dispose(): Promise<void>;
};

/**
 * The databases sort by the rules of a language, numbers in words by value: a comparison that forgets to ask for the
 * order of code points is found out here, and not by the first user whose cluster was made that way.
 */
const unlikeOrder = `LOCALE_PROVIDER icu ICU_LOCALE 'en-US-u-kn-true'`;

let serverUrl: Promise<string> | undefined;

/** Uses the server of COMITY_TEST_DATABASE_URL where one is given, else the run's, else one of this process. */
export async function testServer(): Promise<TestServer> {
  serverUrl ??= findServer();
  const url = await serverUrl;
  const name = newName();
  await withClient(url, (client) => createEmpty(client, name));
  return serverOf(url, name);
}

/**
 * The same with what `prepare` made in it, once for all that ask by this key: a schema of forty tables takes most of a second, its copy a
 * tenth. On a server that was given from outside, where no copy should be left behind, each is prepared anew.
 */
export async function preparedServer(
  key: string,
  prepare: (url: string) => Promise<void>,
): Promise<TestServer> {
  serverUrl ??= findServer();
  const url = await serverUrl;
  if (givenServer() !== undefined) {
    const server = await testServer();
    await prepare(server.url);
    return server;
  }
  const template = `comity_template_${createHash('sha256').update(key).digest('hex').slice(0, 16)}`;
  const name = newName();
  await withClient(url, async (client) => {
    const isThere = async () =>
      (await client.query('SELECT FROM pg_database WHERE datname = $1', [template])).rowCount === 1;
    if (!(await isThere())) {
      // Files of the run come at the same time: the first makes it, and the others wait.
      await client.query('SELECT pg_advisory_lock(7041976)');
      if (!(await isThere())) {
        const made = `${template}_made`;
        await client.query(`DROP DATABASE IF EXISTS ${made} WITH (FORCE)`);
        await createEmpty(client, made);
        await prepare(urlOf(url, made));
        await client.query(`ALTER DATABASE ${made} RENAME TO ${template}`);
      }
      await client.query('SELECT pg_advisory_unlock(7041976)');
    }
    await client.query(`CREATE DATABASE ${name} TEMPLATE ${template}`);
  });
  return serverOf(url, name);
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

function serverOf(url: string, name: string): TestServer {
  return {
    url: urlOf(url, name),
    dispose: () =>
      withClient(url, async (client) => {
        await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      }),
  };
}

/** A server that keeps what it acknowledged (fsync on). @param settings of PostgreSQL, by its names */
export async function ownCluster(settings: Readonly<Record<string, string>> = {}): Promise<OwnCluster> {
  const keeper = spawnKeeper(settings);
  const url = await keeper.start();
  return {
    url,
    stop: (mode = 'fast') => keeper.stop(mode),
    kill: () => keeper.kill(),
    start: async () => void (await keeper.start()),
    dispose: () => keeper.dispose(),
  };
}

function givenServer(): string | undefined {
  const given = process.env.COMITY_TEST_DATABASE_URL;
  return given === '' ? undefined : given;
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
