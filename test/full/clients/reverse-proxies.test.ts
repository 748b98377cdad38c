/**
 * The configurations of examples/proxies, as they stand there but for ports, files and names, in the real proxies. What is
 * not installed is skipped, and says so.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request as requestHttp } from 'node:http';
import { request as requestTls } from 'node:https';
import { connect, type Socket } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { Agent, request } from 'undici';
import { WebSocket } from 'ws';
import { cert } from '../../accounts/mail/certificate.ts';
import { adminKey } from '../../harness/exchange.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { until } from '../../harness/until.ts';
import { findCommand } from './command.ts';
import {
  answersAt,
  caddy,
  haproxy,
  nginx,
  type ProxyProgram,
  type RunningProxy,
  startProxy,
  tlsFiles,
} from './proxy-program.ts';

const fieldsBytesMax = 4 * 1024;
let program: RunningServer;
let ids: readonly string[];

before(async () => {
  program = await startServer({ env: { COMITY_BEHIND_PROXY: 'on', COMITY_REALTIME_ATTEMPT_MS: '0' } });
  const items = Array.from({ length: 250 }, (_, at) => ({ name: `c${at}` }));
  const made = await program.send('POST', '/api/v1/categories/bulk', { json: { items } });
  assert.equal(made.status, 200, made.body);
  const found: string[] = [];
  for (const page of [1, 2, 3]) {
    const listed = await program.send('GET', `/api/v1/categories?limit=100&page=${page}&fields=id`);
    const { items: some } = listed.json() as { readonly items: readonly { readonly id: string }[] };
    found.push(...some.map(({ id }) => id));
  }
  ids = found;
  assert.equal(ids.length, 250);
});

after(() => program?.stop());

type ExampleProxy = ProxyProgram & {
  /** In examples/proxies. */
  readonly example: string;
  /** The address of Comity in it; default: 127.0.0.1:4000. */
  readonly address?: string;
  /** Default: https. */
  readonly scheme?: 'http';
  /** Of refused uploads whose answer it brings back; default: all. */
  readonly refusedBytesMax?: number;
};

