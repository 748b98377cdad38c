/** The memory budget at its edges: content that no share could ever hold, and who is refused while others hold theirs. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { openRaw, type RawClient } from './raw-client.ts';

const MiB = 1024 * 1024;
const share = 8 * MiB;
let program: ServerProcess;

before(async () => {
  program = await spawnServer({
    env: { COMITY_MEMORY_BYTES_MAX: String(16 * MiB), COMITY_MEMORY_SHARE_PERCENT: '50' },
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

test('content as long as a share is waited for, and one octet more is 413 before any of it is sent', async () => {
  const fitting = await announce(share);
  assert.equal((await fitting.answer()).status, 100);
  const tooLong = await announce(share + 1);
  const refused = await tooLong.answer();
  assert.equal(refused.status, 413);
  assert.equal((JSON.parse(refused.body) as { code: string }).code, 'content_too_large');
  fitting.destroy();
  tooLong.destroy();
});

test('while a share is held its holder is refused 503 with Retry-After, and an administrator is served', async () => {
  const holding = await announce(share);
  assert.equal((await holding.answer()).status, 100);
  holding.send('x'.repeat(7 * MiB));
  while ((await heldBytes()) < 7 * MiB) assert.equal(holding.socket.destroyed, false);
  const another = await announce(2 * MiB);
  const refused = await another.answer();
  assert.equal(refused.status, 503);
  assert.equal(refused.fields.get('retry-after'), '1');
  assert.equal((JSON.parse(refused.body) as { code: string }).code, 'unavailable');
  const text = 'x'.repeat(900_000);
  const made = await program.send('POST', '/api/v1/notes', { json: { text } });
  assert.equal(made.status, 201);
  holding.destroy();
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
