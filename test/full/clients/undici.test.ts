/** undici and ws as clients: WebSockets over HTTP/1.1 and HTTP/2, proxies by CONNECT (§4.10, §4.13). */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { inspect } from 'node:util';
import { Agent, fetch, ProxyAgent, WebSocket as UndiciWebSocket } from 'undici';
import { WebSocket } from 'ws';
import { adminKey } from '../../harness/exchange.ts';
import { type Served, serveClients } from './served.ts';

let served: Served;

before(async () => {
  served = await serveClients();
});

after(() => served?.end());

const realtime = (url: string) => `${url.replace('http', 'ws')}/api/v1/realtime`;

async function makeCategory(name: string): Promise<void> {
  const made = await served.program.send('POST', '/api/v1/categories', { json: { name } });
  assert.equal(made.status, 201);
}

async function expectEvent(
  socket: Pick<UndiciWebSocket, 'send' | 'close' | 'addEventListener'>,
  name: string,
): Promise<void> {
  const seen: string[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.addEventListener('error', (event) => reject(event.error ?? new Error('the socket failed')));
  socket.addEventListener('close', ({ code }) =>
    reject(new Error(`closed with ${code} after ${seen.join()}`)),
  );
  socket.addEventListener('message', ({ data }) => {
    seen.push(String(data));
    const said = JSON.parse(String(data)) as {
      subscribed?: unknown;
      event?: { data: { object: { name: string } } };
    };
    if (said.subscribed !== undefined) makeCategory(name).catch(reject);
    if (said.event?.data.object.name === name) resolve();
  });
  socket.addEventListener('open', () => socket.send('{"subscribe":["categories.*"]}'));
  await promise;
  socket.close(1000);
}

test('ws opens a WebSocket on both ports', async () => {
  const ca = readFileSync(served.certificate);
  for (const [url, options] of [
    [served.program.url, {}],
    [served.tlsUrl, { ca }],
  ] as const) {
    const socket = new WebSocket(realtime(url), 'comity.v1', options);
    const message = once(socket, 'message');
    await once(socket, 'open');
    assert.equal(socket.protocol, 'comity.v1');
    socket.send('{"subscribe":["categories.*"]}');
    assert.deepEqual(JSON.parse(String((await message)[0])), { subscribed: ['categories.*'] });
    socket.close(1000);
    assert.equal((await once(socket, 'close'))[0], 1000);
  }
});

test('undici opens a WebSocket over HTTP/1.1', async () => {
  await expectEvent(new UndiciWebSocket(realtime(served.program.url), ['comity.v1']), 'over HTTP/1.1');
});

test('undici opens a WebSocket by extended CONNECT over HTTP/2', async () => {
  const dispatcher = new Agent({ allowH2: true, connect: { ca: readFileSync(served.certificate) } });
  await expectEvent(
    new UndiciWebSocket(realtime(served.tlsUrl), { protocols: ['comity.v1'], dispatcher }),
    'over HTTP/2',
  );
  await dispatcher.close();
});

for (const version of ['HTTP/1.1', 'HTTP/2'] as const) {
  test(`undici gets every refusal of an upload over ${version}, and keeps its connections usable`, async () => {
    const dispatcher = new Agent({ allowH2: true, connect: { ca: readFileSync(served.certificate) } });
    const url = version === 'HTTP/2' ? served.tlsUrl : served.program.url;
    const seen: unknown[] = [];
    for (const bytes of [1_100_000, 8_000_000, 30_000_000])
      for (const [path, credential, type] of refusals)
        for (const isStream of [false, true, false, true])
          try {
            const body = isStream ? streamOf(bytes) : Buffer.alloc(bytes, ' ');
            const headers = { 'x-api-key': credential, 'content-type': type };
            const answer = await fetch(url + path, {
              method: 'POST',
              headers,
              body,
              duplex: 'half',
              dispatcher,
            });
            await answer.arrayBuffer();
            seen.push(answer.status);
          } catch (error) {
            seen.push(inspect(error));
          }
    const expected = refusals.flatMap(([, , , status]) => Array.from({ length: 4 }, () => status));
    assert.deepEqual(seen, [...expected, ...expected, ...expected]);
    await dispatcher.close();
  });
}

/** Path, key, type of the content, and the status that refuses it. */
const refusals = [
  ['/api/v1/products', adminKey, 'application/json', 413],
  ['/api/v1/products', 'sk_wrong', 'application/json', 401],
  ['/api/v1/products', adminKey, 'image/png', 415],
] as const;

function streamOf(bytes: number): ReadableStream<Uint8Array> {
  let left = bytes;
  return new ReadableStream({
    pull(controller) {
      if (left <= 0) controller.close();
      else controller.enqueue(new Uint8Array(Math.min(left, 65_536)));
      left -= 65_536;
    },
  });
}

for (const [title, token] of [
  ['a key as Bearer', () => `Bearer ${served.tunnelKey}`],
  [
    'a key as the user name of Basic',
    () => `Basic ${Buffer.from(`${served.tunnelKey}:`).toString('base64')}`,
  ],
] as const) {
  test(`undici goes through the tunnel to https with ${title}`, async () => {
    const dispatcher = new ProxyAgent({
      uri: served.program.url,
      token: token(),
      requestTls: { ca: readFileSync(served.certificate) },
    });
    const answer = await fetch(`${served.tlsDestination}/through`, { dispatcher });
    assert.equal(await answer.text(), 'GET /through');
    await dispatcher.close();
  });
}

test('undici has a request to http forwarded', async () => {
  const dispatcher = new ProxyAgent({ uri: served.program.url, token: `Bearer ${adminKey}` });
  const answer = await fetch(`${served.destination}/plain`, { dispatcher });
  assert.equal(await answer.text(), 'GET /plain');
  await dispatcher.close();
});

test('undici is told why it may not', async () => {
  const dispatcher = new ProxyAgent({ uri: served.program.url });
  await assert.rejects(fetch(served.tlsDestination, { dispatcher }), (error: Error) => {
    assert.match(inspect(error), /Proxy response \(407\)/);
    return true;
  });
  await dispatcher.close();
});
