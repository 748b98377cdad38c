/**
 * HTTP/2 streams that end in the packet they came in, or break their connection in it. node:http2 destroys such a stream with an error in
 * the turn that announces it, before any code of the program has seen the stream.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { ack, endHeaders, endStream, frame, frameTypes, uint32 } from '../../../conduct/frames.ts';
import { send } from '../../harness/exchange.ts';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { get, headerBlock, request } from '../../wire/http2/raw-session.ts';
import { firstPair } from '../../wire/server/certificates.ts';

type Form = (stream: number) => readonly Uint8Array[];

const {
  continuation,
  data,
  goaway,
  headers,
  ping,
  priority,
  pushPromise,
  rstStream,
  settings,
  windowUpdate,
} = frameTypes;
const padded = 0x8;
const post = (path: string, ...more: readonly string[]) => [
  ...[':method', 'POST', ':scheme', 'http', ':authority', 'a', ':path', path],
  ...more,
];
const octets = (length: number) => Buffer.alloc(length, 0x61);
const begin = (stream: number, ...more: readonly string[]) =>
  request(stream, post('/api/v1/products', ...more), endHeaders);

/** What comes in the packet of the request, on its stream or beside it. */
const forms: Readonly<Record<string, Form>> = {
  'RST_STREAM with CANCEL': (id) => [begin(id), frame(rstStream, 0, id, uint32(8))],
  'RST_STREAM with NO_ERROR': (id) => [begin(id), frame(rstStream, 0, id, uint32(0))],
  'RST_STREAM with an unknown code': (id) => [begin(id), frame(rstStream, 0, id, uint32(0xffffffff))],
  'RST_STREAM of three octets': (id) => [begin(id), frame(rstStream, 0, id, octets(3))],
  'DATA over content-length': (id) => [begin(id, 'content-length', '1'), frame(data, 0, id, octets(9))],
  'END_STREAM under content-length': (id) => [
    begin(id, 'content-length', '9'),
    frame(data, endStream, id, octets(1)),
  ],
  'DATA after END_STREAM': (id) => [request(id, get('/health/live')), frame(data, 0, id, octets(9))],
  'DATA with more padding than content': (id) => [begin(id), frame(data, padded, id, Buffer.from([9, 1]))],
  'DATA over the window': (id) => {
    const parts: Uint8Array[] = [begin(id)];
    for (let index = 0; index < 20; index += 1) parts.push(frame(data, 0, id, octets(16_384)));
    return parts;
  },
  'WINDOW_UPDATE of 0': (id) => [begin(id), frame(windowUpdate, 0, id, uint32(0))],
  'WINDOW_UPDATE that overflows': (id) => [begin(id), frame(windowUpdate, 0, id, uint32(0x7fffffff))],
  'WINDOW_UPDATE of the connection that overflows': (id) => [
    begin(id),
    frame(windowUpdate, 0, 0, uint32(0x7fffffff)),
  ],
  'WINDOW_UPDATE of three octets': (id) => [begin(id), frame(windowUpdate, 0, id, octets(3))],
  'a second HEADERS without END_STREAM': (id) => [begin(id), begin(id)],
  'HEADERS after END_STREAM': (id) => [request(id, get('/health/live')), begin(id)],
  'trailers with a pseudo-header field': (id) => [
    begin(id),
    frame(headers, endHeaders | endStream, id, headerBlock([':method', 'GET'])),
  ],
  'HEADERS that cannot be decompressed': (id) => [
    begin(id),
    frame(headers, endHeaders | endStream, id + 2, octets(40)),
  ],
  'HEADERS on an even stream': (id) => [begin(id), request(id + 1, get('/'))],
  'HEADERS with too much padding': (id) => [
    begin(id),
    frame(headers, endHeaders | padded, id + 2, Buffer.from([99, 1])),
  ],
  'PRIORITY on itself': (id) => [
    begin(id),
    frame(priority, 0, id, Buffer.concat([uint32(id), Buffer.from([1])])),
  ],
  'PRIORITY of three octets': (id) => [begin(id), frame(priority, 0, id, octets(3))],
  'CONTINUATION of nothing': (id) => [begin(id), frame(continuation, endHeaders, id, octets(3))],
  'HEADERS that are not continued': (id) => [begin(id), request(id + 2, get('/'), 0), begin(id + 4)],
  PUSH_PROMISE: (id) => [begin(id), frame(pushPromise, endHeaders, id, uint32(2))],
  'a frame over the maximum size': (id) => [begin(id), frame(data, 0, id, octets(16_385))],
  'SETTINGS with a length that cannot be': (id) => [begin(id), frame(settings, 0, 0, octets(5))],
  'SETTINGS on a stream': (id) => [begin(id), frame(settings, 0, id, octets(6))],
  'PING of three octets': (id) => [begin(id), frame(frameTypes.ping, 0, 0, octets(3))],
  GOAWAY: (id) => [begin(id), frame(goaway, 0, 0, Buffer.concat([uint32(0), uint32(0)]))],
  'GOAWAY with an error': (id) => [begin(id), frame(goaway, 0, 0, Buffer.concat([uint32(0), uint32(2)]))],
  'octets that are no frame': (id) => [begin(id), octets(64)],
  'CONNECT that is reset': (id) => [
    request(id, [':method', 'CONNECT', ':authority', 'a:443'], endHeaders),
    frame(rstStream, 0, id, uint32(8)),
  ],
  'a WebSocket that is reset': (id) => [
    request(
      id,
      [':method', 'CONNECT', ':protocol', 'websocket', ':scheme', 'http', ':authority', 'a', ':path', '/'],
      endHeaders,
    ),
    frame(rstStream, 0, id, uint32(8)),
  ],
  'HEADERS of the half of a frame': (id) => [begin(id), begin(id + 2).subarray(0, 20)],
};

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
const start = Buffer.concat([preface, frame(settings, 0, 0)]);
const upgrade = Buffer.from(
  'GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n' +
    'Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n',
);
/** Behind these the PING is content or never read: the client leaves instead. */
const unanswered: ReadonlySet<string> = new Set(['HEADERS of the half of a frame']);

