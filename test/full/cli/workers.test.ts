/** COMITY_PROCESSES: one port, one store, several workers; one that ends is replaced, and nothing acknowledged is lost. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join, resolve } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { runCommand } from '../../harness/command-line.ts';
import { send } from '../../harness/exchange.ts';
import { listen } from '../../harness/listening.ts';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { linkPackage, temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';
import { freePort } from '../../wire/free-port.ts';

const failing = resolve('test/full/cli/fixtures/failing-worker.config.ts');
const notes = '/api/v1/notes';

async function start(env: Record<string, string> = {}): Promise<ServerProcess & { readonly fault: string }> {
  const fault = join(temporaryFolder(), 'fault');
  const server = await spawnServer({
    config: failing,
    env: { COMITY_PROCESSES: '2', COMITY_LOG_LEVEL: 'info', FAILING_WORKER: fault, ...env },
  });
  after(() => server.stop());
  return { ...server, fault };
}

const listening = (server: ServerProcess): number =>
  server.stderr().match(/"kind":"listening"/g)?.length ?? 0;

for (const [fault, message] of [
  ['throw', 'thrown by a timer'],
  ['exit', 'the worker ended'],
  ['memory', 'reaching memory limit'],
  ['loop', 'the worker answered nothing for 1000 ms'],
] as const) {
  test(`replaces a worker that ends (${fault}), and loses nothing that was acknowledged`, async () => {
    // A worker that is short of memory may be silent for seconds before it reaches its limit.
    const silence: Record<string, string> = fault === 'loop' ? { COMITY_WORKER_SILENCE_MS: '1000' } : {};
    // Of the heap each worker may use half.
    const server = await start({
      ...{ COMITY_RATE_LIMIT_WRITES: '0', ...silence },
      ...{ NODE_OPTIONS: '--max-old-space-size=256' },
    });
    await until(() => listening(server) === 2);
    const acknowledged: string[] = [];
    let writing = true;
    const writers = Array.from({ length: 4 }, async () => {
      while (writing) {
        try {
          const answer = await server.send('POST', notes, { json: { text: 'kept' } });
          if (answer.status === 201) acknowledged.push(String(answer.headers.location));
          else assert.equal(answer.status, 503);
        } catch {
          // The connection was one of the worker that ended.
        }
        await delay(5);
      }
    });
    await until(() => acknowledged.length > 50);
    writeFileSync(server.fault, fault);
    await server.told('worker-ended');
    await until(() => listening(server) === 3);
    const before = acknowledged.length;
    await until(() => acknowledged.length > before + 50);
    writing = false;
    await Promise.all(writers);
    for (const path of acknowledged) assert.equal((await server.send('GET', path)).status, 200);
    const line =
      server
        .stderr()
        .split('\n')
        .find((each) => each.includes('"worker-ended"')) ?? '';
    assert.match(line, new RegExp(message));
    assert.equal(await server.stop(), 0);
  });
}

test('exits 70 when no worker serves and none can be started', async () => {
  const folder = temporaryFolder();
  const config = join(folder, 'comity.config.ts');
  const text = readFileSync(failing, 'utf8');
  linkPackage(folder);
  writeFileSync(config, text);
  const fault = join(folder, 'fault');
  const server = await spawnServer({
    config,
    env: { COMITY_PROCESSES: '2', COMITY_LOG_LEVEL: 'info', FAILING_WORKER: fault },
  });
  await until(() => listening(server) === 2);
  writeFileSync(config, text.replaceAll('notes', 'papers'));
  writeFileSync(fault, 'exit');
  await server.told('worker-ended');
  await until(() => (server.stderr().match(/"kind":"worker-ended"/g)?.length ?? 0) > 1);
  assert.equal((await server.send('GET', notes)).status, 200);
  writeFileSync(fault, 'exit');
  const { code, stderr } = await server.ended;
  assert.equal(code, 70);
  assert.match(stderr, /the configuration has changed since Comity started: restart Comity/);
  assert.match(stderr, /^comity: no worker serves, and none can be started$/m);
});

test('prints a key that was made once, drains every worker on SIGTERM, and shows one page of metrics', async () => {
  const server = await start({ COMITY_ADMIN_KEY: '', COMITY_PROCESSES: '4' });
  const keys = server.stdout().match(/\bsk_[\w-]+/g) ?? [];
  assert.equal(new Set(keys).size, 1);
  const headers = { Authorization: `Bearer ${keys[0]}` };
  for (let round = 0; round < 40; round += 1) {
    const answer = await send(server.port, 'GET', notes, { anonymous: true, headers });
    assert.equal(answer.status, 200);
  }
  const page = (await send(server.port, 'GET', '/metrics', { anonymous: true, headers })).body;
  const counts = [...page.matchAll(/^comity_requests_total\{.*worker="(\d)".*\} (\d+)$/gm)];
  const answered = counts.filter(([line]) => line.includes('/notes') && line.includes('status="200"'));
  assert.equal(
    answered.reduce((sum, [, , count]) => sum + Number(count), 0),
    40,
  );
  assert.equal(page.match(/^# HELP comity_requests_total /gm)?.length, 1);
  assert.equal(page.match(/^process_resident_memory_bytes/gm)?.length, 1);
  const { body } = await send(server.port, 'GET', '/api/v1/meta/activity', { anonymous: true, headers });
  const { day } = JSON.parse(body) as { day: { requests: number[] } };
  // With the page of metrics; the request itself is counted when it is answered.
  assert.equal(
    day.requests.reduce((sum, count) => sum + count, 0),
    41,
  );
  // Each worker frees the memory of its start after a second.
  await delay(1500);
  const idle = connect(server.port, '127.0.0.1');
  idle.on('error', () => idle.destroy());
  assert.equal(await server.stop(), 0);
  assert.equal(server.stderr().match(/"kind":"stopped"/g)?.length, 4);
  assert.doesNotMatch(server.stderr(), /"level":"(error|fatal)"/);
});

test('starts although clients connect to its port before it is ready and stay', async (t) => {
  const port = await freePort();
  let asking = true;
  const clients: Socket[] = [];
  const connecting = (async () => {
    while (asking) {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => socket.destroy());
      clients.push(socket);
      await delay(5);
    }
  })();
  t.after(() => {
    asking = false;
    for (const socket of clients) socket.destroy();
  });
  const server = await start({ COMITY_PORT: String(port) });
  asking = false;
  await connecting;
  assert.equal((await server.send('GET', notes)).status, 200);
});

test('refuses a port that is in use, a second process on the folder, and a number of workers out of bounds', async (t) => {
  const other = await listen(createServer(), t);
  const folder = temporaryFolder();
  const base = { COMITY_CONFIG: failing, COMITY_DATA: folder, COMITY_PROCESSES: '2' };
  const taken = await runCommand(['serve'], { ...base, COMITY_PORT: String(other.port) });
  assert.deepEqual(
    [taken.code, taken.stderr.includes(`port ${other.port} on 127.0.0.1 is already in use`)],
    [1, true],
  );
  const server = await start();
  const second = await runCommand(['serve'], { ...base, COMITY_PORT: '0', COMITY_DATA: server.folder });
  assert.match(second.stderr, /is in use by another process/);
  const shared = await runCommand(['serve'], { ...base, COMITY_PORT: String(server.port) });
  assert.match(shared.stderr, /already in use/);
  for (const count of ['0', '65', '1.5', 'all', '02']) {
    const refused = await runCommand(['serve'], { ...base, COMITY_PROCESSES: count });
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /COMITY_PROCESSES must be auto or an integer from 1 to 64/);
  }
});
