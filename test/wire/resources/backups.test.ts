/** `/meta/backups` (§4.21.4) over the running program: backups as operations, their list, their bound, and what no caller may choose. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { openClient, register } from '../../harness/account-client.ts';
import { runCommand } from '../../harness/command-line.ts';
import { type Answer, adminKey, type RequestOptions } from '../../harness/exchange.ts';
import {
  placeOf,
  type RunningServer,
  serverOfFile,
  shopConfig,
  startServer,
} from '../../harness/running-server.ts';
import { spawnServer } from '../../harness/server-process.ts';
import { smallDisk } from '../../harness/small-disk.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { eventually, until } from '../../harness/until.ts';

const path = '/api/v1/meta/backups';
const program = await serverOfFile();

type Backup = { id: string; file: string; bytes: number; createdAt: string };
type Sends = Pick<RunningServer, 'send'>;

async function listed(at: Sends): Promise<readonly Backup[]> {
  const { status, body } = await at.send('GET', path);
  assert.equal(status, 200, body);
  return (JSON.parse(body) as { items: Backup[] }).items;
}

/** The operation once it has ended: 303 to the backup, or 200 with the failure. */
function ended(at: Sends, location: string): Promise<Answer> {
  return eventually(async () => {
    const answer = await at.send('GET', location);
    return answer.status === 200 && answer.json().status === 'pending' ? undefined : answer;
  }, `the end of ${location}`);
}

async function begun(at: Sends, options: RequestOptions = {}): Promise<string> {
  const answer = await at.send('POST', path, options);
  assert.equal(answer.status, 202, answer.body);
  assert.equal(answer.json().status, 'pending');
  assert.match(String(answer.headers.location), /^\/api\/v1\/operations\/op_\w+$/);
  return String(answer.headers.location);
}

/** Makes one, and reads it. */
async function backUp(at: Sends): Promise<Backup> {
  const answer = await ended(at, await begun(at));
  assert.equal(answer.status, 303, answer.body);
  return (await at.send('GET', String(answer.headers.location))).json() as Backup;
}

async function startWith(t: TestContext, env: Readonly<Record<string, string>>): Promise<RunningServer> {
  const server = await startServer({ env });
  t.after(() => server.stop());
  return server;
}

test('makes a backup as an operation, and lists it with its size and time', async () => {
  await program.send('POST', '/api/v1/categories', { json: { name: 'before the backup' } });
  const startedAt = Date.now();
  const backup = await backUp(program);
  assert.match(backup.file, /^\d{8}T\d{6}Z_bak_\w{26}\.db$/);
  // The time in the name of a file has no milliseconds.
  assert.ok(Date.parse(backup.createdAt) >= startedAt - 1000 && Date.parse(backup.createdAt) <= Date.now());
  const file = join(program.folder, 'backups', backup.file);
  assert.deepEqual([statSync(file).size, statSync(file).mode & 0o777], [backup.bytes, 0o600]);
  assert.deepEqual((await listed(program))[0], backup);
  const copy = new DatabaseSync(file, { readOnly: true });
  const [row] = copy
    .prepare('SELECT count(*) AS rows FROM categories WHERE doc LIKE ?')
    .all('%before the backup%');
  assert.equal(row?.rows, 1);
  copy.close();
  const trail = await program.send('GET', '/api/v1/audit?type=backup.created');
  assert.ok(trail.body.includes(backup.id));
});

test('restores a backup that was made by a request', async () => {
  const { file } = await backUp(program);
  const data = join(temporaryFolder(), 'data');
  const made = join(program.folder, 'backups', file);
  const { code, stderr } = await runCommand(['restore', made], {
    COMITY_DATA: data,
    COMITY_CONFIG: shopConfig,
  });
  assert.equal(code, 0, stderr);
  assert.ok(existsSync(join(data, 'comity.db')));
});

test('takes no path and no name from a caller', async () => {
  for (const json of [{ path: '../x.db' }, { file: 'x.db' }, { folder: '/' }]) {
    const { status } = await program.send('POST', path, { json });
    assert.equal(status, 422);
  }
  const store = join(program.folder, 'backups', '..', 'comity.db');
  const before = existsSync(store);
  for (const id of ['..%2Fcomity', '..%2F..%2Fcomity.db', 'bak_', '%2Fetc%2Fpasswd', '.', '%00']) {
    for (const method of ['GET', 'DELETE']) {
      const { status } = await program.send(method, `${path}/${id}`);
      assert.ok(status === 404 || status === 400, `${method} ${id}: ${status}`);
    }
  }
  assert.equal(existsSync(store), before);
});

