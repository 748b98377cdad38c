/** The directory of endpoints: what it knows, how it follows two processes' changes, and what it does when the store fails. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Endpoint } from '../../../src/model/endpoint.ts';
import { always, byId } from '../../../src/model/filter.ts';
import type { Authenticated } from '../../../src/model/principal.ts';
import { type Change, keptRow, type Store, StoreUnavailable } from '../../../src/store/store.ts';
import { oneAtATime } from '../../../src/store/table-changes.ts';
import { createEndpointDirectory } from '../../../src/webhooks/sending/fan-out/directory.ts';
import {
  endpointGenerationTable,
  endpointSecretsTable,
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
    await context.test('lets old generations go, and never the newest', (inner) => old(inner, plainOne));
  });
}

async function beginning(context: TestContext, one: Store, other: Store): Promise<void> {
  const processes = await Promise.all([startProcess(context, one), startProcess(context, other)]);
  const guards = processes.map(({ directory }) => directory.matching(eventOf('products.created')).guards);
  assert.equal(guards[0]?.[0]?.id, '000000000000002');
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
  const { directory } = await startProcess(context, plainOne, {
    principalOf: async (owner, scopes): Promise<Authenticated | undefined> => {
      asked += 1;
      return isDisabled ? undefined : person(owner, scopes);
    },
  });
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

async function old(context: TestContext, plain: Store): Promise<void> {
  let now = Date.now() + 86_400_000;
  const { directory } = await startProcess(context, plain, { clock: () => now });
  const numbers = async (): Promise<readonly number[]> => {
    const plan = plain.plan({ table: endpointGenerationTable, filter: always, sort: byId, limit: 1000 });
    return (await plan.rows({ from: 'start' })).map(({ id }) => Number(id));
  };
  const before = await numbers();
  const newest = before.at(-1) ?? 0;
  assert.ok(before.length > 3, 'earlier tests left some');
  now -= 60_000;
  await change(plain, directory, []);
  assert.deepEqual(await numbers(), [...before, newest + 1], 'none within a day');
  now += 120_000;
  for (let at = 0; at < before.length; at += 1) {
    await directory.refresh();
    await change(plain, directory, []);
  }
  assert.deepEqual(
    await numbers(),
    Array.from({ length: before.length + 1 }, (_, at) => newest + 1 + at),
  );
}

test('keeps what it knows while the store fails, says so, and goes on by itself', async (context) => {
  const plain = await openEmbedded(context);
  let isFailing = true;
  const failing: Store = {
    ...plain,
    plan: (asked) => {
      const plan = plain.plan(asked);
      return {
        ...plan,
        rows: (...given) => {
          if (isFailing) throw new StoreUnavailable('the test cut the connection', { retryAfterSeconds: 1 });
          return plan.rows(...given);
        },
      };
    },
  };
  const observed: string[] = [];
  const options = {
    store: failing,
    collections,
    principalOf: async () => person('usr_ada', usualScopes),
    principalTables: [],
    clock: Date.now,
    observe: ({ kind }: { readonly kind: string }) => void observed.push(kind),
  };
  await assert.rejects(createEndpointDirectory(options), StoreUnavailable);
  isFailing = false;
  const directory = await createEndpointDirectory(options);
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

let numbered = 0;
function engineNumber(): number {
  numbered += 1;
  return numbered;
}
