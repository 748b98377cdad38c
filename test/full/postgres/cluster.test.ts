/**
 * The PostgreSQL that tests get, with servers of these tests' own: real, apart from each other, and gone with the process that asked for it.
 * What every test of the default tier relies on is in test/postgres/emptied-database.test.ts.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { createInterface } from 'node:readline';
import { describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { emptyDatabase } from '../../harness/postgres-database.ts';
import { findOwner, type Owner } from '../../harness/postgres-server/binaries.ts';
import { ownCluster } from '../../harness/postgres-server/own-cluster.ts';

const childPath = fileURLToPath(new URL('./cluster-child.ts', import.meta.url));
const goneMs = 10_000;
const lookAgainMs = 20;

describe('emptyDatabase', () => {
  it('gives each asker an empty database of its own', async () => {
    const [one, other] = await Promise.all([emptyDatabase(), emptyDatabase()]);
    assert.notEqual(one.url, other.url);
    await ask(one.url, 'CREATE TABLE mine (id text)');
    const tables = `SELECT count(*)::int FROM pg_tables WHERE schemaname = 'public'`;
    assert.deepEqual(await ask(one.url, tables), [[1]]);
    assert.deepEqual(await ask(other.url, tables), [[0]]);
    assert.deepEqual(await ask(one.url, 'SHOW server_encoding'), [['UTF8']]);
    await one.dispose();
    await assert.rejects(ask(one.url, 'SELECT 1'), { code: '3D000' });
    await other.dispose();
  });

  it('drops a database that somebody is still connected to', async () => {
    const server = await emptyDatabase();
    const client = new pg.Client({ connectionString: server.url });
    const ended = new Promise((resolve) => client.once('end', resolve));
    client.on('error', () => undefined);
    await client.connect();
    await server.dispose();
    await ended;
    await assert.rejects(ask(server.url, 'SELECT 1'), { code: '3D000' });
  });
});

describe('ownCluster', () => {
  it('keeps what was committed over every way of stopping it', async () => {
    const cluster = await ownCluster();
    try {
      await ask(cluster.url, 'CREATE TABLE kept (way text)');
      for (const way of ['fast', 'immediate', 'kill'] as const) {
        await ask(cluster.url, `INSERT INTO kept VALUES ('${way}')`);
        await (way === 'kill' ? cluster.kill() : cluster.stop(way));
        await assert.rejects(ask(cluster.url, 'SELECT 1'), { code: 'ECONNREFUSED' });
        await cluster.start();
      }
      const kept = await ask(cluster.url, 'SELECT way FROM kept');
      assert.deepEqual(kept, [['fast'], ['immediate'], ['kill']]);
    } finally {
      await cluster.dispose();
    }
  });

  it('takes the settings of the server', async () => {
    const cluster = await ownCluster({ max_connections: '7' });
    try {
      assert.deepEqual(await ask(cluster.url, 'SHOW max_connections'), [['7']]);
      assert.deepEqual(await ask(cluster.url, 'SHOW fsync'), [['on']]);
    } finally {
      await cluster.dispose();
    }
  });

  it('goes with an owner that is killed', async () => {
    const { keeper, url } = await killedOwner({}, 'ready');
    await gone(keeper);
    await assert.rejects(ask(url, 'SELECT 1'), { code: 'ECONNREFUSED' });
  });

  it('goes with an owner that is killed before the server is there', async () => {
    const { keeper } = await killedOwner({}, 'starting');
    await gone(keeper);
  });

  it('runs for a user who is not root', { skip: notForAnother() }, async () => {
    const { keeper, answer } = await killedOwner(findOwner(), 'ready');
    assert.equal(answer, '1');
    await gone(keeper);
  });
});

type Killed = { readonly keeper: number; readonly url: string; readonly answer: string };

/** Starts a process that has a cluster of its own, and kills it with SIGKILL once it is as far as that. */
async function killedOwner(user: Owner, when: 'starting' | 'ready'): Promise<Killed> {
  const child = spawn(process.execPath, [childPath], { ...user, stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async (): Promise<string> => String((await lines.next()).value);
  const keeper = Number(await line());
  const [url, answer] = when === 'ready' ? [await line(), await line()] : ['', ''];
  assert.ok(isRunning(keeper));
  child.kill('SIGKILL');
  await once(child, 'exit');
  return { keeper, url, answer };
}

/** Waits until the keeper and the folder that it made are away: neither tells anybody when it goes. */
async function gone(keeper: number): Promise<void> {
  const left = () => readdirSync(tmpdir()).filter((name) => name.startsWith(`comity-postgres-${keeper}-`));
  const deadline = Date.now() + goneMs;
  while (isRunning(keeper) && Date.now() < deadline) await pause(lookAgainMs);
  assert.equal(isRunning(keeper), false, 'the keeper still runs');
  assert.deepEqual(left(), []);
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Another user's process may not be signalled, but is there.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Why the tests cannot be run as another user here; false where they can. */
function notForAnother(): string | false {
  if (process.getuid?.() !== 0) return 'these tests run as that other user';
  const look = `require('fs').accessSync(${JSON.stringify(childPath)})`;
  const seen = spawnSync(process.execPath, ['-e', look], { ...findOwner(), stdio: 'ignore' });
  return seen.status === 0 ? false : 'another user cannot read this folder';
}

async function ask(url: string, sql: string): Promise<readonly unknown[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query({ text: sql, rowMode: 'array' })).rows;
  } finally {
    await client.end();
  }
}
