/** `comity endpoints`, `deliveries` and `events` against one running server; test/full/cli/listen.test.ts has `listen`, which a signal ends. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Receiver, startReceiver } from '../../examples/receiver/start-receiver.ts';
import type { Delivery } from '../../src/model/delivery.ts';
import type { Endpoint } from '../../src/model/endpoint.ts';
import type { Recovery } from '../../src/webhooks/sending/recovery/recovery.ts';
import type { Attempt } from '../../src/webhooks/sending/settle-delivery.ts';
import { type Outcome, runCommand } from '../harness/command-line.ts';
import { adminKey } from '../harness/exchange.ts';
import { type RunningServer, startServer } from '../harness/running-server.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

type Attempted = Delivery & { readonly attempts: readonly Attempt[] };

type ShownSecret = Endpoint & { readonly secret: string };

type Posted = { readonly id: string; readonly data: { readonly object: Readonly<Record<string, unknown>> } };

const folder = temporaryFolder();
let server: RunningServer;
let receiver: Receiver;

before(async () => {
  receiver = await startReceiver();
  server = await startServer({ env: { COMITY_EGRESS_ALLOW: '127.0.0.0/8' } });
});

after(async () => {
  await receiver.close();
  await server.stop();
});

function comity(...args: readonly string[]): Promise<Outcome> {
  return runCommand(args, { COMITY_URL: server.url, COMITY_ADMIN_KEY: adminKey });
}

async function json<T>(...args: readonly string[]): Promise<T> {
  const { code, stdout, stderr } = await comity(...args, '--json');
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

/** What a list shows as soon as it shows one that is meant. */
async function listed(isMeant: (one: Delivery) => boolean, ...args: readonly string[]): Promise<Delivery> {
  for (;;) {
    const [first] = await json<readonly Delivery[]>('deliveries', 'list', ...args);
    if (first !== undefined && isMeant(first)) return first;
  }
}

async function makeEndpoint(path: string, ...args: readonly string[]): Promise<string> {
  const made = await json<ShownSecret>('endpoints', 'create', '--to', `${receiver.url}${path}`, ...args);
  receiver.trust(made.secret);
  return made.id;
}

async function created(name: string): Promise<void> {
  const headers = { 'X-API-Key': adminKey, 'Content-Type': 'application/json' };
  const body = JSON.stringify({ name });
  const made = await fetch(`${server.url}/api/v1/categories`, { method: 'POST', headers, body });
  assert.equal(made.status, 201);
  await made.arrayBuffer();
}

test('prints the secret of a new endpoint alone on stdout, and what it is on stderr', async () => {
  const to = `${receiver.url}/ok/printed`;
  const { code, stdout, stderr } = await comity('endpoints', 'create', '--to', to, '--events', 'a.b, c.*');
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^whsec_[A-Za-z0-9+/]+=*\n$/);
  const [first, second] = stderr.trimEnd().split('\n');
  assert.match(
    first ?? '',
    /^comity: ep_[0-9a-z]{26}: a\.b, c\.\* to http:.*\/ok\/printed, signed as standard$/,
  );
  assert.equal(second, 'comity: the secret is shown only once; give it to the receiver now');
  assert.ok(!(await comity('endpoints', 'list')).stdout.includes('whsec_'));
});

test('makes an endpoint with the signatures that it wants, and shows them', async () => {
  const id = await makeEndpoint('/ok/signed', '--events', 'nothing.happens', '--signatures', 'v1');
  assert.match((await comity('endpoints', 'show', id)).stdout, /^signatures +v1$/m);
});

