/**
 * What a client must not send over HTTP/2 (RFC 9113): requests that are malformed are reset or answered, each by itself; what breaks the
 * connection ends it with GOAWAY and is reported. Nothing of it ends the program.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endHeaders, endStream, frame, frameTypes, setting, uint32 } from '../../../conduct/frames.ts';
import { echo, serve } from '../server/serve.ts';
import { get, headerBlock, openRawSession, type RawSession, request } from './raw-session.ts';

const protocolError = 1;
const head = [':method', 'GET', ':scheme', 'http', ':authority', 'a', ':path', '/'];
const without = (name: string) => {
  const at = head.indexOf(name);
  return [...head.slice(0, at), ...head.slice(at + 2)];
};
const instead = (name: string, value: string) =>
  head.map((each, index) => (head[index - 1] === name ? value : each));

/** Header sections that nghttp2 resets with PROTOCOL_ERROR. */
const resets: readonly (readonly [string, readonly string[]])[] = [
  ['no authority and no host', without(':authority')],
  ['an empty authority', instead(':authority', '')],
  ['user information in the authority', instead(':authority', 'u@a')],
  ['white space in the authority', instead(':authority', 'a b')],
  ['no path', without(':path')],
  ['an empty path', instead(':path', '')],
  ['a path without a slash', instead(':path', 'x')],
  ['an absolute path', instead(':path', 'http://b/')],
  ['GET *', instead(':path', '*')],
  ['no scheme', without(':scheme')],
  ['no method', without(':method')],
  ['a method that is no token', instead(':method', 'GE T')],
  ['two paths', [...head, ':path', '/']],
  ['a pseudo-field that is unknown', [...head, ':foo', '1']],
  ['a pseudo-field after a field', ['x', 'y', ...head]],
  [':protocol with GET', [...head, ':protocol', 'websocket']],
  ['CONNECT with a path', [':method', 'CONNECT', ':authority', 'a:1', ':path', '/']],
  ['CONNECT without authority', [':method', 'CONNECT']],
  ['an upper-case name', [...head, 'X-A', '1']],
  ['Connection', [...head, 'connection', 'close']],
  ['Upgrade', [...head, 'upgrade', 'websocket']],
  ['Transfer-Encoding', [...head, 'transfer-encoding', 'chunked']],
  ['TE: gzip', [...head, 'te', 'gzip']],
  ['two hosts', [...without(':authority'), 'host', 'a', 'host', 'a']],
  ['a length without content', [...head, 'content-length', '5']],
  ['two lengths', [...head, 'content-length', '0', 'content-length', '0']],
];

test('resets streams whose header section is malformed, and goes on with the connection', async (t) => {
  const { port } = await serve(t, echo);
  const client = (await openRawSession(port)).start();
  t.after(() => client.socket.destroy());
  let stream = 1;
  for (const [what, fields] of resets) {
    client.send(request(stream, fields));
    assert.equal(await client.resetCode(stream), protocolError, what);
    stream += 2;
  }
  client.send(request(stream, get('/')));
  assert.equal((await client.frame(frameTypes.data, stream)).payload.toString(), 'GET /');
});

/** Requests that are answered: what is asked, the answer's start. */
const answers: readonly (readonly [string, readonly string[], RegExp])[] = [
  ['a method that nobody knows', instead(':method', 'FOO'), /^FOO \/$/],
  ['a method in lower case', instead(':method', 'get'), /^get \/$/],
  ['OPTIONS *', [':method', 'OPTIONS', ':scheme', 'http', ':authority', 'a', ':path', '*'], /^OPTIONS \*$/],
  ['another scheme', instead(':scheme', 'ftp'), /message_invalid/],
  ['a value that begins with a space', [...head, 'if-match', ' "x"'], /message_invalid/],
  ['a value that ends with a tab', [...head, 'origin', 'https://a\t'], /message_invalid/],
  [
    'fields longer than in HTTP/1.1',
    [...head, 'x-long', 'x'.repeat(15_000), 'x-more', 'x'.repeat(1_500)],
    /fields_too_large/,
  ],
  ['a target longer than any field section', instead(':path', `/${'x'.repeat(16_400)}`), /target_too_long/],
  [
    'more fields than nghttp2 has pairs by default',
    [...head, ...Array.from({ length: 600 }, () => ['x', '1']).flat()],
    /^GET \/$/,
  ],
  [
    'CONNECT with a length',
    [':method', 'CONNECT', ':authority', 'a:1', 'content-length', '0'],
    /message_invalid/,
  ],
  ['a stray HTTP2-Settings', [...head, 'http2-settings', 'AAMAAABk'], /^GET \/$/],
];

for (const [what, fields, expected] of answers) {
  test(`answers ${what}`, async (t) => {
    const { port } = await serve(t, echo);
    const client = (await openRawSession(port)).start();
    t.after(() => client.socket.destroy());
    const block = headerBlock(fields);
    const first = block.subarray(0, 16_000);
    const rest = block.subarray(16_000);
    client.send(frame(frameTypes.headers, endStream | (rest.length === 0 ? endHeaders : 0), 1, first));
    if (rest.length > 0) client.send(frame(frameTypes.continuation, endHeaders, 1, rest));
    const body = (await client.frame(frameTypes.data, 1)).payload.toString();
    assert.ok(expected.test(body), body.slice(0, 200));
  });
}

test('shows the handler two hosts where host differs from :authority, and one where it does not', async (t) => {
  const hosts: number[] = [];
  const { port } = await serve(t, (given) => {
    hosts.push(given.fields.hostCount);
    return echo(given);
  });
  const client = (await openRawSession(port)).start();
  t.after(() => client.socket.destroy());
  client.send(request(1, [...head, 'host', 'b']), request(3, [...head, 'host', 'A']));
  client.send(request(5, [...without(':authority'), 'host', 'a']));
  await client.frame(frameTypes.data, 5);
  assert.deepEqual(hosts, [2, 1, 1]);
});

