/** The directory of endpoints: what it knows, how it follows two processes' changes, and what it does when the store fails. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Endpoint } from '../../../src/model/endpoint.ts';
import { always } from '../../../src/model/filter.ts';
import { oneAtATime } from '../../../src/store/follower.ts';
import { type Change, keptRow, type Store, StoreUnavailable } from '../../../src/store/store.ts';
import { createEndpointDirectory } from '../../../src/webhooks/sending/fan-out/directory.ts';
import type { PrincipalOf } from '../../../src/webhooks/sending/fan-out/endpoints-in-memory.ts';
import {
  endpointGenerationTable,
  endpointSecretsTable,
  generationRow,
} from '../../../src/webhooks/sending/sending-tables.ts';
import { engines, openEmbedded } from '../../harness/stores.ts';
import { until } from '../../harness/until.ts';
import {
  addEndpoint,
  change,
  collections,
  endpointOf,
  eventOf,
  person,
  putEndpoint,
  putSecrets,
  startProcess,
  usualScopes,
} from './fixture.ts';

for (const [engine, open] of engines) {
  test(`the directory on ${engine}`, async (context) => {
    const [plainOne, plainOther] = await open(context);
    await context.test('begins one generation, whichever of two processes is first', (inner) =>
      beginning(inner, plainOne, plainOther),
    );
    await context.test('follows what other processes change, and keeps what stays', (inner) =>
      following(inner, plainOne, plainOther),
    );
    await context.test('asks again for whom endpoints are told things when an account changes', (inner) =>
      accounts(inner, plainOne, plainOther),
    );
    await context.test('knows more endpoints than one reading gives', (inner) => many(inner, plainOne));
    await context.test(
      'takes an endpoint without status and scheme for an enabled one of the default scheme',
      (inner) => bare(inner, plainOne),
    );
    await context.test('names the last changes in its generation, and no more than fit', (inner) =>
      named(inner, plainOne, plainOther),
    );
    await context.test('replaces the generations that earlier versions numbered', (inner) =>
      numbered(inner, plainOne),
    );
  });
}

async function beginning(context: TestContext, one: Store, other: Store): Promise<void> {
  const processes = await Promise.all([startProcess(context, one), startProcess(context, other)]);
  const guards = processes.map(({ directory }) => directory.matching(eventOf('products.created')).guard);
  const row = await one.read(generationRow.table, generationRow.id);
  assert.deepEqual(guards[0]?.expect, { rev: row?.rev });
  assert.deepEqual(guards[1], guards[0]);
  assert.equal(await one.count(endpointGenerationTable, always), 1);
}

async function following(context: TestContext, plainOne: Store, plainOther: Store): Promise<void> {
  const one = await startProcess(context, plainOne);
  const other = await startProcess(context, plainOther);
  let changes = 0;
  const stop = one.directory.onChange(() => {
    changes += 1;
  });
  const first = await addEndpoint(other, 'usr_ada', { tenant: 'north', headers: { 'X-A': 'b' } });
  await until(() => one.directory.get(first.id) !== undefined, 'the endpoint of another process is known');
  const known = one.directory.get(first.id);
  const { rev, ...endpoint } = first;
  assert.deepEqual(known?.endpoint, endpoint);
  assert.equal(known.rev, rev);
  assert.equal(known.owner, 'usr_ada');
  assert.equal(known.principal?.id, 'usr_ada');
  assert.equal(known.url.href, endpoint.url);
  assert.deepEqual(known.secrets, [{ secret: 'whsec_1', until: null }]);
  assert.ok(changes > 0);

  const second = await addEndpoint(other, 'usr_bob');
  await until(() => one.directory.get(second.id) !== undefined, 'the second is known');
  assert.equal(one.directory.get(first.id), known, 'the same object');

  const secrets = await plainOther.read(endpointSecretsTable, first.id);
  const rotated = putSecrets(first.id, 'whsec_2', usualScopes, secrets?.rev);
  await change(plainOther, other.directory, [rotated]);
  await until(() => one.directory.get(first.id)?.secrets[0]?.secret === 'whsec_2', 'a rotation arrives');

  await change(plainOther, other.directory, [
    putEndpoint({ ...endpoint, status: 'disabled' }, 'usr_ada', rev),
  ]);
  await until(() => one.directory.get(first.id)?.endpoint.status === 'disabled', 'a change arrives');
  stop();
  const before = changes;
  await change(plainOther, other.directory, await removals(plainOther, [first.id, second.id]));
  await until(() => [...one.directory.all()].length === 0, 'removals arrive');
  assert.equal(changes, before, 'nobody is called who does not want to be');
}

async function accounts(context: TestContext, plainOne: Store, plainOther: Store): Promise<void> {
  let isDisabled = false;
  let asked = 0;
  const principalOf: PrincipalOf = async (owner, scopes) => {
    asked += 1;
    return isDisabled ? undefined : person(owner, scopes);
  };
  const { directory } = await startProcess(context, plainOne, { principalOf });
  const endpoints = [
    await addEndpoint({ plain: plainOne, directory }, 'usr_ada', { events: ['notes.*'] }),
    await addEndpoint({ plain: plainOne, directory }, 'usr_ada', { events: ['notes.*'] }),
  ];
  await directory.refresh();
  assert.equal(asked, 1, 'one question for all endpoints of an owner');
  const note = eventOf('notes.created', { owner: 'usr_ada' });
  assert.equal(directory.matching(note).groups.flat().length, 2);
  isDisabled = true;
  const account: Change = {
    table: 'users',
    id: `usr_${engineNumber()}`,
    expect: { absent: true },
    next: { ...keptRow('{}', null, 1, 1), search: '' },
  };
  assert.equal((await plainOther.commit({ changes: [account], events: [] })).outcome, 'committed');
  await until(() => directory.matching(note).groups.flat().length === 0, 'a disabled owner is told nothing');
  assert.equal(directory.get(endpoints[0]?.id ?? '')?.principal, undefined);
  await change(
    plainOne,
    directory,
    await removals(
      plainOne,
      endpoints.map(({ id }) => id),
    ),
  );
}

async function many(context: TestContext, plain: Store): Promise<void> {
  const { directory } = await startProcess(context, plain);
  const endpoints = Array.from({ length: 600 }, () => endpointOf({ events: ['products.*'] }));
  await change(
    plain,
    directory,
    endpoints.flatMap((endpoint) => [putEndpoint(endpoint, 'usr_ada'), putSecrets(endpoint.id, 'whsec_1')]),
  );
  await directory.refresh();
  assert.equal(directory.matching(eventOf('products.created')).groups.flat().length, 600);
  const another = await startProcess(context, plain);
  assert.deepEqual(
    [...another.directory.all()].map(({ endpoint }) => endpoint.id),
    endpoints.map(({ id }) => id).sort(),
  );
  await change(
    plain,
    directory,
    await removals(
      plain,
      endpoints.map(({ id }) => id),
    ),
  );
}

async function bare(context: TestContext, store: Store): Promise<void> {
  const process = await startProcess(context, store);
  const row = { ...endpointOf(), scheme: undefined, status: undefined } as unknown as Endpoint;
  await change(process.plain, process.directory, [
    putEndpoint(row, 'usr_ada'),
    putSecrets(row.id, 'whsec_1'),
  ]);
  await until(
    () => process.directory.get(row.id) !== undefined,
    'an endpoint without status and scheme is known',
  );
  assert.equal(process.directory.get(row.id)?.endpoint.status, 'enabled');
  assert.equal(process.directory.get(row.id)?.endpoint.scheme, 'standard');
}

async function named(context: TestContext, plain: Store, plainOther: Store): Promise<void> {
  let scans = 0;
  const deaf: Store = {
    ...plainOther,
    onChange: () => () => undefined,
    plan: (query) => {
      scans += 1;
      return plainOther.plan(query);
    },
  };
  const [{ directory }, behind] = [await startProcess(context, plain), await startProcess(context, deaf)];
  const made = await addEndpoint({ plain, directory }, 'usr_ada');
  const { rev: _, ...endpoint } = made;
  let { rev } = made;
  scans = 0;
  await behind.directory.refresh();
  assert.equal(scans, 0, 'only what the generation names is read');
  assert.notEqual(behind.directory.get(made.id), undefined);
  // More than the row names.
  for (let at = 0; at < 70; at += 1) {
    rev = await change(plain, directory, [
      putEndpoint({ ...endpoint, description: `change ${at}` }, 'usr_ada', rev),
    ]);
    await directory.refresh();
  }
  const row = await plain.read(generationRow.table, generationRow.id);
  assert.equal(JSON.parse(row?.doc ?? '').ended.length, 40);
  await behind.directory.refresh();
  assert.ok(scans > 0, 'everything is read');
  assert.equal(behind.directory.get(made.id)?.endpoint.description, 'change 69');
  assert.equal(await plain.count(endpointGenerationTable, always), 1);
  await change(plain, directory, await removals(plain, [made.id]));
}

async function numbered(context: TestContext, plain: Store): Promise<void> {
  const before = await startProcess(context, plain);
  const row = await plain.read(generationRow.table, generationRow.id);
  assert.ok(row !== undefined);
  const numbers: readonly Change[] = Array.from({ length: 300 }, (_, at) => ({
    table: endpointGenerationTable,
    id: String(at + 1).padStart(15, '0'),
    expect: { absent: true },
    next: keptRow('{}', null, 1, 1),
  }));
  const current: Change = { ...generationRow, expect: { rev: row.rev }, next: null };
  assert.equal((await plain.commit({ changes: [current, ...numbers], events: [] })).outcome, 'committed');
  const { directory } = await startProcess(context, plain);
  assert.equal(await plain.count(endpointGenerationTable, always), 1);
  const endpoint = await addEndpoint({ plain, directory }, 'usr_ada');
  await until(() => before.directory.get(endpoint.id) !== undefined, 'the endpoint is known');
  await change(plain, directory, await removals(plain, [endpoint.id]));
}

test('keeps what it knows while the store fails, says so, and goes on by itself', async (context) => {
  const plain = await openEmbedded(context);
  let isFailing = true;
  const failing: Store = {
    ...plain,
    read: (...name) => {
      if (isFailing) throw new StoreUnavailable('the test cut the connection', { retryAfterSeconds: 1 });
      return plain.read(...name);
    },
  };
  const observed: string[] = [];
  const observe = ({ kind }: { readonly kind: string }) => void observed.push(kind);
  const open = () =>
    createEndpointDirectory(
      { store: failing, clock: Date.now, observe },
      collections,
      async () => person('usr_ada', usualScopes),
      [],
    );
  await assert.rejects(open(), StoreUnavailable);
  isFailing = false;
  const directory = await open();
  context.after(() => directory.close());
  const first = await addEndpoint({ plain, directory }, 'usr_ada');
  await until(() => directory.get(first.id) !== undefined, 'the first is known');
  isFailing = true;
  const second = await addEndpoint({ plain, directory }, 'usr_ada');
  await until(() => observed.length > 0, 'the failure is told');
  assert.deepEqual([...new Set(observed)], ['sending-failed']);
  assert.ok(directory.get(first.id) !== undefined && directory.get(second.id) === undefined);
  await assert.rejects(directory.refresh(), StoreUnavailable);
  isFailing = false;
  await until(() => directory.get(second.id) !== undefined, 'it is read again without being told');
});

test('gives whoever asks while work runs the run after it, one for all', async () => {
  const ends: (() => void)[] = [];
  const run = oneAtATime(() => new Promise((resolve) => void ends.push(resolve)));
  const first = run();
  const [second, third] = [run(), run()];
  assert.equal(ends.length, 1);
  assert.equal(second, third);
  ends[0]?.();
  await first;
  await until(() => ends.length === 2, 'the next run begins');
  const fourth = run();
  assert.notEqual(fourth, third);
  ends[1]?.();
  await third;
  await until(() => ends.length === 3, 'and the one after it');
  const idle = run.idle();
  ends[2]?.();
  await Promise.all([fourth, idle]);
});

async function removals(store: Store, ids: readonly string[]): Promise<readonly Change[]> {
  const rows = await Promise.all(ids.map((id) => store.read('endpoints', id)));
  return rows.flatMap((row) =>
    row === undefined ? [] : [{ table: 'endpoints', id: row.id, expect: { rev: row.rev }, next: null }],
  );
}

let users = 0;
function engineNumber(): number {
  users += 1;
  return users;
}