const proxies: Readonly<Record<string, ExampleProxy>> = {
  nginx: { ...nginx, example: 'nginx.conf' },
  Apache: {
    command: 'apache2',
    example: 'apache.conf',
    edits: (place) => ({
      ...tlsFiles(place),
      'Listen 443': `Listen 127.0.0.1:${place.port}`,
      '*:443': `*:${place.port}`,
      'ServerName shop.example': 'ServerName localhost',
    }),
    around: ({ folder }) => [
      ['mpm_event', 'authz_core', 'headers', 'http2', 'proxy', 'proxy_http', 'socache_shmcb', 'ssl']
        .map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so\n`)
        .join('') +
        `ServerRoot ${folder}\nServerName localhost\nPidFile ${folder}/pid\nDefaultRuntimeDir ${folder}\nErrorLog ${folder}/errors\n`,
      '',
    ],
    args: (_place, file) => ['-D', 'FOREGROUND', '-f', file],
  },
  HAProxy: { ...haproxy, example: 'haproxy.cfg' },
  Caddy: { ...caddy, example: 'Caddyfile' },
  Varnish: {
    command: 'varnishd',
    example: 'varnish.vcl',
    address: '4000',
    scheme: 'http',
    edits: () => ({}),
    args: ({ folder, port }, file) => {
      const state = ['-n', join(folder, 'varnish'), '-s', 'malloc,64m'];
      return ['-F', ...state, '-a', `127.0.0.1:${port}`, '-f', file];
    },
  },
  Squid: {
    command: 'squid',
    example: 'squid.conf',
    address: 'parent 4000',
    scheme: 'http',
    edits: ({ port }) => ({
      'http_port 80': `http_port 127.0.0.1:${port}`,
      'defaultsite=shop.example': 'defaultsite=localhost',
    }),
    // As root it becomes the user proxy, who may write nothing in the folder of the test.
    around: () => [
      'pid_filename none\ncache_log /dev/null\naccess_log none\ncoredump_dir /tmp\nnetdb_filename none\n' +
        'visible_hostname localhost\npinger_enable off\nshutdown_lifetime 0 seconds\n',
      '',
    ],
    // It resets some uploads of 25 MB and more, before a plain server of node:http too, which had got 32 MiB of 100 MB.
    refusedBytesMax: 1_100_000,
    // Killed, it leaves shared memory behind.
    stopSignal: 'SIGTERM',
    args: ({ port }, file) => ['-N', '-n', `comity${port}`, '-f', file],
  },
  lighttpd: {
    command: 'lighttpd',
    example: 'lighttpd.conf',
    address: '"port" => 4000',
    edits: (place) => ({
      ...tlsFiles(place),
      'server.bind = ""': 'server.bind = "127.0.0.1"',
      'server.port = 443': `server.port = ${place.port}`,
      '/var/www/html': place.folder,
    }),
    around: ({ folder }) => [`server.upload-dirs = ("${folder}")\n`, ''],
    args: (_place, file) => ['-D', '-f', file],
  },
  Envoy: {
    command: 'envoy',
    file: 'configuration.yaml',
    example: 'envoy.yaml',
    address: 'port_value: 4000',
    edits: (place) => ({
      ...tlsFiles(place),
      'address: 0.0.0.0, port_value: 443': `address: 127.0.0.1, port_value: ${place.port}`,
    }),
    args: (_place, file) => ['--disable-hot-restart', '--concurrency', '1', '-l', 'error', '-c', file],
  },
  h2o: {
    command: 'h2o',
    example: 'h2o.conf',
    edits: (place) => ({
      ...tlsFiles(place),
      'port: 443': `host: 127.0.0.1\n  port: ${place.port}`,
      '"shop.example"': '"localhost"',
    }),
    around: ({ folder }) => [
      `user: ${userInfo().username}\npid-file: ${folder}/pid\nerror-log: ${folder}/errors\nnum-threads: 1\n`,
      '',
    ],
    args: (_place, file) => ['-c', file],
  },
};

/** The configuration, and the address of the program in it. */
function readExample({
  example,
  address = '127.0.0.1:4000',
}: ExampleProxy): readonly [text: string, edits: Readonly<Record<string, string>>] {
  const text = readFileSync(join('examples/proxies', example), 'utf8');
  return [text, { [address]: address.replace('4000', String(program.port)) }];
}

const json = { 'content-type': 'application/json' };
const upload = { method: 'POST', path: '/api/v1/products', headers: json };

type Refusal = {
  readonly status: number;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
};

/** Of a content of more than 1 MiB. */
const refusals: Readonly<Record<string, Refusal>> = {
  'too long': { ...upload, status: 413 },
  'wrong key': { ...upload, status: 401, headers: { ...json, 'x-api-key': 'sk_wrong' } },
  'no such path': { ...upload, status: 404, path: '/api/v1/nothing' },
  'method of members': { ...upload, status: 405, method: 'PUT' },
  'unknown method': { ...upload, status: 501, method: 'MKCOL' },
  'not acceptable': { ...upload, status: 406, headers: { ...json, accept: 'image/png' } },
  'type of content': { ...upload, status: 415, headers: { 'content-type': 'image/png' } },
  'coding of content': { ...upload, status: 415, headers: { ...json, 'content-encoding': 'x-unknown' } },
  'If-Match': {
    ...{ status: 413, method: 'PUT', path: '/api/v1/articles/01jd7z3q8v5t9xk2m4n6p8r0sa' },
    headers: { ...json, 'if-match': '"1"' },
  },
};

type Upload = {
  readonly bytes: number;
  readonly refusals: readonly string[];
  readonly framings: readonly ('length' | 'chunked')[];
};

const both = ['length', 'chunked'] as const;
const uploads: readonly Upload[] = [
  { bytes: 1_100_000, refusals: Object.keys(refusals), framings: both },
  { bytes: 25_000_000, refusals: ['too long', 'wrong key'], framings: both },
  { bytes: 100_000_000, refusals: ['too long'], framings: ['length'] },
];

const piece = Buffer.alloc(64 * 1024, 'x');

function* piecesOf(bytes: number): Generator<Buffer> {
  for (let left = bytes; left > 0; left -= piece.length)
    yield piece.subarray(0, Math.min(left, piece.length));
}

type UploadOptions = { readonly method: string; readonly headers: Readonly<Record<string, string>> };

/** With node:http, which reports a broken connection also where an answer came before it. @returns status, or the error */
function uploadTo(
  url: string,
  { method, headers }: UploadOptions,
  content: Readable,
  length: number | undefined,
): Promise<number | string> {
  const request = url.startsWith('https:') ? requestTls : requestHttp;
  const framing = length === undefined ? {} : { 'content-length': length };
  return new Promise((resolve) => {
    const asked = request(url, { method, ca: cert, agent: false, headers: { ...headers, ...framing } });
    asked.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    asked.on('response', (answer) => {
      answer.on('end', () => resolve(answer.statusCode ?? 0)).resume();
    });
    content.pipe(asked);
  });
}

for (const [name, proxy] of Object.entries(proxies)) {
  const path = findCommand(proxy.command);
  describe(`behind ${name}`, {
    skip: path === undefined ? `${proxy.command} is not installed` : false,
  }, () => {
    // Over HTTP/2, undici loses what the proxies answer early.
    const dispatcher = new Agent({ allowH2: false, connect: { ca: cert } });
    let running: RunningProxy;
    let port = 0;
    let url = '';

    before(async () => {
      running = await startProxy(proxy, path ?? '', ...readExample(proxy), answersAt);
      port = running.port;
      url = `${proxy.scheme ?? 'https'}://localhost:${port}`;
    });

    after(async () => {
      await dispatcher.destroy();
      await running?.stop();
    });

    const ask = (target: string, options: Parameters<typeof request>[1] = {}) =>
      request(`${url}${target}`, {
        dispatcher,
        ...options,
        headers: { 'x-api-key': adminKey, ...(options.headers as Record<string, string>) },
      });

    const open = (): Socket =>
      proxy.scheme === 'http'
        ? connect(port, '127.0.0.1')
        : connectTls({ port, host: '127.0.0.1', servername: 'localhost', ca: cert });

    test('answers 304, with the entity tag as it was made', async () => {
      const first = await ask('/api/v1/categories');
      await first.body.dump();
      const tag = String(first.headers.etag);
      assert.match(tag, /^"/);
      const again = await ask('/api/v1/categories', { headers: { 'if-none-match': tag } });
      await again.body.dump();
      assert.equal(again.statusCode, 304);
    });

    test('leaves the entity tag of a long response good for If-Match', async () => {
      const made = await ask('/api/v1/articles', {
        method: 'POST',
        headers: json,
        body: JSON.stringify({ title: 'long', body: 'text '.repeat(2000) }),
      });
      const { id } = (await made.body.json()) as { readonly id: string };
      const plain = await ask(`/api/v1/articles/${id}`);
      await plain.body.dump();
      const direct = await program.send('GET', `/api/v1/articles/${id}`);
      assert.equal(plain.headers.etag, direct.headers.etag);
      const read = await ask(`/api/v1/articles/${id}`, { headers: { 'accept-encoding': 'gzip' } });
      await read.body.dump();
      assert.equal(read.headers['content-encoding'], 'gzip');
      const changed = await ask(`/api/v1/articles/${id}`, {
        method: 'PATCH',
        headers: { ...json, 'if-match': String(read.headers.etag) },
        body: '{"title":"changed"}',
      });
      await changed.body.dump();
      assert.equal(changed.statusCode, 200);
    });

    test('lets QUERY through, with its content', async () => {
      const filter = { id: { in: ids } };
      const answer = await ask('/api/v1/categories', {
        method: 'QUERY' as 'GET',
        headers: json,
        body: JSON.stringify({ filter, limit: 1 }),
      });
      assert.equal(answer.statusCode, 200);
      assert.ok('items' in ((await answer.body.json()) as object));
    });

    test('answers the longest targets as Comity does', async () => {
      for (const count of [1, 45, 130, 250])
        for (const more of [
          '',
          '&page=2',
          `&page=${Math.ceil(count / 4)}`,
          '&page=2&fields=id,name&sort=-createdAt,name',
        ]) {
          const target = `/api/v1/categories?limit=2${more}&id[in]=${ids.slice(0, count)}`;
          const direct = await program.send('GET', target);
          const answer = await ask(target);
          const seen = [answer.statusCode, await answer.body.text(), answer.headers.link];
          assert.deepEqual(seen, [200, direct.body, direct.headers.link], target.slice(0, 80));
          const fields = Object.entries(answer.headers).flatMap(([field, value]) => [field, value].flat());
          assert.ok(fields.reduce((sum, text) => sum + String(text).length + 2, 0) < fieldsBytesMax);
        }
    });

    test('passes an encoded slash on as it is', async () => {
      const answer = await ask('/api/v1%2Fcategories');
      assert.deepEqual(await answer.body.json(), { error: 'not found', code: 'not_found' });
    });

    test('shows an event stream as it comes', async () => {
      const { body } = await ask('/api/v1/events', { headers: { accept: 'text/event-stream' } });
      const [chunk] = (await once(body, 'data')) as [Buffer];
      assert.match(String(chunk), /^: comity events/);
      for (const name of ['one', 'two']) {
        const made = await program.send('POST', '/api/v1/categories', { json: { name } });
        const { id } = made.json() as { readonly id: string };
        let received = '';
        while (!received.includes(id)) received += String((await once(body, 'data'))[0]);
      }
      body.destroy();
    });

    test('passes content on that waits for 100 (Continue)', async () => {
      const headers = { ...json, 'x-api-key': adminKey, expect: '100-continue' };
      const content = Buffer.from(JSON.stringify({ name: 'x'.repeat(20_000) }));
      const options = { method: 'POST', headers };
      const target = `${url}/api/v1/categories`;
      assert.equal(await uploadTo(target, options, Readable.from([content]), content.length), 201);
    });

    test('passes content on as it comes', async () => {
      const socket = open();
      const fields = `Host: localhost\r\nX-API-Key: ${adminKey}\r\nContent-Type: application/json\r\n`;
      socket.write(`POST /api/v1/categories HTTP/1.1\r\n${fields}Content-Length: 900000\r\n\r\n{"name":"`);
      socket.write('x'.repeat(600_000));
      // The other one asks for the metrics.
      await until(async () => (await requestsUnderWay()) === 2);
      socket.destroy();
      await until(async () => (await requestsUnderWay()) === 1);
    });

    test('passes a WebSocket on', async () => {
      const socket = new WebSocket(`${url.replace('http', 'ws')}/api/v1/realtime`, 'comity.v1', { ca: cert });
      await once(socket, 'open');
      socket.send('{"subscribe":["*"]}');
      const [message] = await once(socket, 'message');
      assert.deepEqual(JSON.parse(String(message)), { subscribed: ['*'] });
      socket.close(1000);
      await once(socket, 'close');
    });

    for (const { bytes, refusals: names, framings } of uploads.filter(
      (each) => each.bytes <= (proxy.refusedBytesMax ?? Infinity),
    ))
      test(`brings every refusal of ${bytes / 1_000_000} MB back`, async () => {
        const seen: string[] = [];
        const expected: string[] = [];
        for (const refused of names)
          for (const framing of framings) {
            const { status, path: target, headers, method } = refusals[refused] ?? assert.fail();
            const options = { method, headers: { 'x-api-key': adminKey, ...headers } };
            const content = Readable.from(piecesOf(bytes), { objectMode: false });
            const length = framing === 'length' ? bytes : undefined;
            seen.push(
              `${refused}, ${framing}: ${await uploadTo(`${url}${target}`, options, content, length)}`,
            );
            expected.push(`${refused}, ${framing}: ${status}`);
          }
        assert.deepEqual(seen, expected);
      });

    test('does not become a way to speak HTTP/2 behind the proxy', async () => {
      assert.match(await firstLine(open()), /^HTTP\/1\.1 (200|403)/);
      assert.match(await firstLine(connect(program.port, '127.0.0.1')), /^HTTP\/1\.1 200/);
    });

    test('counts callers by their own addresses, not by those that they claim', async () => {
      const remaining: number[] = [];
      for (const claimed of ['203.0.113.9', '203.0.113.10']) {
        const headers = { 'x-forwarded-for': claimed };
        const answer = await request(`${url}/api/v1/products`, { dispatcher, headers });
        await answer.body.dump();
        remaining.push(Number(answer.headers['x-ratelimit-remaining']));
      }
      assert.equal((remaining[0] ?? 0) - (remaining[1] ?? 0), 1);
    });

    test('ends the way to Comity that a declined WebSocket may have left open', async () => {
      const socket = open();
      let received = '';
      socket.setEncoding('latin1').on('data', (text: string) => {
        received += text;
      });
      socket.on('error', () => undefined);
      const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 12\r\n';
      socket.write(
        `GET /api/v1/realtime HTTP/1.1\r\nHost: localhost\r\n${upgrade}Sec-WebSocket-Key: x\r\n\r\n`,
      );
      await once(socket, 'data');
      const next =
        'GET /api/v1/products HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Forwarded-For: ';
      socket.write(`${next}203.0.113.77\r\n\r\n`);
      await once(socket, 'close');
      assert.match(received, /^HTTP\/1\.1 4\d\d/);
      const remaining = /HTTP\/1\.1 200[\s\S]*x-ratelimit-remaining: (\d+)/i.exec(received)?.[1];
      const later = await request(`${url}/api/v1/products`, { dispatcher });
      await later.body.dump();
      // It was counted with the others of this address, or it did not arrive.
      if (remaining !== undefined)
        assert.equal(Number(remaining) - Number(later.headers['x-ratelimit-remaining']), 1);
    });
  });
}

async function requestsUnderWay(): Promise<number> {
  const { body } = await program.send('GET', '/metrics');
  return Number(/^comity_requests_under_way (\d+)$/m.exec(body)?.[1]);
}

/** What an attempt to upgrade to h2c is answered. */
async function firstLine(socket: Socket): Promise<string> {
  socket.write(
    'GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n' +
      'HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n',
  );
  const [chunk] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return String(chunk).split('\r\n', 1)[0] ?? '';
}
