/** `comity serve`: the ready line, the administrator key, signals, and why it could not start. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { runProgram, shop, startServer, temporaryFolder } from './spawn-program.ts';

const key = 'sk_test_0123456789abcdef0123456789';
const secretLine = /^ {2}export COMITY_ADMIN_KEY=(sk_\S+)$/m;

function dataFolder(): string {
  return join(temporaryFolder(), 'data');
}

async function post(url: string, credential: string, body: unknown): Promise<Response> {
  const headers = { 'X-API-Key': credential, 'Content-Type': 'application/json' };
  return fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
}

/** Begins a request whose content never comes whole. */
async function beginRequest(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  socket.write(
    `POST /api/v1/categories HTTP/1.1\r\nHost: ${hostname}\r\nX-API-Key: ${key}\r\n` +
      'Content-Type: application/json\r\nContent-Length: 15\r\n\r\n{"name":',
  );
  return socket;
}

test('prints one ready line on stdout, and then answers', async () => {
  const server = await startServer({ COMITY_DATA: dataFolder() });
  assert.match(server.url, /^http:\/\/127\.0\.0\.1:[1-9]\d*$/);
  assert.equal((await fetch(`${server.url}/health/ready`)).status, 200);
  server.send('SIGTERM');
  const { code, stdout } = await server.ended;
  assert.equal(code, 0);
  assert.ok(stdout.startsWith(`comity listening on ${server.url}\n`));
  assert.equal(stdout.match(/^comity listening/gm)?.length, 1);
});

test('makes an administrator key at the first start, prints it once, and keeps it', async () => {
  const environment = { COMITY_DATA: dataFolder() };
  const first = await startServer(environment);
  const made = secretLine.exec(first.stdout())?.[1] ?? '';
  assert.match(made, /^sk_.{20,}/);
  assert.equal((await post(`${first.url}/api/v1/categories`, made, { name: 'One' })).status, 201);
  first.send('SIGTERM');
  const { stderr } = await first.ended;
  assert.ok(!stderr.includes(made));
  const second = await startServer(environment);
  assert.ok(!second.stdout().includes('sk_'));
  assert.equal((await post(`${second.url}/api/v1/categories`, made, { name: 'Two' })).status, 201);
  second.send('SIGTERM');
  assert.equal((await second.ended).code, 0);
});

test('never prints a key that it was given', async () => {
  const server = await startServer({
    COMITY_DATA: dataFolder(),
    COMITY_ADMIN_KEY: key,
    COMITY_LOG_LEVEL: 'debug',
  });
  assert.equal((await post(`${server.url}/api/v1/categories`, key, { name: 'One' })).status, 201);
  server.send('SIGTERM');
  const { stdout, stderr } = await server.ended;
  assert.ok(!`${stdout}${stderr}`.includes(key));
});

test('prints three commands that work as they stand', async () => {
  const server = await startServer({ COMITY_DATA: dataFolder(), COMITY_ADMIN_KEY: key });
  const commands = server.stdout().match(/^ {2}curl .*$/gm) ?? [];
  const statuses = await Promise.all(commands.map((command) => perform(command)));
  assert.deepEqual(statuses, [200, 201, 200]);
  server.send('SIGTERM');
  await server.ended;
});

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`lets a request under way end on ${signal}, then exits 0`, async () => {
    const server = await startServer({ COMITY_DATA: dataFolder(), COMITY_ADMIN_KEY: key });
    const socket = await beginRequest(server.url);
    // An answer to a later request shows that the first one has arrived.
    await fetch(`${server.url}/health/live`);
    server.send(signal);
    await server.told('draining');
    socket.write('"Late"}');
    const [answer] = await once(socket, 'data');
    assert.match(String(answer), /^HTTP\/1\.1 201 /);
    assert.equal((await server.ended).code, 0);
  });
}

test('ends at once with 130 on a second signal', async () => {
  const server = await startServer({ COMITY_DATA: dataFolder(), COMITY_ADMIN_KEY: key });
  const socket = await beginRequest(server.url);
  socket.on('error', () => socket.destroy());
  await fetch(`${server.url}/health/live`);
  server.send('SIGTERM');
  await server.told('draining');
  server.send('SIGTERM');
  assert.equal((await server.ended).code, 130);
});

