/** The memory budget at its edges: content that no share could ever hold, and who is refused while others hold theirs. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { openRaw, type RawClient } from './raw-client.ts';

const MiB = 1024 * 1024;
/** Content that has room in the share of one client, where it is twice while it is joined: 16 MiB. */
const most = 8 * MiB;
let program: ServerProcess;

before(async () => {
  program = await spawnServer({
    env: { COMITY_MEMORY_BYTES_MAX: String(64 * MiB), COMITY_MEMORY_SHARE_PERCENT_MAX: '25' },
  });
});

after(() => program.stop());

async function announce(bytes: number, fields = ''): Promise<RawClient> {
  const client = await openRaw(program.port);
  return client.send(
    `POST /api/v1/webhooks/billing HTTP/1.1\r\nHost: localhost\r\n${fields}Content-Length: ${bytes}\r\nExpect: 100-continue\r\n\r\n`,
  );
}

async function heldBytes(): Promise<number> {
  const { body } = await program.send('GET', '/metrics');
  return Number(/^comity_memory_bytes\{use="content"\} (\d+)$/m.exec(body)?.[1]);
}

test('content as long as half a share is waited for, and one octet more is 413 before any of it is sent, with the limit', async () => {
  const fitting = await announce(most);
  assert.equal((await fitting.answer()).status, 100);
  const tooLong = await announce(most + 1);
  const refused = await tooLong.answer();
  assert.equal(refused.status, 413);
  const { code, error } = JSON.parse(refused.body) as { code: string; error: string };
  assert.equal(code, 'content_too_large');
  assert.match(error, /at most 8388608 octets: .*COMITY_MEMORY_BYTES_MAX/);
  fitting.destroy();
  tooLong.destroy();
});

test('while a share is held its holder is refused 503 with Retry-After, and an administrator is served', async () => {
  const holding = await Promise.all([announce(most), announce(most)]);
  for (const each of holding) {
    assert.equal((await each.answer()).status, 100);
    each.send('x'.repeat(7 * MiB));
  }
  while ((await heldBytes()) < 14 * MiB) assert.ok(holding.every(({ socket }) => !socket.destroyed));
  const another = await announce(4 * MiB);
  const refused = await another.answer();
  assert.equal(refused.status, 503);
  assert.equal(refused.fields.get('retry-after'), '1');
  assert.equal((JSON.parse(refused.body) as { code: string }).code, 'unavailable');
  const text = 'x'.repeat(900_000);
  const made = await program.send('POST', '/api/v1/notes', { json: { text } });
  assert.equal(made.status, 201);
  for (const each of holding) each.destroy();
  another.destroy();
  while ((await heldBytes()) > 0) assert.ok(program.process.exitCode === null);
  const again = await announce(2 * MiB);
  assert.equal((await again.answer()).status, 100, 'there is room again');
  again.destroy();
});

test('content in chunks of one octet takes no more than in one', async () => {
  const octets = 200_000;
  const client = await openRaw(program.port);
  client.send(
    'POST /api/v1/webhooks/billing HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n' +
      '1\r\nx\r\n'.repeat(octets),
  );
  while ((await heldBytes()) < octets) assert.equal(client.socket.destroyed, false);
  assert.equal(await heldBytes(), octets);
  client.send('0\r\n\r\n');
  assert.equal((await client.answer()).status, 400, 'it was read whole, and has no signature');
  client.destroy();
});