const folder = temporaryFolder();
const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
await Promise.all([writeFile(cert, firstPair.cert), writeFile(key, firstPair.key)]);

type Target = { readonly program: ServerProcess; readonly tlsPort: number };

/** Behind a proxy `Upgrade: h2c` is not taken, and the address of the caller comes from a field. */
const direct: Record<string, string> = { COMITY_TLS_CERT: cert, COMITY_TLS_KEY: key, COMITY_TLS_PORT: '0' };
const proxied = { ...direct, COMITY_BEHIND_PROXY: 'on' };
const targets = new Map<Record<string, string>, Target>();

/** The program, started again where the last form has ended it, so that each form is judged by itself. */
async function living(env: Record<string, string>): Promise<Target> {
  const known = targets.get(env);
  if (known !== undefined && known.program.process.exitCode === null) return known;
  const program = await spawnServer({ env });
  const tlsPort = await printedTlsPort(program);
  const target = { program, tlsPort };
  targets.set(env, target);
  return target;
}

async function printedTlsPort(program: ServerProcess): Promise<number> {
  for (;;) {
    const port = /^and on https:\/\/\S+:(\d+)$/m.exec(program.stdout())?.[1];
    if (port !== undefined) return Number(port);
    await once(program.process.stdout ?? program.process, 'data');
  }
}

after(async () => {
  for (const { program } of targets.values()) if (program.process.exitCode === null) await program.stop();
});

async function openTcp(port: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  await once(socket, 'connect');
  return socket;
}

async function openTls({ tlsPort: port }: Target): Promise<Socket> {
  const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false, ALPNProtocols: ['h2'] });
  await once(socket, 'secureConnect');
  return socket;
}

type Way = {
  readonly env: Record<string, string>;
  readonly open: (target: Target) => Promise<Socket>;
  /** What comes before the connection preface, in the same packet. */
  readonly before: Uint8Array;
  readonly stream: number;
};

const overTcp = ({ program }: Target) => openTcp(program.port);
const none = Buffer.alloc(0);
const ways: Readonly<Record<string, Way>> = {
  'by prior knowledge': { env: direct, open: overTcp, before: none, stream: 1 },
  'after Upgrade: h2c': { env: direct, open: overTcp, before: upgrade, stream: 3 },
  'over TLS': { env: direct, open: openTls, before: none, stream: 1 },
  'behind a proxy': { env: proxied, open: overTcp, before: none, stream: 1 },
};

const acknowledged = frame(ping, ack, 0, octets(8));

/** Resolves when the server has dealt with what was sent: it answers the PING behind it, or ends the connection. */
function dealtWith(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    let received = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      if (received.includes(acknowledged)) resolve();
    });
    socket.on('close', resolve);
    socket.on('end', resolve);
  });
}

for (const [name, form] of Object.entries(forms)) {
  for (const [by, { env, open, before, stream }] of Object.entries(ways)) {
    test(`survives ${name} ${by}`, async () => {
      const target = await living(env);
      const { program } = target;
      const socket = await open(target);
      socket.on('error', () => socket.destroy());
      const dealt = dealtWith(socket);
      socket.write(Buffer.concat([before, start, ...form(stream), frame(ping, 0, 0, octets(8))]));
      if (!unanswered.has(name)) await dealt;
      socket.destroy();
      const health = await send(program.port, 'GET', '/health/live', { anonymous: true }).catch(
        () => undefined,
      );
      assert.equal(health?.status, 200, `the program ended:\n${program.stderr()}`);
    });
  }
}
