/** Why a PostgreSQL cannot be used whose own settings are the reason: a cluster of its own, restarted with others. */
import assert from 'node:assert/strict';
import { chownSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { refusalOf } from '../../cli/database-refusal.ts';
import { ownCluster } from '../../harness/postgres-server/own-cluster.ts';

const secret = 'hunter2-hunter2';
const asRole = { username: `comity_cli_${process.pid}`, password: secret };
const certificate = resolve('test/full/cli/fixtures/database-certificate.pem');

test('tells a standby, an unknown authority, a certificate for another name and a server that wants TLS', async (context) => {
  const cluster = await ownCluster();
  context.after(() => cluster.dispose());
  const refusal = (url: string): Promise<string> => refusalOf(url, [secret, new URL(cluster.url).password]);
  const folder = await dataFolderOf(cluster.url);
  const put = (name: string, text: string): void => {
    const { uid, gid } = statSync(folder);
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    chownSync(join(folder, name), uid, gid);
  };
  put('server.crt', readFileSync(certificate, 'utf8'));
  put('server.key', readFileSync(certificate, 'utf8'));
  put('pg_hba.conf', 'host all postgres all scram-sha-256\nhostssl all all all scram-sha-256\n');
  await cluster.stop();
  put('postgresql.auto.conf', 'ssl = on\n');
  await cluster.start();
  const ask = (search: string): Promise<string> =>
    refusal(Object.assign(new URL(cluster.url), { search }).href);
  assert.match(
    await ask('sslmode=verify-full'),
    /^cannot be used: its certificate comes from an unknown authority/,
  );
  assert.match(
    await ask(`sslmode=verify-full&sslrootcert=${certificate}`),
    /^cannot be used: its certificate is not for the name 127\.0\.0\.1; correct the host/,
  );
  assert.match(
    await refusal(Object.assign(new URL(cluster.url), { ...asRole, search: 'sslmode=disable' }).href),
    /^cannot be used: it refuses user \S+ \(.*\); correct the user .* \?sslmode=require$/,
  );
  await cluster.stop();
  put('standby.signal', '');
  // A standby never says that it takes writes, which is what the start waits for.
  cluster.start().catch(() => undefined);
  await answering(cluster.url);
  assert.equal(
    await ask(`sslmode=verify-ca&sslrootcert=${certificate}`),
    'cannot be used: the server is a standby, which accepts no writes; use the URL of the primary',
  );
});

/** Resolves when the server takes connections. */
async function answering(url: string): Promise<void> {
  for (;;) {
    const asker = new pg.Client({ connectionString: url });
    asker.on('error', () => undefined);
    const isUp = await asker.connect().then(
      () => true,
      () => false,
    );
    await asker.end().catch(() => undefined);
    if (isUp) return;
    await pause(50);
  }
}

async function dataFolderOf(url: string): Promise<string> {
  const owner = new pg.Client({ connectionString: url });
  await owner.connect();
  const { rows } = await owner.query('SHOW data_directory');
  await owner.end();
  return String(rows[0]?.data_directory);
}
