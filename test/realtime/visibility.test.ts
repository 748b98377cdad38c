/**
 * Which events a principal is sent live is decided on the event itself, and in a catch-up by the store: both answer the same for every
 * kind of access rule, for every pattern, on both stores.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventPatternFault, matchesEventPattern, patternsOfType } from '../../src/model/event.ts';
import { allOf, always } from '../../src/model/filter.ts';
import { anonymous, type Principal } from '../../src/model/principal.ts';
import { createReaders, LoggedEvent } from '../../src/realtime/readers.ts';
import { covers, ofTypes } from '../../src/realtime/subprotocol.ts';
import { reachOf } from '../../src/resources/events/disclosure.ts';
import { createLogViews } from '../../src/resources/events/seen-event.ts';
import { visibleEvents } from '../../src/resources/events/visible-events.ts';
import type { LogPosition } from '../../src/store/store.ts';
import { engines } from '../harness/stores.ts';
import { people } from '../wire/resources/house-of-rules.ts';
import { collections, type EventParts, emit } from './realtime-room.ts';

const owners = [null, 'ada', 'bob', 'nora', 'webb'];
const objects: readonly Readonly<Record<string, unknown>>[] = [
  {},
  { published: true, region: 'east', tenantId: 'north', place: { city: 'south' } },
  { published: false, region: 'editor', tenantId: 'south', place: { city: 'north' } },
  // What no schema lets in, and an old row may hold.
  { published: 'true', region: ['east'], tenantId: null, place: 'north' },
  { published: 1, tenantId: 5, region: 'ea\\u0073t', place: { city: '' } },
];
const names = ['papers', 'hooks', 'offices', 'desks', 'posts', 'staff', 'dropped', ''];

const patterns = [
  '*',
  'posts.*',
  'posts.created',
  'posts',
  'a_b.*',
  'axb.*',
  'a_b',
  'a.b.*',
  'po.*',
  'POSTS.*',
];

function everyEvent(): readonly EventParts[] {
  const parts: EventParts[] = [];
  for (const collection of names) {
    for (const owner of owners) {
      for (const object of objects)
        parts.push({ collection, owner, object, type: `${collection || 'a_b'}.created` });
      for (const object of objects)
        for (const former of objects)
          parts.push({ collection, owner, object, former, type: `${collection || 'a_b'}.updated` });
      if (collection === '') {
        for (const tenant of ['north', 'south']) parts.push({ collection, owner, tenant, type: 'a.b.c' });
      }
    }
  }
  for (const type of ['posts', 'posts.created.x', 'axb.c', 'a_b', 'a_b.c', 'a.b', 'post.s'])
    parts.push({ type });
  return parts;
}

/** No rule looks beyond references. */
const nothing = (): undefined => undefined;

for (const [engine, open] of engines) {
  test(`${engine}: an event is sent live to exactly those for whom the store finds it`, async (context) => {
    const [store] = await open(context);
    const beginning: LogPosition = { rev: 0, id: '' };
    await emit(store, ...everyEvent());
    const all = (await store.tail(beginning, always, 5000)).map((entry) => new LoggedEvent(entry));
    const readers = createReaders(collections, createLogViews(collections));
    const everybody: readonly Principal[] = [anonymous, ...people.values()];
    const counts = new Set<number>();
    const left: number[] = [];
    for (const principal of everybody) {
      const held = readers.hold(principal);
      const live = all
        .filter((event) => held.frameOf(event, nothing) !== undefined)
        .map(({ entry }) => entry.id);
      const found = await store.tail(beginning, reachOf(collections, principal).both, 5000);
      const seen = await store.tail(beginning, visibleEvents(collections, principal), 5000);
      left.push(found.length - seen.length);
      assert.deepEqual(
        live,
        found.map(({ id }) => id),
      );
      counts.add(live.length);
      for (const entry of found) {
        const event = new LoggedEvent(entry);
        const [{ telling, children } = nothingTold] = await held.told(store, [entry]);
        assert.deepEqual(children, []);
        assert.ok(telling !== 'nothing');
        assert.equal(held.frameOf(event, nothing)?.toString('utf8'), held.textOf(entry, telling));
        const isLeft = !seen.some(({ id }) => id === entry.id);
        assert.equal(held.textOf(entry, telling).startsWith('{"left":{"id":"o",'), isLeft);
      }
      readers.release(held);
    }
    assert.ok(counts.size > 4, 'the people differ');
    assert.ok(new Set(left).size > 3, 'documents leave some of them');
    for (const pattern of patterns) {
      const subscription = { pattern, since: beginning };
      const found = await store.tail(beginning, allOf([always, ofTypes([subscription])]), 5000);
      const matched = all.filter(({ entry, position }) => covers([subscription], entry.type, position));
      assert.deepEqual(
        found.map(({ id }) => id),
        matched.map(({ entry }) => entry.id),
        pattern,
      );
    }
    const several = patterns.slice(1).map((pattern) => ({ pattern, since: beginning }));
    const found = await store.tail(beginning, ofTypes(several), 5000);
    assert.equal(
      found.length,
      all.filter(({ entry, position }) => covers(several, entry.type, position)).length,
    );
  });
}

const nothingTold = { telling: 'nothing', children: [] } as const;

test('finds every pattern of a type that matches it, and no other', () => {
  for (const type of ['posts.created', 'posts', 'a.b.c', 'a.b', 'axb.c', 'a_b.c', 'x']) {
    const found = new Set(patternsOfType(type));
    for (const pattern of [...patterns, ...found, 'a.b.c', 'a.*']) {
      assert.equal(found.has(pattern), matchesEventPattern(pattern, type), `${pattern} of ${type}`);
    }
  }
});

test('takes *, types, and types with a star for everything after a dot', () => {
  for (const sound of [
    '*',
    'a',
    'a.*',
    'a.b',
    'a.b.*',
    'invoice.paid',
    'order-lines.created',
    'a_1.B-2',
    'x'.repeat(200),
  ]) {
    assert.equal(eventPatternFault(sound), undefined, sound);
  }
  for (const unsound of [
    '',
    '.',
    '.*',
    '**',
    'a*',
    '*.a',
    'a.*.b',
    'a..b',
    '.a',
    'a.',
    'a. b',
    'é',
    'a.**',
    'x'.repeat(201),
  ]) {
    assert.equal(typeof eventPatternFault(unsound), 'string', unsound);
  }
});
