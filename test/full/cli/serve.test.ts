/** `comity serve` as a process: the ready line, the administrator key, signals, and a data folder that another process has. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { spawnCommand } from '../../harness/command-line.ts';
import { adminKey as key } from '../../harness/exchange.ts';
import { shopConfig, startServer } from '../../harness/running-server.ts';
import { spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';

const secretLine = /^ {2}export COMITY_ADMIN_KEY=(sk_\S+)$/m;

async function post(url: string, credential: string, body: unknown): Promise<Response> {
  const headers = { 'X-API-Key': credential, 'Content-Type': 'application/json' };
  return fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
}

/** Begins a request whose content never comes whole. */
async function beginRequest(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  after(() => socket.destroy());
  await once(socket, 'connect');
  socket.write(
    `POST /api/v1/categories HTTP/1.1\r\nHost: ${hostname}\r\nX-API-Key: ${key}\r\n` +
      'Content-Type: application/json\r\nContent-Length: 15\r\n\r\n{"name":',
  );
  return socket;
}

test('prints one ready line on stdout, and then answers', async () => {
  const server = await spawnServer();
  assert.match(server.url, /^http:\/\/127\.0\.0\.1:[1-9]\d*$/);
  assert.equal((await fetch(`${server.url}/health/ready`)).status, 200);
  server.process.kill('SIGTERM');
  const { code, stdout } = await server.ended;
  assert.equal(code, 0);
  assert.ok(stdout.startsWith(`comity listening on ${server.url}\n`));
  assert.equal(stdout.match(/^comity listening/gm)?.length, 1);
});

test('makes an administrator key at the first start, prints it once, and keeps it', async () => {
  const options = { folder: join(temporaryFolder(), 'data'), env: { COMITY_ADMIN_KEY: '' } };
  const first = await spawnServer(options);
  const made = secretLine.exec(first.stdout())?.[1] ?? '';
  assert.match(made, /^sk_.{20,}/);
  assert.equal((await post(`${first.url}/api/v1/categories`, made, { name: 'One' })).status, 201);
  first.process.kill('SIGTERM');
  const { stderr } = await first.ended;
  assert.ok(!stderr.includes(made));
  const second = await startServer(options);
  assert.ok(!second.stdout().includes('sk_'));
  assert.equal((await post(`${second.url}/api/v1/categories`, made, { name: 'Two' })).status, 201);
  await second.stop();
});

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`lets a request under way end on ${signal}, then exits 0`, async () => {
    const server = await spawnServer();
    const socket = await beginRequest(server.url);
    // An answer to a later request shows that the first one has arrived.
    await fetch(`${server.url}/health/live`);
    server.process.kill(signal);
    await server.told('draining');
    socket.write('"Late"}');
    const [answer] = await once(socket, 'data');
    assert.match(String(answer), /^HTTP\/1\.1 201 /);
    assert.equal((await server.ended).code, 0);
  });
}

for (const processes of ['1', '2']) {
  test(`serves requests for the delay while it is not ready, then drains (${processes} workers)`, async () => {
    const server = await spawnServer({
      env: { COMITY_DRAIN_DELAY_SECONDS: '2', COMITY_PROCESSES: processes, COMITY_LOG_LEVEL: 'info' },
    });
    const ask = async (path: string): Promise<number> =>
      (await fetch(`${server.url}${path}`, { headers: { connection: 'close' } })).status;
    assert.equal(await ask('/health/ready'), 200);
    const signalledAt = performance.now();
    server.process.kill('SIGTERM');
    await until(async () => (await ask('/health/ready')) === 503);
    // New connections are taken to the end of the delay: the proxy that still routes gets answers.
    let answered = 0;
    while (performance.now() - signalledAt < 1500) {
      assert.deepEqual([await ask('/api/v1/products'), await ask('/health/live')], [200, 200]);
      answered += 1;
    }
    assert.ok(answered > 5, String(answered));
    assert.equal((await server.ended).code, 0);
    assert.ok(performance.now() - signalledAt >= 2000);
    await assert.rejects(ask('/health/ready'));
  });
}

test('ends at once with 130 on a second signal', async () => {
  const server = await spawnServer();
  const socket = await beginRequest(server.url);
  socket.on('error', () => socket.destroy());
  await fetch(`${server.url}/health/live`);
  server.process.kill('SIGTERM');
  await server.told('draining');
  server.process.kill('SIGTERM');
  assert.equal((await server.ended).code, 130);
});

test('takes the signal that npm passes on for the one from the terminal', async () => {
  const server = await spawnServer({ env: { npm_lifecycle_event: 'start' } });
  server.process.kill('SIGINT');
  server.process.kill('SIGINT');
  assert.equal((await server.ended).code, 0);
});

test('ends within its bound when a request never ends', async () => {
  const server = await spawnServer({ env: { COMITY_DRAIN_MS: '200' } });
  const socket = await beginRequest(server.url);
  socket.on('error', () => socket.destroy());
  await fetch(`${server.url}/health/live`);
  server.process.kill('SIGTERM');
  assert.equal((await server.ended).code, 0);
});

test('says in one line that another process has its data folder, and exits 1', async () => {
  const data = join(temporaryFolder(), 'data');
  const server = await startServer({ folder: data });
  const environment = {
    COMITY_CONFIG: shopConfig,
    COMITY_DATA: data,
    COMITY_PORT: '0',
    COMITY_LOG_LEVEL: 'error',
  };
  const { code, stdout, stderr } = await spawnCommand(['serve'], environment).ended;
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, /^comity: [^\n]*in use[^\n]*\n$/);
  assert.ok(stderr.includes(data));
  await server.stop();
});

test('takes its options from the command line before the environment', async () => {
  const data = join(temporaryFolder(), 'data');
  const server = await spawnServer({
    env: { COMITY_DATA: '/dev/null/no', COMITY_HOST: '10.0.0.1' },
    args: ['--data', data, '--host', '127.0.0.1'],
  });
  assert.ok(server.stdout().includes(`Data is kept in ${data}\n`));
  server.process.kill('SIGTERM');
  assert.equal((await server.ended).code, 0);
});
