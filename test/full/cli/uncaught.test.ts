/** What an error that no code caught does to `serve` (decision 0037): it is logged, the program drains, and exits 70. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join, resolve } from 'node:path';
import { after, test } from 'node:test';
import { programFile } from '../../harness/command-line.ts';
import { adminKey as key } from '../../harness/exchange.ts';
import { type ServerProcess as Server, spawnServer } from '../../harness/server-process.ts';
import { linkPackage, temporaryFolder } from '../../harness/temporary-folder.ts';

const config = resolve('test/full/cli/fixtures/failing.config.ts');

function start(environment: Record<string, string> = {}): Promise<Server> {
  return spawnServer({ config, env: { COMITY_LOG_LEVEL: 'fatal', ...environment } });
}

/** A POST of which the end of the content is still to come. */
async function beginRequest({ url }: Server): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  after(() => socket.destroy());
  await once(socket, 'connect');
  const fields = `Host: a\r\nX-API-Key: ${key}\r\nContent-Type: application/json\r\nContent-Length: 15`;
  socket.write(`POST /api/v1/notes HTTP/1.1\r\n${fields}\r\n\r\n{"text":`);
  // An answer to a later request shows that the first one has arrived.
  await fetch(`${url}/health/live`);
  return socket;
}

for (const [origin, signal, message] of [
  ['uncaughtException', 'SIGUSR2', 'thrown by a timer'],
  ['unhandledRejection', 'SIGHUP', 'rejected, and nobody listens'],
] as const) {
  test(`logs an error of origin ${origin} with its stack, answers what is under way, and exits 70`, async () => {
    const server = await start();
    const socket = await beginRequest(server);
    server.process.kill(signal);
    await server.told(origin);
    socket.write('"Late"}');
    assert.match(String((await once(socket, 'data'))[0]), /^HTTP\/1\.1 201 /);
    const { code, stderr } = await server.ended;
    assert.equal(code, 70);
    const line = stderr.split('\n').find((each) => each.includes('"kind":"uncaught"')) ?? '';
    const logged = JSON.parse(line) as { kind: string; level: string; error: { stack: string } };
    assert.deepEqual([logged.kind, logged.level], ['uncaught', 'fatal']);
    assert.match(logged.error.stack, new RegExp(`${message}\\n\\s+at .*failing\\.config\\.ts`));
    assert.match(stderr, new RegExp(`^comity: ended by an uncaught error: ${message}$`, 'm'));
  });
}

test('accepts no connection while it drains after an uncaught error', async () => {
  const server = await start({ COMITY_LOG_LEVEL: 'info' });
  const socket = await beginRequest(server);
  server.process.kill('SIGHUP');
  await server.told('draining');
  const refused = connect(Number(new URL(server.url).port), '127.0.0.1');
  const [error] = await once(refused, 'error');
  assert.equal(error.code, 'ECONNREFUSED');
  socket.end('"Late"}');
  assert.equal((await server.ended).code, 70);
});

test('drains once however many errors follow, logs ten of them, and ends within its bound', async () => {
  const server = await start({ COMITY_DRAIN_MS: '500' });
  const socket = await beginRequest(server);
  socket.on('error', () => socket.destroy());
  server.process.kill('SIGUSR2');
  const { code, stderr } = await server.ended;
  assert.equal(code, 70);
  assert.equal(stderr.match(/"kind":"uncaught"/g)?.length, 10);
});

test('exits 70 also where the first signal comes during the drain of an uncaught error', async () => {
  const server = await start();
  const socket = await beginRequest(server);
  server.process.kill('SIGHUP');
  await server.told('unhandledRejection');
  server.process.kill('SIGTERM');
  socket.write('"Late"}');
  assert.match(String((await once(socket, 'data'))[0]), /^HTTP\/1\.1 201 /);
  assert.equal((await server.ended).code, 70);
});

test('a program of its own that does not catch a refusal shows the message, not a chunk of the bundle', async () => {
  const folder = temporaryFolder();
  linkPackage(folder);
  programFile();
  const program = join(folder, 'own.mjs');
  writeFileSync(
    program,
    `import { collection, createComity, defineConfig, Type } from 'comity';
     const notes = collection({ schema: Type.Object({ text: Type.String() }) });
     const comity = await createComity(defineConfig({ collections: { notes } }), {
       COMITY_DATA: ${JSON.stringify(join(folder, 'data'))},
       COMITY_LOG_LEVEL: 'silent',
     });
     await comity.resources.notes.create({ txt: 1 });`,
  );
  const { stderr, status } = spawnSync(process.execPath, [program], { encoding: 'utf8' });
  assert.equal(status, 1);
  assert.match(stderr, /ResourceRefused: .*\/txt unknown property/);
  assert.ok(stderr.length < 3000, stderr);
});