test('makes, lists, shows, stops, starts and deletes endpoints', async () => {
  const options = [
    '--scheme',
    'timestamped',
    '--mode',
    'sandbox',
    '--tenant',
    'acme',
    '--description',
    'Books',
  ];
  const headers = ['--header', 'X-Team: books', 'X-Shelf: 7'];
  const limits = ['--max-in-flight', '4', '--rate', '10'];
  const id = await makeEndpoint('/ok/life', '--events', 'life.*', ...options, ...headers, ...limits);
  const shown = await json<Endpoint>('endpoints', 'show', id);
  assert.deepEqual(
    [shown.scheme, shown.mode, shown.tenant, shown.description, shown.headers, shown.maxInFlight],
    ['timestamped', 'sandbox', 'acme', 'Books', { 'X-Team': '********', 'X-Shelf': '********' }, 4],
  );
  assert.match((await comity('endpoints', 'show', id)).stdout, /^header {6,}X-Team: \*{8}$/m);
  const { stdout } = await comity('endpoints', 'list');
  const [head = '', first = ''] = stdout.split('\n');
  assert.match(head, /^ID +STATUS +SCHEME +TENANT +EVENTS +URL$/);
  assert.deepEqual(first.split(/ {2,}/).slice(0, 5), [id, 'enabled', 'timestamped', 'acme', 'life.*']);
  assert.equal((await json<Endpoint>('endpoints', 'disable', id)).status, 'disabled');
  assert.match((await comity('endpoints', 'enable', id)).stdout, /^status +enabled$/m);
  const deleted = await comity('endpoints', 'delete', id);
  assert.deepEqual(deleted, {
    code: 0,
    stdout: `${id} (${receiver.url}/ok/life) was deleted.\n`,
    stderr: '',
  });
  for (const command of ['show', 'enable', 'delete', 'rotate-secret', 'test']) {
    const gone = { code: 1, stdout: '', stderr: `comity: there is no endpoint ${id}\n` };
    assert.deepEqual(await comity('endpoints', command, id), gone);
  }
});

test('rotates a secret, with an overlap in which both sign', async () => {
  const id = await makeEndpoint('/ok/rotated', '--events', 'rotated.*');
  const { code, stdout, stderr } = await comity('endpoints', 'rotate-secret', id, '--overlap', '600');
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^whsec_/);
  // The receiver knows the old one alone.
  assert.equal((await comity('endpoints', 'test', id)).code, 0);
  const signatures = receiver.received.at(-1)?.headers['webhook-signature'];
  assert.equal(String(signatures).match(/\bv1,/g)?.length, 2);
});

test('sends a test event, and shows what was answered', async () => {
  const well = await makeEndpoint('/ok/tested', '--events', 'never.posted');
  const good = await json<Attempted>('endpoints', 'test', well);
  assert.deepEqual(
    [good.status, good.eventType, good.attempts[0]?.statusCode],
    ['delivered', 'endpoint.test', 204],
  );
  const ill = await makeEndpoint('/status/500/tested', '--events', 'never.posted');
  const { code, stdout } = await comity('endpoints', 'test', ill);
  assert.equal(code, 1);
  assert.match(stdout, /^status +not_delivered$/m);
  assert.match(stdout, /^\S+Z +automatic +500 +\d+ ms +500$/m);
  const queued = await comity('endpoints', 'test', well, '--no-wait');
  assert.equal(queued.code, 0, queued.stderr);
});

test('lists, shows and resends deliveries', async () => {
  const endpoint = await makeEndpoint('/flaky/2/resent', '--events', 'categories.created');
  await created('Kitchen');
  const came = (times: number) =>
    receiver.until((all) => all.filter(({ path }) => path === '/flaky/2/resent').length === times);
  await came(1);
  const delivery = await listed((one) => one.attemptCount > 0, '--endpoint', endpoint);
  assert.deepEqual([delivery.status, delivery.lastStatusCode], ['not_delivered', 503]);
  const resent = await comity('deliveries', 'resend', delivery.id);
  assert.deepEqual(resent, { code: 0, stdout: `${delivery.id} is resent.\n`, stderr: '' });
  await came(2);
  const filters = ['--status', 'delivered', '--event', delivery.eventId, '--type', 'categories.created'];
  const found = await listed(() => true, '--endpoint', endpoint, ...filters);
  assert.equal(found.id, delivery.id);
  const shown = await json<Attempted>('deliveries', 'show', delivery.id);
  assert.deepEqual(
    shown.attempts.map((one) => [one.statusCode, one.trigger]),
    [
      [503, 'automatic'],
      [204, 'manual'],
    ],
  );
  const lines = (await comity('deliveries', 'list', '--endpoint', endpoint)).stdout.split('\n');
  assert.match(lines[0] ?? '', /^ID +EVENT TYPE +ENDPOINT +STATUS +ATTEMPTS +LAST +NEXT ATTEMPT +CREATED$/);
  assert.match(lines[1] ?? '', /^dlv_\S+ +categories\.created +ep_\S+ +delivered +2 +204 /);
  const partly = await comity('deliveries', 'resend', 'dlv_x', delivery.id);
  assert.deepEqual([partly.code, partly.stderr], [1, 'comity: dlv_x: there is no delivery dlv_x\n']);
  await came(3);
});

