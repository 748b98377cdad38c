/**
 * The program is killed at random moments while clients upload, replace and remove files. After the restart a document and its octets are
 * both there or neither is, what was acknowledged stands, and no octets stay that no document has.
 * One round, 20 in the full tier, or as many as COMITY_SOAK_ROUNDS says.
 */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { adminKey } from '../../harness/exchange.ts';
import { roundsOf } from '../../harness/rounds.ts';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';

const rounds = roundsOf(1, 20);
const clients = 8;
const config = fileURLToPath(new URL('./fixtures/files.config.ts', import.meta.url));
const headers = { Authorization: `Bearer ${adminKey}` };
const folder = temporaryFolder();
let program: ServerProcess | undefined;
after(() => program?.kill());

const start = async (): Promise<ServerProcess> => {
  program = await spawnServer({ folder, config, env: { COMITY_UPLOAD_SECONDS: '1' } });
  return program;
};

/** What a client knows of its document. */
type Known = {
  readonly id: string;
  /** Digest of the last file that was acknowledged; null: there is none. */
  acknowledged: string | null;
  /** Sent and not answered: either may be what stands. */
  pending: string | null | undefined;
  uploads: number;
};

const documents: Known[] = [];

for (let round = 1; round <= rounds; round += 1) {
  test(`round ${round}: documents and octets agree after the kill`, async () => {
    const running = await start();
    const base = `http://127.0.0.1:${running.port}/api/v1/tickets`;
    const known = await Promise.all(Array.from({ length: clients }, () => create(base)));
    documents.push(...known);
    const working = known.map((one, at) => uploadUntilKilled(base, one, at));
    while (!known.some(({ uploads }) => uploads > 1)) await pause(5);
    await pause(Math.random() * 400);
    await running.kill();
    await Promise.all(working);
    const restarted = await start();
    for (const one of known) await check(`http://127.0.0.1:${restarted.port}/api/v1/tickets`, one);
    await restarted.stop();
  });
}

test('no octets stay that no document has', async () => {
  await pause(1100);
  const running = await start();
  const base = `http://127.0.0.1:${running.port}/api/v1/tickets`;
  const held = new Set<string>();
  for (const { id } of documents) {
    const ticket = (await (await fetch(`${base}/${id}`, { headers })).json()) as Ticket;
    if (ticket.attachment !== undefined) held.add(ticket.attachment.id);
  }
  await until(async () => {
    const names = await readdir(join(folder, 'files'), { recursive: true });
    const files = names.filter((name) => name.includes('file_'));
    return files.length === held.size && files.every((name) => held.has(name.slice(3, 34)));
  });
  await running.stop();
});

test('what uploads that ended in another process left in incoming goes after their lifetime, and nothing else', async () => {
  const own = temporaryFolder();
  const incoming = join(own, 'files/incoming');
  const begun = await spawnServer({ folder: own, config });
  const tus = { 'Tus-Resumable': '1.0.0', 'Content-Type': 'application/offset+octet-stream' };
  const creation = { headers: { ...tus, 'Upload-Length': '5' }, body: 'hel' };
  const path = String((await begun.send('POST', 'uploads', { ...creation, expect: 201 })).headers.location);
  await begun.stop();
  const [left, young] = [`file_${'0'.repeat(26)}.left`, `file_${'0'.repeat(26)}.young`];
  const upload = path.split('/').at(-1) ?? '';
  for (const name of [left, young, 'notes']) await writeFile(join(incoming, name), 'x');
  const old = Date.now() / 1000 - 2 * 86_400;
  for (const name of [left, upload, 'notes']) await utimes(join(incoming, name), old, old);
  const running = await spawnServer({ folder: own, config });
  await until(async () => !(await readdir(incoming)).includes(left));
  assert.deepEqual((await readdir(incoming)).sort(), [young, upload, 'notes'].sort());
  const rest = { headers: { ...tus, 'Upload-Offset': '3' }, body: 'lo' };
  await running.send('PATCH', path, { ...rest, expect: { status: 204, fields: { 'upload-offset': '5' } } });
  await running.stop();
});

type Ticket = {
  readonly id: string;
  readonly attachment?: { readonly id: string; readonly url: string; readonly digest: string };
};

async function create(base: string): Promise<Known> {
  const body = JSON.stringify({ title: 'a' });
  const made = await fetch(base, {
    method: 'POST',
    body,
    headers: { ...headers, 'Content-Type': 'application/json' },
  });
  return { id: ((await made.json()) as Ticket).id, acknowledged: null, pending: undefined, uploads: 0 };
}

/** By PUT and by a form in turn; each fifth time the file is removed. */
async function uploadUntilKilled(base: string, one: Known, at: number): Promise<void> {
  for (let turn = 0; ; turn += 1) {
    const octets = randomBytes(1 + Math.floor(Math.random() * 300_000));
    const isRemoval = turn % 5 === 4;
    const digest = `sha-256=:${createHash('sha256').update(octets).digest('base64')}:`;
    one.pending = isRemoval ? null : digest;
    const form = new FormData();
    form.set('attachment', new Blob([octets]), 'octets');
    const url = `${base}/${one.id}`;
    const asked = isRemoval
      ? fetch(`${url}/attachment`, { method: 'DELETE', headers })
      : (turn + at) % 2 === 0
        ? fetch(`${url}/attachment`, { method: 'PUT', body: octets, headers })
        : fetch(url, { method: 'PATCH', body: form, headers });
    const answer = await asked
      .then(async (got) => ({ status: got.status, text: await got.text() }))
      .catch(() => undefined);
    if (answer === undefined) return;
    assert.ok([200, 201, 204].includes(answer.status), `${answer.status} ${answer.text}`);
    one.acknowledged = one.pending;
    one.pending = undefined;
    one.uploads += 1;
  }
}

async function check(base: string, one: Known): Promise<void> {
  const answer = await fetch(`${base}/${one.id}`, { headers });
  assert.equal(answer.status, 200);
  const { attachment } = (await answer.json()) as Ticket;
  const digest = attachment?.digest ?? null;
  assert.ok(digest === one.acknowledged || digest === one.pending, `${digest} after ${one.acknowledged}`);
  one.acknowledged = digest;
  if (attachment === undefined) return;
  const got = await fetch(new URL(attachment.url, base), { headers });
  assert.equal(got.status, 200);
  const octets = Buffer.from(await got.arrayBuffer());
  assert.equal(`sha-256=:${createHash('sha256').update(octets).digest('base64')}:`, digest);
}
