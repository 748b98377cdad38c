/** A restored copy sends no delivery and no mail until it is released, on both stores. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { runCommand } from '../../harness/command-line.ts';
import { startDeliveryReceiver } from '../../harness/delivery-receiver.ts';
import { engineNames } from '../../harness/engine-names.ts';
import { adminKey } from '../../harness/exchange.ts';
import { startMailServer } from '../../harness/mail-server.ts';
import { emptyDatabase } from '../../harness/postgres-database.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { freePort } from '../free-port.ts';

const config = fileURLToPath(new URL('../logic/fixtures/mail.config.ts', import.meta.url));
const secretKey = { COMITY_SECRET_KEY: '3f'.repeat(32) };
/** Long enough for a delivery and a mail that are due; both take some milliseconds. */
const quietMs = 300;

type Place = { readonly data: string; readonly COMITY_DATABASE_URL?: string };

async function place(context: TestContext, engine: string): Promise<Place> {
  const data = join(temporaryFolder(), 'data');
  if (engine === 'SQLite') return { data };
  const database = await emptyDatabase();
  context.after(() => database.dispose());
  return { data, COMITY_DATABASE_URL: database.url };
}

function environmentOf({ data, ...database }: Place): Record<string, string> {
  return { COMITY_CONFIG: config, COMITY_DATA: data, ...database, ...secretKey };
}

async function serve(context: TestContext, at: Place, smtpPort: number): Promise<RunningServer> {
  const env = {
    ...environmentOf(at),
    COMITY_EGRESS_ALLOW: '127.0.0.0/8',
    COMITY_SMTP_URL: `smtp://127.0.0.1:${smtpPort}`,
  };
  const server = await startServer({ config, env });
  context.after(() => server.stop());
  return server;
}

function note(server: RunningServer, to: string) {
  const mail = JSON.stringify({ to, subject: 'Hello', text: 'a text' });
  return server.send('POST', '/api/v1/notes', { json: { text: to, mail } });
}

async function restored(copy: string, to: Place, ...options: readonly string[]): Promise<unknown> {
  const { code, stdout, stderr } = await runCommand(
    ['restore', copy, '--json', ...options],
    environmentOf(to),
  );
  assert.equal(code, 0, stderr);
  return (JSON.parse(stdout) as { readonly held: unknown }).held;
}

for (const engine of engineNames) {
  test(`a copy in another place holds deliveries and mails until it is released: ${engine}`, async (context) => {
    const receiver = await startDeliveryReceiver(context);
    const first = await place(context, engine);
    const server = await serve(context, first, await freePort());
    const endpoint = { url: `${receiver.url}/hook`, events: ['notes.created'], scheme: 'standard' };
    assert.equal((await server.send('POST', '/api/v1/endpoints', { json: endpoint })).status, 201);
    assert.equal((await note(server, 'before@desk.example')).status, 201);
    await receiver.arrival('/hook', 1);
    await server.stop();
    const copy = join(temporaryFolder(), 'copy.db');
    assert.equal((await runCommand(['backup', copy], environmentOf(first))).code, 0);

    const second = await place(context, engine);
    assert.equal(await restored(copy, second), true);
    const mails = await startMailServer(context);
    const held = await serve(context, second, mails.port);
    assert.match(held.stderr(), /work-held/);
    assert.equal((await note(held, 'after@desk.example')).status, 201);
    const hold = (await held.send('GET', '/api/v1/hold')).json();
    assert.deepEqual([hold.held, hold.from], [true, 'copy.db']);
    await delay(quietMs);
    assert.deepEqual([receiver.received.length, mails.received.length], [1, 0]);

    const reader = await held.send('GET', '/api/v1/hold', { anonymous: true });
    assert.equal(reader.status, 401);
    const release = ['release', '--url', held.url];
    const told = await runCommand(release, { COMITY_ADMIN_KEY: adminKey });
    assert.equal(told.stdout, 'Deliveries and mails are sent from now on.\n', told.stderr);
    const { body } = await receiver.arrival('/hook', 2);
    assert.match(body.toString(), /after@desk\.example/);
    await mails.next('after@desk.example');
    assert.equal((await held.send('GET', '/api/v1/hold')).json().held, false);
    const again = await runCommand(release, { COMITY_ADMIN_KEY: adminKey });
    assert.equal(again.stdout, 'Nothing was held.\n');
    await held.stop();
    const third = await serve(context, second, mails.port);
    assert.doesNotMatch(third.stderr(), /work-held/);
  });
}

test('a restore into the place of the backup holds nothing, unless it is told to; and the other way round', async (context) => {
  const first = await place(context, 'SQLite');
  await (await serve(context, first, await freePort())).stop();
  const copy = join(temporaryFolder(), 'copy.db');
  assert.equal((await runCommand(['backup', copy], environmentOf(first))).code, 0);
  for (const [options, isHeld] of [
    [[], false],
    [['--hold-deliveries'], true],
    [['--no-hold-deliveries'], false],
  ] as const) {
    rmSync(first.data, { recursive: true });
    assert.equal(await restored(copy, first, ...options), isHeld, options.join());
  }
  const other = await place(context, 'SQLite');
  assert.equal(await restored(copy, other, '--no-hold-deliveries'), false);
});

test('a backup of a held copy is a held copy, and a restore can end that', async (context) => {
  const first = await place(context, 'SQLite');
  await (await serve(context, first, await freePort())).stop();
  const copy = join(temporaryFolder(), 'copy.db');
  assert.equal((await runCommand(['backup', copy], environmentOf(first))).code, 0);
  const second = await place(context, 'SQLite');
  assert.equal(await restored(copy, second), true);
  const copied = join(temporaryFolder(), 'copied.db');
  assert.equal((await runCommand(['backup', copied], environmentOf(second))).code, 0);
  const third = await place(context, 'PostgreSQL');
  assert.equal(await restored(copied, third, '--no-hold-deliveries'), false);
  const server = await serve(context, third, await freePort());
  assert.equal((await server.send('GET', '/api/v1/hold')).json().held, false);
});
