import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { addressOf } from '../../../src/store/postgres/connection/address.ts';
import { ConnectFailed, openClient } from '../../../src/store/postgres/connection/client.ts';
import { DatabaseFailed } from '../../../src/store/postgres/postgres-failure.ts';
import { openSession } from '../../../src/store/postgres/schema/session.ts';
import { listen } from '../../harness/listening.ts';
import { emptyDatabase, type TestDatabase } from '../../harness/postgres-database.ts';
import { freePort } from '../../wire/free-port.ts';
import { caFile, tlsFront } from './tls-front.ts';
import { Wire } from './wire.ts';

let server: TestDatabase;
before(async () => {
  server = await emptyDatabase();
});
after(() => server.dispose());

/** What connecting to the URL once fails with; undefined where it succeeds. */
async function failureOf(url: string, timeoutMs = 10_000): Promise<unknown> {
  try {
    await (await openClient(addressOf(url), 'comity', timeoutMs)).end();
    return undefined;
  } catch (error) {
    return error;
  }
}

function changed(change: (url: URL) => void): string {
  const url = new URL(server.url);
  change(url);
  return url.href;
}

test('a wrong password and a database that is not there are told as the server told them', async () => {
  const session = await openSession(addressOf(server.url), 'comity', 10_000);
  const role = `comity_test_${process.pid}`;
  await session.rows(`CREATE ROLE ${role} LOGIN PASSWORD 'right'`);
  try {
    const wrongPassword = changed((url) => {
      url.username = role;
      url.password = 'wrong';
    });
    const wrongDatabase = changed((url) => {
      url.pathname = '/nowhere_at_all';
    });
    for (const [url, code] of [
      [wrongPassword, '28P01'],
      [wrongDatabase, '3D000'],
    ] as const) {
      const failure = await failureOf(url);
      assert.ok(failure instanceof pg.DatabaseError, String(failure));
      assert.equal(failure.code, code);
    }
  } finally {
    await session.rows(`DROP ROLE ${role}`);
    await session.end();
  }
});

test('a port where nobody listens and a name that nobody has are told with the code of the system', async () => {
  const refused = await failureOf(`postgres://u:p@127.0.0.1:${await freePort()}/db`);
  assert.equal((refused as { code?: string }).code, 'ECONNREFUSED');
  const unknown = await failureOf('postgres://u:p@no-such-host.invalid/db');
  assert.match(String((unknown as { code?: string }).code), /^(ENOTFOUND|EAI_AGAIN)$/);
});

test('a server that does not answer is given up in time', async (t) => {
  const wire = await Wire.before(server.url, t);
  wire.lossy = true;
  const failure = await failureOf(wire.url, 100);
  assert.ok(failure instanceof ConnectFailed, String(failure));
  assert.equal(failure.code, 'ETIMEDOUT');
  assert.match(failure.message, /no connection within 100 ms/);
});

test('a server that hangs up without a word is told as such', async (t) => {
  const wire = await Wire.before(server.url, t);
  wire.refusing = true;
  const failure = await failureOf(wire.url);
  assert.ok(failure instanceof ConnectFailed, String(failure));
  assert.equal(failure.code, 'ECONNCLOSED');
});

test('a server of another kind is given up', async (t) => {
  const listener = createServer((socket) => {
    socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
    // What the client sent must be read for the close to be seen.
    socket.resume();
  });
  const { port } = await listen(listener, t);
  for (const mode of ['disable', 'require']) {
    const failure = await failureOf(`postgres://u:p@127.0.0.1:${port}/db?sslmode=${mode}`, 1_000);
    assert.ok(failure instanceof ConnectFailed, String(failure));
  }
});

test('a session that was cut is not made again', async (t) => {
  const wire = await Wire.before(server.url, t);
  const session = await openSession(addressOf(wire.url), 'comity', 10_000);
  assert.deepEqual(await session.rows('SELECT 1'), [[1]]);
  wire.hold();
  const answer = session.rows('SELECT 1');
  await wire.untilAsked(2);
  wire.cut();
  await assert.rejects(answer, DatabaseFailed);
  await assert.rejects(session.rows('SELECT 1'), DatabaseFailed);
  await session.end();
});

for (const [kind, conduct, isAnswered] of [
  ['short', 'works', false],
  ['short', 'is silent', false],
  ['long', 'works', true],
  ['long', 'is silent', false],
] as const) {
  const does = isAnswered ? 'waits for' : 'gives up';
  test(`a ${kind} session ${does} a statement of a server that ${conduct}`, async (t) => {
    const wire = await Wire.before(server.url, t);
    const bounds = { answerTimeoutMs: 200, isLong: kind === 'long' };
    const session = await openSession(addressOf(wire.url), 'comity', 3000, bounds);
    t.after(() => session.end());
    wire.lossy = conduct === 'is silent';
    const answer = session.rows('SELECT 1 FROM pg_sleep(1.5)');
    if (isAnswered) assert.deepEqual(await answer, [[1]]);
    else await assert.rejects(answer, /no reply within \d+ ms/);
  });
}

test('sessions are named after their purpose, or as the URL says', async (t) => {
  const nameOf = async (url: string): Promise<unknown> => {
    const session = await openSession(addressOf(url), 'comity purpose', 10_000);
    t.after(() => session.end());
    return (await session.rows("SELECT current_setting('application_name')"))[0]?.[0];
  };
  assert.equal(await nameOf(server.url), 'comity purpose');
  assert.equal(await nameOf(`${server.url}?application_name=shop`), 'shop');
});

test('a server without TLS is spoken to without, unless the URL requires it', async () => {
  for (const mode of ['', '?sslmode=disable', '?sslmode=allow', '?sslmode=prefer']) {
    assert.equal(await failureOf(server.url + mode), undefined, mode);
  }
  for (const mode of ['require', `verify-ca&sslrootcert=${caFile}`, 'verify-full']) {
    const failure = await failureOf(`${server.url}?sslmode=${mode}`);
    assert.ok(failure instanceof ConnectFailed, String(failure));
    assert.equal(failure.code, 'ENOTLS');
  }
});

test('TLS is used where the server has it, and who it is asked for as far as the URL says', async (t) => {
  const front = await tlsFront(server.url);
  t.after(() => front.close());
  const good = [
    front.url('localhost'),
    front.url('127.0.0.1', '?sslmode=require'),
    front.url('127.0.0.1', `?sslmode=require&sslrootcert=${caFile}`),
    front.url('127.0.0.1', `?sslmode=verify-ca&sslrootcert=${caFile}`),
    front.url('localhost', `?sslmode=verify-full&sslrootcert=${caFile}`),
  ];
  for (const url of good) {
    const before = front.encrypted;
    assert.equal(await failureOf(url), undefined, url.replace(/.*\?/, ''));
    assert.equal(front.encrypted, before + 1);
  }
  const codes: unknown[] = [];
  for (const url of [
    front.url('127.0.0.1', `?sslmode=verify-full&sslrootcert=${caFile}`),
    front.url('localhost', '?sslmode=verify-full'),
  ]) {
    codes.push(((await failureOf(url)) as { code?: string }).code);
  }
  assert.deepEqual(codes, ['ERR_TLS_CERT_ALTNAME_INVALID', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE']);
});

test('one in the middle who cannot bind the password to the channel is refused where the URL requires that', async (t) => {
  const front = await tlsFront(server.url);
  t.after(() => front.close());
  const failure = await failureOf(front.url('localhost', '?sslmode=require&channel_binding=require'));
  assert.ok(failure instanceof ConnectFailed, String(failure));
  assert.equal(failure.code, 'ENOBINDING');
});