test('takes the signal that npm passes on for the one from the terminal', async () => {
  const server = await startServer({
    COMITY_DATA: dataFolder(),
    COMITY_ADMIN_KEY: key,
    npm_lifecycle_event: 'start',
  });
  server.send('SIGINT');
  server.send('SIGINT');
  assert.equal((await server.ended).code, 0);
});

test('ends within its bound when a request never ends', async () => {
  const server = await startServer({
    COMITY_DATA: dataFolder(),
    COMITY_ADMIN_KEY: key,
    COMITY_DRAIN_MS: '200',
  });
  const socket = await beginRequest(server.url);
  socket.on('error', () => socket.destroy());
  await fetch(`${server.url}/health/live`);
  server.send('SIGTERM');
  assert.equal((await server.ended).code, 0);
});

test('says in one line that its port is in use, and exits 1', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const address = taken.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const environment = {
    COMITY_CONFIG: shop,
    COMITY_DATA: dataFolder(),
    COMITY_PORT: String(port),
    COMITY_LOG_LEVEL: 'error',
  };
  const { code, stdout, stderr } = await runProgram(['serve'], environment);
  taken.close();
  assert.deepEqual([code, stdout], [1, '']);
  assert.equal(
    stderr,
    `comity: port ${port} on 127.0.0.1 is already in use; set COMITY_PORT to another, or to 0 for any free one\n`,
  );
});

test('says in one line that it cannot use its data folder, and exits 1', async () => {
  const file = join(temporaryFolder(), 'file');
  writeFileSync(file, '');
  const environment = {
    COMITY_CONFIG: shop,
    COMITY_DATA: join(file, 'data'),
    COMITY_PORT: '0',
    COMITY_LOG_LEVEL: 'error',
  };
  const { code, stdout, stderr } = await runProgram(['serve'], environment);
  assert.deepEqual([code, stdout], [1, '']);
  assert.equal(
    stderr,
    `comity: the data folder ${join(file, 'data')} cannot be used: part of the path is a file\n`,
  );
});

test('says in one line that another process has its data folder, and exits 1', async () => {
  const data = dataFolder();
  const server = await startServer({ COMITY_DATA: data });
  const environment = { COMITY_CONFIG: shop, COMITY_DATA: data, COMITY_PORT: '0', COMITY_LOG_LEVEL: 'error' };
  const { code, stdout, stderr } = await runProgram(['serve'], environment);
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, /^comity: [^\n]*in use[^\n]*\n$/);
  assert.ok(stderr.includes(data));
  server.send('SIGTERM');
  await server.ended;
});

test('takes its options from the command line before the environment', async () => {
  const data = dataFolder();
  const server = await startServer({ COMITY_DATA: '/dev/null/no', COMITY_HOST: '10.0.0.1' }, [
    '--data',
    data,
    '--host',
    '127.0.0.1',
  ]);
  assert.ok(server.stdout().includes(`Data is kept in ${data}\n`));
  server.send('SIGTERM');
  assert.equal((await server.ended).code, 0);
});

/** Does what a printed curl command does, for machines without curl. */
async function perform(command: string): Promise<number> {
  const words = [...command.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, one, two, plain]) => one ?? two ?? plain ?? '',
  );
  const headers = new Headers();
  let method = 'GET';
  let body: string | null = null;
  let url = '';
  for (let at = words.indexOf('curl') + 1; at < words.length; at += 1) {
    const word = words[at] ?? '';
    const next = words[at + 1] ?? '';
    if (word === '-H') {
      const [name = '', value = ''] = next.split(': ');
      headers.set(name, value.replace('$COMITY_ADMIN_KEY', key));
    } else if (word === '-X') method = next;
    else if (word === '-d') [body, method] = [next, method === 'GET' ? 'POST' : method];
    else url = word;
    if (word.startsWith('-')) at += 1;
  }
  return (await fetch(url, { method, headers, body })).status;
}
