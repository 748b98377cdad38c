/** Why PostgreSQL cannot be used: one line that names the database and the remedy, never the password, and exit code 1. */
import assert from 'node:assert/strict';
import { createServer, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { databaseFailure, startFailure } from '../../src/cli/start-failure.ts';
import { loadSettings } from '../../src/config/load-settings.ts';
import { ConnectFailed } from '../../src/store/postgres/connection/client.ts';
import { DatabaseFailed, UnfitServer } from '../../src/store/postgres/postgres-failure.ts';
import { checkServer } from '../../src/store/postgres/schema/open-schema.ts';
import { schemaNumber } from '../../src/store/postgres/schema/schema-plan.ts';
import { StoreUnavailable } from '../../src/store/store.ts';
import { runCommand } from '../harness/command-line.ts';
import { listen } from '../harness/listening.ts';
import { emptyDatabase } from '../harness/postgres-database.ts';
import { shopConfig as shop } from '../harness/running-server.ts';
import { freePort } from '../wire/free-port.ts';
import { refusalOf } from './database-refusal.ts';

const secret = 'hunter2-hunter2';
const role = `comity_cli_${process.pid}`;

const server = await emptyDatabase();
const client = new pg.Client({ connectionString: server.url });
await client.connect();
const database = new URL(server.url).pathname.slice(1);

before(() => client.query(`CREATE ROLE ${role} LOGIN PASSWORD '${secret}'`));
after(async () => {
  await client.query(`DROP OWNED BY ${role} CASCADE`);
  await client.end();
  await server.dispose();
  const other = await emptyDatabase();
  const last = new pg.Client({ connectionString: other.url });
  await last.connect();
  await last.query(`DROP ROLE ${role}`);
  await last.end();
  await other.dispose();
});

/** The URL of the server with parts of it changed. */
function urlWith(
  parts: Partial<Record<'hostname' | 'port' | 'pathname' | 'username' | 'password' | 'search', string>>,
): string {
  return Object.assign(new URL(server.url), parts).href;
}

const asRole = { username: role, password: secret };

function refusal(url: string, environment: Readonly<Record<string, string>> = {}): Promise<string> {
  return refusalOf(url, [secret, new URL(server.url).password], environment);
}

/** A port that takes connections and does with them as told. */
async function portWhere(take: (socket: Socket) => void): Promise<string> {
  return String((await listen(createServer(take), { after })).port);
}

test('tells that nothing listens there', async () => {
  assert.equal(
    await refusal(urlWith({ port: String(await freePort()) })),
    'cannot be used: nothing listens there; start it, or correct the host and port in COMITY_DATABASE_URL',
  );
});

test('tells that the host is not known', async () => {
  assert.equal(
    await refusal(urlWith({ hostname: 'no-such-host.invalid' })),
    'cannot be used: the name no-such-host.invalid has no address; correct the host and port in COMITY_DATABASE_URL',
  );
});

test('tells that no connection came about in time, and which setting bounds it', async () => {
  const port = await portWhere(() => undefined);
  assert.match(
    await refusal(urlWith({ port }), { COMITY_DATABASE_CONNECT_TIMEOUT_MS: '300' }),
    /^cannot be used: no connection within 300 ms \(COMITY_DATABASE_CONNECT_TIMEOUT_MS\); correct the host/,
  );
});

test('tells that what listens there is no PostgreSQL', async () => {
  const port = await portWhere((socket) => socket.end());
  assert.match(
    await refusal(urlWith({ port, search: 'sslmode=disable' })),
    /^cannot be used: the server there closes the connection, so it may not be PostgreSQL; correct/,
  );
});

test('tells a wrong password and an unknown user alike, as the server does', async () => {
  for (const parts of [
    { ...asRole, password: `${secret}x` },
    { username: 'nobody_here', password: secret },
  ]) {
    assert.equal(
      await refusal(urlWith(parts)),
      `cannot be used: the password of user ${parts.username} is wrong, or there is no such user; correct COMITY_DATABASE_URL`,
    );
  }
});

test('tells that a password is missing', async () => {
  assert.equal(
    await refusal(urlWith({ ...asRole, password: '' })),
    `cannot be used: it requires a password; set the one of user ${role} in COMITY_DATABASE_URL or PGPASSWORD`,
  );
});

test('tells that there is no such database, and how to make it', async () => {
  assert.equal(
    await refusal(urlWith({ pathname: '/nowhere' })),
    'cannot be used: there is no such database; create it with "createdb --encoding=UTF8 nowhere", or correct COMITY_DATABASE_URL',
  );
});

test('tells which right is missing, and the statement that gives it', async () => {
  assert.equal(
    await refusal(urlWith(asRole)),
    `cannot be used: the user ${role} lacks the privilege CREATE on the database, to create the schema comity; as the owner run: CREATE SCHEMA "comity" AUTHORIZATION "${role}"`,
  );
});

test('tells that the server takes no more connections, and what this program takes', async () => {
  await client.query(`ALTER ROLE ${role} CONNECTION LIMIT 0`);
  assert.match(
    await refusal(urlWith(asRole)),
    /^cannot be used: it takes no more connections; raise its max_connections, or lower COMITY_DATABASE_READ_CONNECTIONS \(2\) or COMITY_DATABASE_SCAN_CONNECTIONS \(4\)$/,
  );
  await client.query(`ALTER ROLE ${role} CONNECTION LIMIT -1`);
});

test('tells that transactions are read-only here', async () => {
  await client.query(`ALTER ROLE ${role} SET default_transaction_read_only = on`);
  assert.match(
    await refusal(urlWith(asRole)),
    /^cannot be used: transactions of \S+ are read-only \(default_transaction_read_only is on\)/,
  );
  await client.query(`ALTER ROLE ${role} RESET ALL`);
});

test('tells a wrong encoding', async () => {
  await client.query(`CREATE DATABASE ${database}_latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'`);
  assert.match(
    await refusal(urlWith({ pathname: `/${database}_latin` })),
    /^cannot be used: the database has the encoding LATIN1, but Comity needs UTF8; create one with CREATE DATABASE/,
  );
  await client.query(`DROP DATABASE ${database}_latin`);
});

test('tells that the server has no TLS where the URL asks for it', async () => {
  assert.match(
    await refusal(urlWith({ search: 'sslmode=require' })),
    /^cannot be used: it does not speak TLS, which sslmode in COMITY_DATABASE_URL requires/,
  );
});

test('tells what is wrong with the URL itself, and exits 2', async () => {
  for (const [url, told] of [
    ['mysql://localhost/app', 'must start with postgres://'],
    ['postgres://localhost', 'must name a database, such as /comity at its end'],
    [urlWith({ search: 'sslmod=require' }), 'the URL of the database has an unknown parameter "sslmod"'],
    [urlWith({ search: 'sslmode=verify-ca&sslrootcert=/nowhere.pem' }), '/nowhere.pem'],
  ] as const) {
    const { code, stderr } = await runCommand(['serve'], { COMITY_CONFIG: shop, COMITY_DATABASE_URL: url });
    assert.equal(code, 2, stderr);
    assert.ok(stderr.includes('COMITY_DATABASE_URL') && stderr.includes(told), stderr);
    assert.ok(!stderr.includes(new URL(server.url).password), stderr);
  }
});

test('tells that the schema was made by a newer program', async () => {
  const environment = { COMITY_DATABASE_URL: server.url, COMITY_CONFIG: shop };
  assert.equal((await runCommand(['migrate'], environment)).code, 0);
  await client.query(`INSERT INTO comity.comity_migrations VALUES (99, 'later', 1, 'next')`);
  assert.equal(
    await refusal(server.url),
    `is too new for this program: the schema "comity" was made by a newer version of Comity (schema 99; this version supports up to ${schemaNumber}); run the newer program`,
  );
  const migrated = await runCommand(['migrate'], environment);
  assert.equal(migrated.code, 1);
  assert.match(migrated.stderr, /^comity: PostgreSQL at \S+ is too new for this program/);
});

const { settings } = loadSettings(
  { COMITY_DATABASE_URL: `postgres://me:${secret}@db.example:6432/app` },
  {},
  {},
);

function coded(code: string, message = 'told by the system'): Error {
  return Object.assign(new Error(message), { code });
}

for (const [cause, words] of [
  [coded('EAI_AGAIN'), 'has no address'],
  [coded('EHOSTUNREACH'), 'no network route leads there'],
  [coded('ENOENT'), 'nothing listens there'],
  [coded('ECONNRESET'), 'closes the connection'],
  [coded('CERT_HAS_EXPIRED'), 'its certificate has expired'],
  [coded('SELF_SIGNED_CERT_IN_CHAIN'), '?sslrootcert='],
  [coded('ERR_SSL_WRONG_VERSION_NUMBER'), 'TLS failed (ERR_SSL_WRONG_VERSION_NUMBER)'],
  [new ConnectFailed('ENOBINDING', 'none'), 'channel binding'],
  [
    serverError('42501', 'must be owner of table things'),
    'lacks a privilege (must be owner of table things)',
  ],
  [serverError('57P03', 'starting up'), 'starting or shutting down'],
  [serverError('58030', 'could not write'), 'could not write (SQLSTATE 58030)'],
  [coded('', 'something new'), 'something new'],
] satisfies readonly (readonly [Error, string])[]) {
  test(`puts ${words} into one line that names the database`, () => {
    const told = databaseFailure(new DatabaseFailed(cause), settings);
    assert.ok(told);
    assert.ok(told.message.startsWith('PostgreSQL at db.example:6432/app cannot be used: '), told.message);
    assert.ok(told.message.includes(words), told.message);
    assert.equal(told.exitCode, 1);
  });
}

test('words what the store reports later in the same way', () => {
  const told = databaseFailure(
    new StoreUnavailable('failed', { cause: serverError('53300', 'too many') }),
    settings,
  );
  assert.match(
    told?.message ?? '',
    /^PostgreSQL at db\.example:6432\/app cannot be used: it takes no more connections/,
  );
  const plain = databaseFailure(new StoreUnavailable('no connection within 5000 ms'), settings);
  assert.equal(
    plain?.message,
    'PostgreSQL at db.example:6432/app cannot be used: no connection within 5000 ms',
  );
});

test('leaves what is no failure of the database to others', () => {
  const inUse = Object.assign(coded('EADDRINUSE'), { syscall: 'listen' });
  assert.equal(databaseFailure(inUse, settings), undefined);
  assert.match(String(startFailure(inUse, settings)), /port 4000 on 127\.0\.0\.1 is already in use/);
  const { settings: embedded } = loadSettings({}, {}, {});
  assert.equal(databaseFailure(new DatabaseFailed(coded('ECONNREFUSED')), embedded), undefined);
});

test('refuses a server that is older than 14', async () => {
  const facts = [130_021, '13.21', 'UTF8', false, 'off', 'me', 'app'];
  const session = {
    rows: async () => [facts],
    isDirect: async () => true,
    processNumber: 1,
    end: async () => undefined,
  };
  await assert.rejects(checkServer(session), (error) => {
    assert.ok(error instanceof UnfitServer);
    assert.equal(error.message, 'the server is PostgreSQL 13.21, but Comity needs 14 or later');
    return true;
  });
});

function serverError(state: string, message: string): Error {
  return Object.assign(new pg.DatabaseError(message, message.length, 'error'), { code: state });
}