test('lists the event types, with schemas and samples as JSON', async () => {
  const { code, stdout } = await comity('events', 'types');
  assert.equal(code, 0);
  assert.match(stdout, /^products\.created {2,}\S/m);
  const types: { type: string; sample: { data: { object: { name: string } } } }[] = await json(
    'events',
    'types',
  );
  const product = types.find(({ type }) => type === 'products.created');
  assert.equal(typeof product?.sample.data.object.name, 'string');
});

test('posts an event: a sample with members of one’s own, or what is given', async () => {
  await makeEndpoint('/ok/triggered', '--events', 'products.created,invoice.paid');
  const { code, stdout, stderr } = await comity(
    'events',
    'trigger',
    'products.created',
    '--set',
    'name=Trowel',
  );
  assert.equal(code, 0, stderr);
  const id = stdout.trim();
  await receiver.until((all) => all.some((one) => one.id === id));
  const sent = receiver.received.find((one) => one.id === id);
  assert.equal(sent?.verdict, 'verified');
  assert.equal(JSON.parse(sent?.body ?? '').data.name, 'Trowel');

  const file = join(folder, 'invoice.json');
  writeFileSync(file, '{"total": 12, "customer": {"name": "Ada"}}');
  const given = ['--data', `@${file}`, '--set', 'customer.name=Grace', '--set', 'paid=true', '--id', 'inv-1'];
  const posted = await json<Posted>('events', 'trigger', 'invoice.paid', ...given);
  assert.deepEqual(
    [posted.id, posted.data.object],
    ['inv-1', { total: 12, customer: { name: 'Grace' }, paid: true }],
  );
  assert.equal((await comity('events', 'trigger', 'invoice.paid', ...given)).stdout, 'inv-1\n');
  const other = await comity('events', 'trigger', 'invoice.paid', '--id', 'inv-1', '--data', '{}');
  assert.equal(other.code, 1);
  const unknown = await comity('events', 'trigger', 'nobody.knows');
  assert.equal(unknown.code, 1);
  assert.match(
    unknown.stderr,
    /^comity: there is no sample of nobody\.knows; --data sets the object of the event/,
  );
});

test('recovers what an endpoint missed, and only counts in a dry run', async () => {
  const id = await makeEndpoint('/ok/recovered', '--events', 'recovered.*');
  await json('endpoints', 'disable', id);
  for (const turn of [1, 2, 3]) {
    await json('events', 'trigger', 'recovered.here', '--data', JSON.stringify({ turn }));
  }
  await json('endpoints', 'enable', id);
  const counted = await json<Recovery>('endpoints', 'recover', id, '--since', '1h', '--dry-run');
  assert.deepEqual(
    [counted.status, counted.matching, counted.created, counted.dryRun],
    ['finished', 3, 3, true],
  );
  const { code, stdout, stderr } = await comity('endpoints', 'recover', id, '--since', '1h');
  assert.equal(code, 0, stderr);
  assert.match(
    stdout,
    /^rcv_\w+: \d+ events examined, 3 for this endpoint; 0 .* again, 3 that were missed are sent\.$/m,
  );
  await receiver.until((all) => all.filter(({ path }) => path === '/ok/recovered').length === 3);
});

for (const args of [
  ['endpoints'],
  ['endpoints', 'create'],
  ['endpoints', 'create', '--to', 'http://127.0.0.1/', '--scheme', 'secret'],
  ['endpoints', 'create', '--to', 'http://127.0.0.1/', '--header', 'no colon'],
  ['endpoints', 'create', '--to', 'http://127.0.0.1/', '--header', 'A: 1', 'A: 2'],
  ['endpoints', 'rotate-secret', 'ep_x', '--overlap', '86401'],
  ['endpoints', 'recover', 'ep_x'],
  ['endpoints', 'recover', 'ep_x', '--since', 'soon'],
  ['deliveries', 'resend'],
  ['deliveries', 'list', '--status', 'lost'],
  ['events', 'trigger'],
  ['events', 'trigger', 'a.b', '--data', '[1]'],
  ['events', 'trigger', 'a.b', '--data', '@/nowhere/at/all'],
  ['listen'],
  ['listen', '--forward-to', 'localhost:3000'],
  ['listen', '--forward-to', 'http://127.0.0.1:1', '--events', 'a*'],
]) {
  test(`answers "comity ${args.join(' ')}" with the usage exit code`, async () => {
    const { code, stdout, stderr } = await comity(...args);
    assert.deepEqual([code, stdout], [2, '']);
    assert.notEqual(stderr, '');
  });
}
