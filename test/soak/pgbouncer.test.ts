/**
 * The connections of the store through PgBouncer in transaction mode, the pooler that most often stands in front of PostgreSQL.
 * It runs where `pgbouncer` is on the PATH, with two sessions for everything, so that calls of one connection and of
 * different ones go through sessions that others have used.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Changes } from '../../src/store/postgres/changes.ts';
import { type Address, addressOf } from '../../src/store/postgres/connection/address.ts';
import { type Call, createConnection } from '../../src/store/postgres/connection/connection.ts';
import { createReadLane, ScanLane } from '../../src/store/postgres/connection/lanes.ts';
import { isRetryable } from '../../src/store/postgres/postgres-failure.ts';
import { StoreUnavailable } from '../../src/store/store.ts';
import { emptyDatabase, type TestDatabase } from '../harness/postgres-database.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';
import { plain, sql } from '../postgres/connection/open.ts';
import { freePort } from '../wire/free-port.ts';

const version = versionOfPgbouncer();
const skip = version === undefined ? 'pgbouncer is not on the PATH' : false;

const loadMs = 5_000;
const rows = 1_000;

let server: TestDatabase;
let folder: string;
let port: number;
let pooler: ChildProcess;
let address: Address;

before(async () => {
  if (skip !== false) return;
  server = await emptyDatabase();
  folder = temporaryFolder();
  // It refuses to run as root, and reads its configuration as the user that it becomes.
  chmodSync(folder, 0o755);
  port = await freePort();
  writeFileSync(join(folder, 'pgbouncer.ini'), configuration(new URL(server.url), port));
  pooler = await startPooler();
  const url = new URL(server.url);
  url.hostname = '127.0.0.1';
  url.port = String(port);
  address = addressOf(url.href);
});

after(async () => {
  if (skip !== false) return;
  await stopPooler();
  await server.dispose();
});

test(`reads, scans and transactions go through ${version ?? 'PgBouncer'}, and each gets its own answers`, {
  skip,
}, async (t) => {
  const bounds = { address, connectTimeoutMs: 5_000, timeoutMs: 5_000 };
  const reads = createReadLane(bounds, 2);
  const scans = new ScanLane(bounds, 2, 100);
  const commits = createConnection({ ...bounds, name: 'comity commit' });
  t.after(() => Promise.all([reads.close(), scans.close(), commits.close()]));
  await commits.send([
    plain(
      `CREATE TABLE counted (n int PRIMARY KEY, v int); INSERT INTO counted SELECT generate_series(1, ${rows}), 0`,
    ),
  ]);
  const some = (): number => 1 + Math.floor(Math.random() * rows);
  const committed = new Map<number, number>();
  const until = performance.now() + loadMs;
  let done = 0;
  const repeat = async (times: number, work: (worker: number) => Promise<void>): Promise<void> => {
    const worker = async (_: unknown, number: number): Promise<void> => {
      for (; performance.now() < until; done += 1) await work(number);
    };
    await Promise.all(Array.from({ length: times }, worker));
  };
  await Promise.all([
    repeat(8, async () => {
      const n = some();
      assert.deepEqual(await reads.send(sql('SELECT n FROM counted WHERE n = $1::int', n)), [[n]]);
    }),
    repeat(8, async () => {
      const n = some();
      assert.deepEqual(await reads.send(sql('SELECT n, n + 1 FROM counted WHERE n = ANY ($1::int[])', [n])), [
        [n, n + 1],
      ]);
    }),
    repeat(4, async () => {
      assert.deepEqual(await scans.read(sql('SELECT count(*) FROM counted WHERE v >= $1::int', 0)), [[rows]]);
    }),
    repeat(4, async (worker) => {
      const n = worker + 1;
      const before = committed.get(n) ?? 0;
      const flight: readonly Call[] = [
        plain('BEGIN'),
        sql('UPDATE counted SET v = v + 1 WHERE n = $1::int', n),
        sql('SELECT v FROM counted WHERE n = $1::int', n),
        plain('COMMIT'),
      ];
      const send = () => commits.send(flight);
      const replies = await send().catch((error: unknown) => {
        assert.ok(isRetryable(error), String(error));
        return send();
      });
      assert.equal(replies[1]?.affected, 1);
      assert.deepEqual(replies[2]?.rows, [[before + 1]]);
      committed.set(n, before + 1);
    }),
  ]);
  t.diagnostic(`${done} calls in ${loadMs} ms`);
  assert.ok(done > 0);
});

test('changes are followed by looking, because no notification comes through', { skip }, async (t) => {
  const observed = Promise.withResolvers<string>();
  const changed = Promise.withResolvers<readonly string[]>();
  let rev = 0;
  const changes = new Changes({
    address,
    schema: 'pooled',
    pollMs: 50,
    connectTimeoutMs: 5_000,
    numbers: new Map([['products', 1]]),
    onChanged: (tables) => changed.resolve([...tables]),
    onLost: () => undefined,
    readCounters: () =>
      Promise.resolve([
        [0, rev],
        [1, rev],
      ]),
    observe: ({ how }) => observed.resolve(how),
  });
  t.after(() => changes.close());
  assert.equal(await observed.promise, 'poll');
  rev = 1;
  assert.deepEqual(await changed.promise, ['products']);
});

test('a pooler that is stopped and started is found again without help', { skip }, async (t) => {
  const reads = createReadLane({ address, connectTimeoutMs: 5_000, timeoutMs: 5_000 }, 2);
  t.after(() => reads.close());
  await reads.ping();
  await stopPooler();
  await assert.rejects(reads.ping(), StoreUnavailable);
  pooler = await startPooler();
  for (;;) {
    try {
      await reads.ping();
      break;
    } catch (error) {
      assert.ok(error instanceof StoreUnavailable);
      await delay(20);
    }
  }
});

function configuration(target: URL, ownPort: number): string {
  const { hostname, username, password, pathname } = target;
  const database = pathname.slice(1);
  return `[databases]
${database} = host=${hostname} port=${target.port || '5432'} dbname=${database} user=${decodeURIComponent(username)} password=${decodeURIComponent(password)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${ownPort}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
max_client_conn = 100
`;
}

async function startPooler(): Promise<ChildProcess> {
  const isRoot = process.getuid?.() === 0;
  const child = spawn(
    'pgbouncer',
    [...(isRoot ? ['-u', 'nobody'] : []), '-q', join(folder, 'pgbouncer.ini')],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  let words = '';
  child.stderr?.on('data', (bytes: Buffer) => {
    words += bytes.toString();
  });
  while (!(await accepts(port))) {
    assert.equal(child.exitCode, null, `pgbouncer ended: ${words}`);
    await delay(20);
  }
  return child;
}

async function stopPooler(): Promise<void> {
  const ended = once(pooler, 'exit');
  pooler.kill('SIGKILL');
  await ended;
}

async function accepts(onPort: number): Promise<boolean> {
  const socket = connect(onPort, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    // Not yet.
    return false;
  } finally {
    socket.destroy();
  }
}

function versionOfPgbouncer(): string | undefined {
  try {
    return execFileSync('pgbouncer', ['--version'], { encoding: 'utf8' }).split('\n')[0];
  } catch {
    // Not on the PATH.
    return undefined;
  }
}
