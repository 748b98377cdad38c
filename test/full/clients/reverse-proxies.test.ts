/**
 * The configurations of docs/guides/behind-a-proxy.md, as they stand there but for ports and files, in the real nginx and the real Caddy. What is
 * not installed is skipped, and says so.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { Agent, request } from 'undici';
import { WebSocket } from 'ws';
import { cert, key } from '../../accounts/mail/certificate.ts';
import { adminKey } from '../../harness/exchange.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { freePort } from '../../wire/free-port.ts';
import { findCommand } from './command.ts';

const guide = readFileSync('docs/guides/behind-a-proxy.md', 'utf8');
let program: RunningServer;

before(async () => {
  program = await startServer({ env: { COMITY_BEHIND_PROXY: 'on', COMITY_REALTIME_ATTEMPT_MS: '0' } });
});

after(() => program?.stop());

function blockOf(language: string): string {
  const block = new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(guide)?.[1];
  assert.ok(block !== undefined, `the guide has a block of ${language}`);
  return block;
}

function nginxConfiguration(folder: string, port: number): string {
  const server = blockOf('nginx')
    .replace('127.0.0.1:4000', `127.0.0.1:${program.port}`)
    .replace('listen 443', `listen 127.0.0.1:${port}`)
    .replace('/etc/ssl/shop.example.pem', join(folder, 'cert.pem'))
    .replace('/etc/ssl/shop.example.key', join(folder, 'key.pem'))
    .replace('server_name shop.example', 'server_name localhost');
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${join(folder, name)};`,
  );
  // Its worker stores uploads in the folder of the test.
  return `daemon off; user ${userInfo().username}; pid ${join(folder, 'pid')}; error_log stderr; worker_processes 1; events { worker_connections 64; }
http { access_log off; ${temporary.join(' ')} ${server} }`;
}

function caddyConfiguration(folder: string, port: number): string {
  const site = blockOf('caddyfile')
    .replace(
      'shop.example {',
      `https://localhost:${port} {\n  tls ${join(folder, 'cert.pem')} ${join(folder, 'key.pem')}`,
    )
    .replace('127.0.0.1:4000', `127.0.0.1:${program.port}`);
  return `{\n  admin off\n  auto_https disable_redirects\n}\n${site}`;
}

const proxies = [
  ['nginx', nginxConfiguration, (folder: string, file: string) => ['-p', folder, '-e', 'stderr', '-c', file]],
  [
    'caddy',
    caddyConfiguration,
    (_folder: string, file: string) => ['run', '--adapter', 'caddyfile', '--config', file],
  ],
] as const;

for (const [name, configurationOf, argumentsOf] of proxies) {
  const path = findCommand(name);
  describe(`behind ${name}`, { skip: path === undefined ? `${name} is not installed` : false }, () => {
    const folder = temporaryFolder();
    // Over HTTP/2, undici loses what the proxies answer early.
    const dispatcher = new Agent({ allowH2: false, connect: { ca: cert } });
    let child: ChildProcess;
    let port = 0;
    let url = '';

    before(async () => {
      port = await freePort();
      url = `https://localhost:${port}`;
      writeFileSync(join(folder, 'cert.pem'), cert);
      writeFileSync(join(folder, 'key.pem'), key);
      const file = join(folder, 'configuration');
      writeFileSync(file, configurationOf(folder, port));
      child = spawn(path ?? '', argumentsOf(folder, file), {
        stdio: ['ignore', 'ignore', 'pipe'],
        env: { HOME: folder },
      });
      let told = '';
      child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        told += text;
      });
      for (let looks = 0; !(await answers(port)); looks += 1) {
        assert.ok(looks < 100 && child.exitCode === null, `${name} did not start: ${told}`);
        await delay(50);
      }
    });

    after(async () => {
      if (child.exitCode === null) {
        child.kill('SIGTERM');
        await once(child, 'exit');
      }
      await dispatcher.destroy();
    });

    const ask = (path: string, options: Parameters<typeof request>[1] = {}) =>
      request(`${url}${path}`, {
        dispatcher,
        ...options,
        headers: { 'x-api-key': adminKey, ...(options.headers as Record<string, string>) },
      });

    test('answers 304, with the entity tag as it was made', async () => {
      const first = await ask('/api/v1/categories');
      await first.body.dump();
      const tag = String(first.headers.etag);
      assert.match(tag, /^"/);
      const again = await ask('/api/v1/categories', { headers: { 'if-none-match': tag } });
      await again.body.dump();
      assert.equal(again.statusCode, 304);
    });

    test('lets QUERY through, with its content', async () => {
      const answer = await ask('/api/v1/categories', {
        method: 'QUERY' as 'GET',
        headers: { 'content-type': 'application/json' },
        body: '{"limit":1}',
      });
      assert.equal(answer.statusCode, 200);
      assert.ok('items' in ((await answer.body.json()) as object));
    });

    test('shows an event stream as it comes', async () => {
      const { body } = await ask('/api/v1/events', { headers: { accept: 'text/event-stream' } });
      const [chunk] = (await once(body, 'data')) as [Buffer];
      assert.match(String(chunk), /^: comity events/);
      body.destroy();
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

    test('brings every refusal of an upload back', async () => {
      const seen: number[] = [];
      for (const bytes of [1_100_000, 8_000_000, 25_000_000])
        for (const headers of [
          { 'content-type': 'application/json' },
          { 'x-api-key': 'sk_wrong' },
          { 'content-type': 'image/png' },
        ])
          for (let round = 0; round < 5; round += 1) {
            const answer = await ask('/api/v1/products', {
              method: 'POST',
              headers,
              body: Buffer.alloc(bytes),
            });
            await answer.body.dump();
            seen.push(answer.statusCode);
          }
      const expected = [413, 401, 415].flatMap((status) => Array.from({ length: 5 }, () => status));
      assert.deepEqual(seen, [...expected, ...expected, ...expected]);
    });

    test('does not become a way to speak HTTP/2 behind the proxy', async () => {
      const socket = connectTls({ port, host: '127.0.0.1', servername: 'localhost', ca: cert });
      assert.match(await firstLine(socket), /^HTTP\/1\.1 200/);
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
  });
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  return new Promise((resolve) => {
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
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