const resetFrame = (stream: number) => frame(frameTypes.rstStream, 0, stream, uint32(8));
const many = (count: number, make: (index: number) => Buffer) =>
  Buffer.concat(Array.from({ length: count }, (_each, index) => make(index)));

/** What ends a connection, and the error code of its GOAWAY. */
const cuts: readonly (readonly [string, Buffer, number])[] = [
  [
    'a thousand streams that are reset at once',
    many(1000, (index) => Buffer.concat([request(1 + 2 * index, get('/')), resetFrame(1 + 2 * index)])),
    2,
  ],
  [
    'endless CONTINUATION',
    Buffer.concat([
      request(1, get('/'), endStream),
      many(500, () => frame(frameTypes.continuation, 0, 1, headerBlock(['a', 'b']))),
    ]),
    2,
  ],
  [
    'endless empty CONTINUATION',
    Buffer.concat([request(1, get('/'), endStream), many(500, () => frame(frameTypes.continuation, 0, 1))]),
    2,
  ],
  [
    'SETTINGS with too many entries',
    frame(
      frameTypes.settings,
      0,
      0,
      many(40, (index) => setting(100 + index, 1)),
    ),
    11,
  ],
  ['DATA outside a stream', frame(frameTypes.data, 0, 0, Buffer.from('x')), protocolError],
  ['DATA on a stream that is idle', frame(frameTypes.data, 0, 5, Buffer.from('x')), protocolError],
  [
    'a header block that is no HPACK',
    frame(frameTypes.headers, endStream | endHeaders, 1, Buffer.alloc(8, 0xff)),
    9,
  ],
  [
    'a frame longer than was agreed',
    frame(frameTypes.headers, endStream | endHeaders, 1, Buffer.alloc(20_000)),
    6,
  ],
  ['a stream with an even identifier', request(2, get('/')), protocolError],
  ['a window of more than 2^31-1', frame(frameTypes.windowUpdate, 0, 0, uint32(0x7fffffff)), 3],
  ['a window that grows by nothing', frame(frameTypes.windowUpdate, 0, 0, uint32(0)), protocolError],
  [
    'PUSH_PROMISE from a client',
    frame(frameTypes.pushPromise, endHeaders, 1, Buffer.concat([uint32(2), headerBlock(get('/'))])),
    protocolError,
  ],
  ['ENABLE_CONNECT_PROTOCOL of 2', frame(frameTypes.settings, 0, 0, setting(8, 2)), protocolError],
];

for (const [what, octets, code] of cuts) {
  test(`ends a connection that sends ${what}, and says so once`, async (t) => {
    const { port, observed, listener } = await serve(t, echo, { http2ResetsPerSecondMax: 1 });
    const client = (await openRawSession(port)).start();
    t.after(() => client.socket.destroy());
    client.send(octets);
    assert.equal(await client.goawayCode(), code);
    await client.closed;
    client.socket.end();
    await gone(listener.counts);
    assert.equal(observed.filter(({ kind }) => kind === 'http2-cut').length, 1);
    assert.equal(listener.counts().requests, 0);
  });
}

for (const [what, octets] of [
  ['PING', frame(frameTypes.ping, 0, 0, Buffer.alloc(8))],
  ['SETTINGS', frame(frameTypes.settings, 0, 0, setting(3, 100))],
] as const) {
  test(`ends a connection that floods it with ${what} and reads no answer`, async (t) => {
    const { port, observed, listener } = await serve(t, echo);
    const client: RawSession = (await openRawSession(port)).start();
    t.after(() => client.socket.destroy());
    client.socket.pause();
    const burst = Buffer.concat(Array.from({ length: 2_000 }, () => octets));
    while (listener.counts().connections > 0 || observed.length === 0) {
      if (!client.socket.destroyed) client.socket.write(burst);
      await new Promise((resolve) => setImmediate(resolve));
      if (observed.length > 0) client.socket.destroy();
    }
    assert.deepEqual(
      observed.map(({ kind }) => kind),
      ['http2-cut'],
    );
  });
}

test('handles no stream that was reset in the packet that it came in', async (t) => {
  let handled = 0;
  const { port } = await serve(t, (given) => {
    handled += 1;
    return echo(given);
  });
  const client = (await openRawSession(port)).start();
  t.after(() => client.socket.destroy());
  client.send(request(1, get('/')), resetFrame(1), request(3, get('/')));
  await client.frame(frameTypes.data, 3);
  assert.equal(handled, 1);
});

test('refuses streams beyond the limit while those that were reset are still under way', async (t) => {
  const held = Promise.withResolvers<void>();
  let handled = 0;
  const { port } = await serve(
    t,
    async (given) => {
      handled += 1;
      await held.promise;
      return echo(given);
    },
    { http2StreamsMax: 2 },
  );
  const client = (await openRawSession(port)).start();
  t.after(() => client.socket.destroy());
  for (const stream of [1, 3]) {
    client.send(request(stream, get('/')));
    while (handled < (stream + 1) / 2) await new Promise((resolve) => setImmediate(resolve));
    client.send(resetFrame(stream));
  }
  client.send(request(5, get('/')));
  assert.equal(await client.resetCode(5), 7);
  held.resolve();
  assert.equal(handled, 2);
});

async function gone(counts: () => { readonly connections: number }): Promise<void> {
  while (counts().connections > 0) await new Promise((resolve) => setImmediate(resolve));
}
