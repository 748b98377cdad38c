/** How processes hear that endpoints have something due, and who reads posted events from the log. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { always } from '../../../src/model/filter.ts';
import { anonymous, type Scope } from '../../../src/model/principal.ts';
import { visibleEvents } from '../../../src/resources/events/visible-events.ts';
import type { Row, Store } from '../../../src/store/store.ts';
import { wakesTable } from '../../../src/webhooks/sending/sending-tables.ts';
import { engines, openEmbedded } from '../../harness/stores.ts';
import { until } from '../../harness/until.ts';
import { addEndpoint, collections, eventOf, type Process, people, person, startProcess } from './fixture.ts';

for (const [engine, open] of engines) {
  test(`wakes on ${engine}`, async (context) => {
    const [plainOne, plainOther] = await open(context);
    const one = await startProcess(context, plainOne);
    const other = await startProcess(context, plainOther);
    const ada = await addEndpoint(one, 'usr_ada', { events: ['notes.*'] });
    const bob = await addEndpoint(one, 'usr_bob', { events: ['notes.*', 'products.*'] });
    await until(() => other.directory.get(bob.id) !== undefined, 'the other process knows the endpoints');
    const pair: Pair = { one, other, ada: ada.id, bob: bob.id };
    await context.test('reach every process for the events of any', () => ofEvents(pair));
    await context.test('hand new deliveries and their events over as they were committed, once', () =>
      handedOver(pair),
    );
    await context.test('reach every process for what no event tells of', () => withoutEvents(pair));
    await context.test('go on after the store failed, and tell of nothing that came before', (inner) =>
      afterFailure(inner, pair),
    );
    await context.test('end with the process', (inner) => ending(inner, pair));
    await context.test('the log shows posted events to their owner, their tenant and administrators', () =>
      postedEvents(pair),
    );
  });
}

/** Two processes, and the ids of ada's endpoint for notes and of bob's for notes and products. */
type Pair = { readonly one: Process; readonly other: Process; readonly ada: string; readonly bob: string };

async function ofEvents({ one, other, ada, bob }: Pair): Promise<void> {
  const events = [eventOf('products.created'), eventOf('notes.created', { owner: 'usr_ada' })];
  for (const event of events) await one.store.commit({ changes: [], events: [event] });
  for (const { woken } of [one, other])
    await until(() => new Set(woken).size === 2, 'both endpoints are named');
  assert.deepEqual([...new Set(other.woken)].sort(), [ada, bob].sort());
}

async function handedOver({ one, other, bob }: Pair): Promise<void> {
  const made: Row[] = [];
  const stop = one.wakes.onWake((_id, _delivery, row) => {
    if (row !== undefined) made.push(row);
  });
  one.woken.length = 0;
  const event = eventOf('products.created');
  await one.store.commit({ changes: [], events: [event] });
  const [row] = made;
  assert.ok(row !== undefined && made.length === 1);
  const { id, rev, doc, owner, createdAt, updatedAt, deletedAt } = row;
  const handed = { id, rev, doc, owner, createdAt, updatedAt, deletedAt };
  assert.deepEqual(handed, await one.plain.read('deliveries', id));
  assert.deepEqual(await one.events.read(event.id), {
    ...{ doc: event.doc, owner: event.owner, createdAt: event.createdAt },
  });
  await other.store.commit({ changes: [], events: [eventOf('products.created')] });
  await until(() => one.woken.length > 1, 'the log names what another process committed');
  assert.deepEqual(one.woken, [bob, bob], 'and not again what this one did');
  stop();
}

async function withoutEvents({ one, other, ada }: Pair): Promise<void> {
  one.woken.length = 0;
  other.woken.length = 0;
  const changes = one.wakes.changesFor(ada);
  assert.equal(changes.length, 1);
  await one.plain.commit({ changes, events: [] });
  one.wakes.announce([ada]);
  assert.equal(one.woken[0], ada);
  await until(() => other.woken.includes(ada), 'the other process hears of it');
  assert.deepEqual([...new Set(other.woken)], [ada]);
}

async function afterFailure(context: TestContext, { one, other, bob }: Pair): Promise<void> {
  let isFailing = false;
  const failing: Store = {
    ...other.plain,
    tail(...asked) {
      if (isFailing) throw new Error('the test cut the connection');
      return other.plain.tail(...asked);
    },
  };
  const late = await startProcess(context, failing);
  isFailing = true;
  await one.store.commit({ changes: [], events: [eventOf('products.created')] });
  await until(() => late.observed.some(({ kind }) => kind === 'sending-failed'), 'the failure is told');
  isFailing = false;
  await until(() => late.woken.includes(bob), 'it is read again without being told');
  assert.deepEqual([...new Set(late.woken)], [bob], 'what ada is told came before');
}

async function ending(context: TestContext, { one, other, bob }: Pair): Promise<void> {
  const short = await startProcess(context, other.plain);
  await short.wakes.close();
  other.woken.length = 0;
  await one.store.commit({ changes: [], events: [eventOf('products.created')] });
  await until(() => other.woken.includes(bob), 'others hear of it');
  assert.deepEqual(short.woken, []);
}

async function postedEvents({ one, other }: Pair): Promise<void> {
  const before = await one.plain.head();
  const posted = {
    ofBob: eventOf('invoice.paid', { owner: 'usr_bob' }),
    ofNorth: eventOf('invoice.paid', { owner: 'usr_bob', tenant: 'north' }),
    ofNobody: eventOf('endpoint.disabled', { object: { tenant: 'north', owner: 'usr_ada' } }),
  };
  await one.store.commit({ changes: [], events: Object.values(posted) });
  const shown = async (id: string | null, scopes: readonly Scope[]): Promise<readonly string[]> => {
    const found = await other.plain.tail(
      before,
      visibleEvents(collections, person(id, scopes) ?? anonymous),
      100,
    );
    return Object.entries(posted).flatMap(([name, event]) =>
      found.some((entry) => entry.id === event.id) ? [name] : [],
    );
  };
  const expected: Readonly<Record<string, readonly string[]>> = {
    usr_bob: ['ofBob', 'ofNorth'],
    usr_nora: ['ofNorth'],
    usr_root: ['ofBob', 'ofNorth', 'ofNobody'],
  };
  for (const id of people) {
    for (const scopes of [['read'], ['webhooks'], ['read', 'webhooks']] as const)
      assert.deepEqual(await shown(id, scopes), expected[id] ?? [], `${id} with ${scopes}`);
  }
  assert.deepEqual(await shown('usr_bob', ['write']), []);
  assert.deepEqual(await shown(null, []), []);
}

test('a process alone on its store puts no rows for others, and hears what it is told', async (context) => {
  const plain = await openEmbedded(context);
  const { wakes, woken, store } = await startProcess(context, plain);
  assert.deepEqual(wakes.changesFor('ep_1'), []);
  await store.commit({ changes: [], events: [eventOf('products.created')] });
  wakes.announce(['ep_1', 'ep_2']);
  assert.deepEqual(woken, ['ep_1', 'ep_2']);
  assert.equal(await plain.count(wakesTable, always), 0);
});