test('lists only files that it has made itself', async () => {
  const folder = join(program.folder, 'backups');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'notes.txt'), 'mine');
  writeFileSync(join(folder, '20260801T093000Z_bak_x.db'), 'not one');
  mkdirSync(join(folder, `20260801T093000Z_bak_${'0'.repeat(26)}.db`), { recursive: true });
  for (const { file } of await listed(program)) assert.ok(statSync(join(folder, file)).isFile());
  assert.equal((await program.send('DELETE', `${path}/bak_${'0'.repeat(26)}`)).status, 404);
});

test('keeps at most COMITY_BACKUPS_MAX backups, until one is deleted', async (t) => {
  const server = await startWith(t, { COMITY_BACKUPS_MAX: '2' });
  const first = await backUp(server);
  await backUp(server);
  const refused = await server.send('POST', path);
  assert.deepEqual([refused.status, refused.json().code], [409, 'backups_exhausted']);
  assert.match(String(refused.json().error), /the limit of 2 backups .* \(COMITY_BACKUPS_MAX\)/);
  assert.equal((await server.send('DELETE', `${path}/${first.id}`)).status, 204);
  assert.equal((await server.send('DELETE', `${path}/${first.id}`)).status, 404);
  assert.equal(existsSync(join(server.folder, 'backups', first.file)), false);
  await backUp(server);
  assert.equal((await listed(server)).length, 2);
});

test('makes backups that were asked for at once one after the other, and never more than the limit', async (t) => {
  const server = await startWith(t, { COMITY_BACKUPS_MAX: '3' });
  const answers = await Promise.all(Array.from({ length: 12 }, () => server.send('POST', path)));
  const locations = answers
    .filter(({ status }) => status === 202)
    .map(({ headers }) => String(headers.location));
  for (const { status, body } of answers)
    if (status !== 202) assert.equal(JSON.parse(body).code, 'backup_running');
  const ends = await Promise.all(locations.map((location) => ended(server, location)));
  const made = ends.filter(({ status }) => status === 303).length;
  assert.ok(made >= 1 && made <= 3);
  assert.equal((await listed(server)).length, made);
  for (const { status, body } of ends)
    if (status !== 303) assert.equal(JSON.parse(body).outcome.code, 'backups_exhausted');
});

test('says why a backup cannot be written, and serves on', async (t) => {
  const folder = join(temporaryFolder(), 'a-file');
  writeFileSync(folder, '');
  const server = await startWith(t, { COMITY_BACKUP_FOLDER: folder });
  const refused = await server.send('POST', path);
  assert.deepEqual([refused.status, refused.json().code], [500, 'backup_failed']);
  assert.match(String(refused.json().error), /^the backup cannot be written to .*a-file: /);
  assert.equal((await server.send('GET', '/health/ready')).status, 200);
});

test('refuses a backup for which the disk has no space, and leaves nothing', async (t) => {
  const disk = smallDisk(t, '6m');
  if (disk === undefined) return;
  const server = await startWith(t, { COMITY_BACKUP_FOLDER: disk });
  const refused = await server.send('POST', path);
  assert.deepEqual([refused.status, refused.json().code], [507, 'backup_space_missing']);
  assert.ok(Number(refused.json().freeBytes) < Number(refused.json().neededBytes));
  assert.deepEqual(readdirSync(disk), []);
});

test('shows and makes backups for administrators alone', async (t) => {
  const client = openClient(program.port);
  t.after(() => client.close());
  const { token } = await register(client, 'ada@backups.example', 'correct horse battery staple');
  const headers = { Authorization: `Bearer ${token}` };
  for (const [method, target] of [
    ['GET', path],
    ['POST', path],
    ['GET', `${path}/bak_x`],
    ['DELETE', `${path}/bak_x`],
  ] as const) {
    assert.equal((await client.ask(method, target)).status, 401);
    assert.equal((await client.ask(method, target, { headers })).status, 403);
  }
});

test('makes a backup that a killed process had accepted, once, and removes what that left unfinished', async (t) => {
  const folder = temporaryFolder();
  const place = await placeOf({ folder });
  t.after(() => place.remove());
  const options = { folder, env: { COMITY_ADMIN_KEY: adminKey } };
  const killed = await spawnServer(options);
  const location = await begun(killed);
  await killed.kill();
  const backups = join(folder, 'backups');
  mkdirSync(backups, { recursive: true });
  const left = join(backups, `20260801T093000Z_bak_${'1'.repeat(26)}.db.partial`);
  writeFileSync(left, 'half a copy');
  // On a store of several processes, only what was not written for an hour is known to be left.
  utimesSync(left, 0, 0);
  const next = await spawnServer(options);
  t.after(() => next.stop());
  const end = await ended(next, location);
  assert.equal(end.status, 303, end.body);
  await until(() => !existsSync(left), 'the unfinished file is removed');
  const backup = (await next.send('GET', String(end.headers.location))).json();
  assert.ok((await listed(next)).some(({ id }) => id === backup.id));
});
