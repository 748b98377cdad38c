/** Resumable uploads by tus-js-client, over tus 1.0 and both versions of the draft that it speaks, also after the connection was cut. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Upload, type UploadOptions } from 'tus-js-client';
import { adminKey } from '../../harness/exchange.ts';
import { serverOfFile } from '../../harness/running-server.ts';

const config = fileURLToPath(new URL('../../wire/files/fixtures/files.config.ts', import.meta.url));
const server = await serverOfFile({ config });
const octets = randomBytes(8 * 1024 * 1024);
const digest = `sha-256=:${createHash('sha256').update(octets).digest('base64')}:`;

/** A proxy on the way, whose connections are cut once so many octets have passed. */
async function cutter(t: { after(end: () => void): void }, cuts: number[]): Promise<number> {
  const sockets = new Set<Socket>();
  const proxy = createServer((client) => {
    const upstream = connect(server.port, '127.0.0.1');
    let passed = 0;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        client.destroy();
        upstream.destroy();
      });
    }
    client.on('data', (chunk) => {
      passed += chunk.length;
      const [cut] = cuts;
      if (cut !== undefined && passed > cut) {
        cuts.shift();
        client.resetAndDestroy();
        return;
      }
      if (!upstream.write(chunk)) {
        client.pause();
        upstream.once('drain', () => client.resume());
      }
    });
    upstream.pipe(client);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    proxy.close();
    for (const socket of sockets) socket.destroy();
  });
  const address = proxy.address();
  assert.ok(typeof address === 'object' && address !== null);
  return address.port;
}

/** The types of tus-js-client 4.3.1 leave its `protocol` out. */
type Options = UploadOptions & { readonly protocol?: string };

async function upload(port: number, options: Options): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const sent = new Upload(octets, {
    endpoint: `http://127.0.0.1:${port}/api/v1/uploads`,
    headers: { Authorization: `Bearer ${adminKey}` },
    metadata: { filename: 'largé.bin', filetype: 'application/octet-stream' },
    retryDelays: [10, 50, 100, 500],
    onError: reject,
    onSuccess: () => resolve(),
    ...options,
  });
  sent.start();
  await promise;
  return new URL(sent.url ?? '').pathname.split('/').at(-1) ?? '';
}

async function assertTaken(id: string): Promise<void> {
  const { send } = server;
  const ticket = (await send('POST', 'tickets', { json: { title: 'a' }, expect: 201 })).json();
  const json = { attachment: { upload: id } };
  const { attachment } = (await send('PATCH', `tickets/${ticket.id}`, { json, expect: 200 })).json();
  assert.deepEqual(
    [attachment.bytes, attachment.digest, attachment.name, attachment.type],
    [octets.length, digest, 'largé.bin', 'application/octet-stream'],
  );
}

for (const protocol of ['tus-v1', 'ietf-draft-03', 'ietf-draft-05'] as const) {
  test(`tus-js-client uploads by ${protocol}`, async () => {
    await assertTaken(await upload(server.port, { protocol }));
    await assertTaken(await upload(server.port, { protocol, chunkSize: 1_000_000 }));
  });

  test(`tus-js-client goes on by ${protocol} after its connection was cut three times`, async (t) => {
    const cuts = [3_000_000, 2_000_000, 1_000_000];
    await assertTaken(await upload(await cutter(t, cuts), { protocol, chunkSize: 4_000_000 }));
    assert.deepEqual(cuts, []);
  });
}

test('tus-js-client uploads with the first octets in the creation', async () => {
  await assertTaken(await upload(server.port, { uploadDataDuringCreation: true, chunkSize: 3_000_000 }));
});

test('tus-js-client terminates an upload', async () => {
  const id = await upload(server.port, {});
  const url = `http://127.0.0.1:${server.port}/api/v1/uploads/${id}`;
  await Upload.terminate(url, { headers: { Authorization: `Bearer ${adminKey}` } });
  await server.send('HEAD', `uploads/${id}`, { expect: 404 });
});
