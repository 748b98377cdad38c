/**
 * Messages about children of a changed document (§6.14) against their definition: for rules at random, the documents that were visible
 * before and are not now, and the other way round, as `matches` judges them on the whole of both states. On both stores.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { Type } from 'typebox';
import { resolveCollections } from '../../src/config/collections.ts';
import type { ConditionRule } from '../../src/model/access-function.ts';
import type { Collection } from '../../src/model/collection.ts';
import { eventDocument, eventType } from '../../src/model/event.ts';
import { type Field, ownerField } from '../../src/model/field.ts';
import { always, type Filter } from '../../src/model/filter.ts';
import { type Matchable, matches } from '../../src/model/matches.ts';
import { authenticated } from '../../src/model/principal.ts';
import { createReaders, LoggedEvent } from '../../src/realtime/readers.ts';
import { reachOf, told } from '../../src/resources/events/disclosure.ts';
import { type LooksStore, ParentLooks } from '../../src/resources/events/parent-looks.ts';
import { createLogViews } from '../../src/resources/events/seen-event.ts';
import { streamFilter } from '../../src/resources/events/shared-batches.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { judged } from '../../src/store/related-rows.ts';
import {
  type Change,
  type EventEntry,
  eventsTable,
  keptRow,
  type Store,
  StoreUnavailable,
  type TailEntry,
} from '../../src/store/store.ts';
import { storeTables } from '../../src/store-tables.ts';
import { type EngineName, engineNames } from '../harness/engine-names.ts';
import { databaseWith } from '../harness/postgres-database.ts';
import { openEmbedded } from '../harness/stores.ts';
import { until } from '../harness/until.ts';
import type { MemoryPeer } from '../realtime/memory-peer.ts';
import { endWith, openRoom } from '../realtime/realtime-room.ts';

const text = Type.Optional(Type.String());

const declared = resolveCollections({
  customers: { schema: Type.Object({ a: text }), access: { read: 'administrator' } },
  tickets: {
    schema: Type.Object({ a: text, customerId: text, parentId: text }),
    references: { customerId: { collection: 'customers' }, parentId: { collection: 'tickets' } },
    access: { read: 'administrator' },
  },
  comments: {
    schema: Type.Object({ a: text, ticketId: text, otherId: text }),
    references: { ticketId: { collection: 'tickets' }, otherId: { collection: 'tickets' } },
  },
});

function field(collection: string, name: string): Field {
  const found = declared.get(collection)?.fields.get(name);
  if (found === undefined) throw new Error(name);
  return found;
}

const values = ['x', 'y'];

function leafOf(collection: string): fc.Arbitrary<Filter> {
  const own = [field(collection, 'a'), ownerField];
  return fc.record({
    op: fc.constantFrom('eq', 'ne'),
    field: fc.constantFrom(...own),
    value: fc.constantFrom(...values, ...values, null),
  }) as fc.Arbitrary<Filter>;
}

function joined(parts: fc.Arbitrary<Filter>): fc.Arbitrary<Filter> {
  return fc.oneof(
    { weight: 3, arbitrary: parts },
    {
      weight: 2,
      arbitrary: fc.record({
        op: fc.constantFrom('and', 'or'),
        filters: fc.array(parts, { minLength: 2, maxLength: 2 }),
      }),
    },
    { weight: 1, arbitrary: parts.map((filter): Filter => ({ op: 'not', filter })) },
  ) as fc.Arbitrary<Filter>;
}

function look(
  collection: string,
  name: string,
  table: string,
  filter: fc.Arbitrary<Filter>,
): fc.Arbitrary<Filter> {
  return filter.map((each) => ({ op: 'related', field: field(collection, name), table, filter: each }));
}

const ofCustomer = look('tickets', 'customerId', 'customers', leafOf('customers'));
const ofParent = look('tickets', 'parentId', 'tickets', leafOf('tickets'));
const ofTicket = joined(fc.oneof(leafOf('tickets'), ofCustomer, ofParent));
const rule = joined(
  joined(
    fc.oneof(
      leafOf('comments'),
      look('comments', 'ticketId', 'tickets', ofTicket),
      look('comments', 'otherId', 'tickets', ofTicket),
    ),
  ),
);

type Doc = {
  readonly table: string;
  readonly id: string;
  readonly owner: string | null;
  readonly fields: Fields;
};
type Fields = Readonly<Record<string, string | undefined>>;
type World = ReadonlyMap<string, Doc>;

const value = fc.constantFrom(...values);
const owner = fc.constantFrom(...values, null);
const tickets = ['t0', 't1', 't2'];
const world: fc.Arbitrary<readonly Doc[]> = fc
  .record({
    customers: fc.tuple(value, value),
    // Each below an earlier one, so that nothing is above itself.
    tickets: fc.array(fc.record({ a: value, owner, customer: fc.nat(1), parent: fc.boolean() }), {
      minLength: 3,
      maxLength: 3,
    }),
    comments: fc.array(
      fc.record({
        ...{ a: value, owner },
        ticketId: fc.option(fc.constantFrom(...tickets), { nil: undefined, freq: 8 }),
        otherId: fc.option(fc.constantFrom(...tickets), { nil: undefined, freq: 8 }),
      }),
      { minLength: 4, maxLength: 4 },
    ),
  })
  .map((parts) => [
    ...parts.customers.map(
      (a, at): Doc => ({ table: 'customers', id: `c${at}`, owner: null, fields: { a } }),
    ),
    ...parts.tickets.map(
      ({ a, owner: whose, customer, parent }, at): Doc => ({
        ...{ table: 'tickets', id: `t${at}`, owner: whose },
        fields: { a, customerId: `c${customer}`, parentId: parent && at > 0 ? `t${at - 1}` : undefined },
      }),
    ),
    ...parts.comments.map(
      ({ a, owner: whose, ticketId, otherId }, at): Doc => ({
        ...{ table: 'comments', id: `m${at}`, owner: whose },
        fields: { a, ticketId, otherId },
      }),
    ),
  ]);

const change = fc.record({
  id: fc.constantFrom('c0', 't0', 't0', 't1'),
  customerId: fc.constantFrom('c0', 'c1'),
});

function matchable(docs: World, doc: Doc): Matchable {
  return {
    search: null,
    value: ({ column, path }) =>
      column === 'owner' ? doc.owner : column === 'id' ? doc.id : doc.fields[path[0] ?? ''],
    related: (_table, id) => {
      const found = docs.get(id);
      return found === undefined ? undefined : matchable(docs, found);
    },
  };
}

/** The documents that the child reaches by the names, the last of them. */
function reached(docs: World, child: Doc, names: readonly string[]): string | undefined {
  let id: string | undefined = child.id;
  for (const name of names) id = id === undefined ? undefined : docs.get(id)?.fields[name];
  return id;
}

const paths = {
  tickets: [['ticketId'], ['otherId'], ['ticketId', 'parentId'], ['otherId', 'parentId']],
  customers: [
    ['ticketId', 'customerId'],
    ['otherId', 'customerId'],
  ],
} as const;

type Expected = {
  /** For each path to the changed document, the messages about the children that reach it so. */
  readonly possible: ReadonlySet<string>;
  /** For each child that left or entered, the messages that tell of it: one at least must come. */
  readonly needed: readonly (readonly string[])[];
};

/** The messages by the definition. A path by which the rule does not look may be left out, as another path tells of the child. */
function expected(read: Filter, before: World, after: World, changed: Doc): Expected {
  const possible = new Set<string>();
  const needed = new Map<string, string[]>();
  const children = [...after.values()].filter(({ table }) => table === 'comments');
  const could = (docs: World) => (child: Doc) => matches(read, matchable(docs, child));
  const [was, is] = [could(before), could(after)];
  for (const names of paths[changed.table as keyof typeof paths]) {
    const those = children.filter((child) => reached(after, child, names) === changed.id);
    const where = names.length === 1 ? { where: { [names[0]]: changed.id } } : {};
    const say = (kind: string, of: readonly Doc[], about: object): void => {
      const message = JSON.stringify({ [kind]: { collection: 'comments', ...where, ...about } });
      if (of.length > 0) possible.add(message);
      for (const { id } of of) needed.set(id, [...(needed.get(id) ?? []), message]);
    };
    const isSome = names.length > 1 || those.some(is);
    const left = those.filter((child) => was(child) && !is(child));
    say('left', left, isSome ? { some: true } : {});
    const entered = those.filter((child) => !was(child) && is(child));
    say('entered', entered, {});
  }
  return { possible, needed: [...needed.values()] };
}

let runs = 0;
let events = 0;

/** Ids of this run, so that runs share a store. */
function renamed(doc: Doc, prefix: string): Doc {
  const ids = ['customerId', 'ticketId', 'otherId', 'parentId'];
  const rename = ([name, of]: [string, string | undefined]) =>
    [name, ids.includes(name) && of !== undefined ? prefix + of : of] as const;
  return { ...doc, id: prefix + doc.id, fields: Object.fromEntries(Object.entries(doc.fields).map(rename)) };
}

function docText({ id, fields }: Doc, at: number): string {
  return JSON.stringify({ id, ...fields, updatedAt: new Date(at).toISOString() });
}

async function eventOfChange(store: Store, docs: readonly Doc[], next: Doc): Promise<TailEntry> {
  const at = Date.now();
  const create = (doc: Doc): Change => ({
    ...{ table: doc.table, id: doc.id, expect: { absent: true } },
    next: { ...keptRow(docText(doc, at), doc.owner, at, at) },
  });
  const made = await store.commit({ changes: docs.map(create), events: [] });
  assert.ok(made.outcome === 'committed');
  const before = docs.find(({ id }) => id === next.id);
  assert.ok(before !== undefined);
  events += 1;
  const [id, type] = [`evt_${events}`, eventType(next.table, 'updated')];
  const entry: EventEntry = {
    ...{ id, type, collection: next.table, owner: next.owner, document: next.id, createdAt: at },
    ...{ doc: eventDocument(id, type, at, docText(next, at)), former: docText(before, at) },
  };
  const row = keptRow(docText(next, at), next.owner, at, at);
  const done = await store.commit({
    changes: [{ table: next.table, id: next.id, expect: { rev: made.rev }, next: row }],
    events: [entry],
  });
  assert.ok(done.outcome === 'committed');
  const [found] = await store.tail({ rev: done.rev, id: '' }, always, 1);
  assert.equal(found?.id, (await store.read(eventsTable, id))?.id);
  assert.ok(found !== undefined);
  return found;
}

async function storeOn(engine: EngineName, context: TestContext): Promise<Store> {
  const tables = storeTables({ collections: declared });
  if (engine === 'SQLite') return openEmbedded(context, tables);
  const database = await databaseWith(tables);
  const store = await openPostgresStore({ url: database.url, tables });
  context.after(async () => {
    await store.close();
    await database.dispose();
  });
  return store;
}

/** Collections of which comments are read by the rule. */
function readBy(read: Filter): readonly Collection[] {
  const rule: ConditionRule = { filterFor: () => read, source: '', mayRelate: true };
  return [...declared.values()].map((each) =>
    each.name === 'comments' ? { ...each, access: { ...each.access, read: rule } } : each,
  );
}

const principal = authenticated({ id: 'x', scopes: ['read'] });

for (const engine of engineNames) {
  test(`${engine}: a change of a parent tells what left and entered by the rule, by every path to it`, async (context) => {
    const store = await storeOn(engine, context);
    let messagesTold = 0;
    const property = fc.asyncProperty(
      fc.noBias(rule),
      fc.noBias(world),
      fc.noBias(change),
      async (read, docs, { id, customerId }) => {
        runs += 1;
        const prefix = `r${runs}-`;
        const mine = docs.map((doc) => renamed(doc, prefix));
        const changed = mine.find((doc) => doc.id === prefix + id);
        assert.ok(changed !== undefined);
        const fields = {
          ...changed.fields,
          a: changed.fields.a === 'x' ? 'y' : 'x',
          ...(changed.table === 'tickets' ? { customerId: prefix + customerId } : {}),
        };
        const next: Doc = { ...changed, fields };
        const before: World = new Map(mine.map((doc) => [doc.id, doc]));
        const after: World = new Map(before).set(next.id, next);
        const collections = readBy(read);
        const entry = await eventOfChange(store, mine, next);
        const reach = reachOf(collections, principal);
        const [answer] = await told(store, { reach }, [entry]);
        const messages = answer?.children.map((each) => each.text) ?? [];
        // What a stream asks the store for has the event of the parent.
        const found = await store.tail({ rev: entry.rev, id: '' }, streamFilter(reach, always), 1);
        assert.ok(found.length === 1 || messages.length === 0, 'the store has the event');
        const event = new LoggedEvent(entry);
        const readers = createReaders(collections, createLogViews(collections)).hold(principal);
        const looks = new ParentLooks(store);
        const frames = await judged(looks, () => readers.childFrames(event, looks));
        assert.deepEqual(
          frames.map(({ frame }) => frame.toString()),
          messages,
          'sockets are told the same',
        );
        const { possible, needed } = expected(read, before, after, next);
        for (const message of messages) assert.ok(possible.has(message), `${message} is not so`);
        for (const some of needed)
          assert.ok(
            some.some((message) => messages.includes(message)),
            `none of ${some.join()}`,
          );
        messagesTold += messages.length;
      },
    );
    await fc.assert(property, { numRuns: 100 });
    assert.ok(messagesTold > 0, 'some of the changes tell something');
  });

  test(`${engine}: the number of children does not change what is read; a look that takes too long says nothing`, async (context) => {
    const store = await storeOn(engine, context);
    const ofX: Filter = {
      ...{ op: 'related', field: field('comments', 'ticketId'), table: 'tickets' },
      filter: { op: 'eq', field: field('tickets', 'a'), value: 'x' },
    };
    const reach = reachOf(readBy(ofX), principal);
    const counts: number[] = [];
    for (const size of [1, 500]) {
      const id = `many${size}`;
      const ticket: Doc = { table: 'tickets', id, owner: null, fields: { a: 'x' } };
      const children = Array.from({ length: size }, (_, at): Doc => {
        return { table: 'comments', id: `${id}-${at}`, owner: null, fields: { a: 'x', ticketId: id } };
      });
      const entry = await eventOfChange(store, [ticket, ...children], { ...ticket, fields: { a: 'y' } });
      let reads = 0;
      const counting: LooksStore = {
        read: (...args) => counted(() => store.read(...args)),
        tail: (...args) => counted(() => store.tail(...args)),
        head: () => counted(() => store.head()),
        plan: (query) => counted(() => store.plan(query)),
      };
      const counted = <T>(read: () => T): T => {
        reads += 1;
        return read();
      };
      const [answer] = await told(counting, { reach }, [entry]);
      counts.push(reads);
      const left = { left: { collection: 'comments', where: { ticketId: id } } };
      assert.deepEqual(
        answer?.children.map((each) => JSON.parse(each.text)),
        [left],
      );
      const unavailable = () => Promise.reject(new StoreUnavailable('too long', { retryAfterSeconds: 1 }));
      const slow: LooksStore = {
        ...counting,
        tail: unavailable,
        plan: (query) => ({ ...store.plan(query), page: unavailable }),
      };
      const [unanswered] = await told(slow, { reach }, [entry]);
      assert.deepEqual(unanswered?.children, []);
      await assert.rejects(async () => told({ ...slow, head: unavailable }, { reach }, [entry]), /too long/);
    }
    assert.deepEqual(counts, [1, 1]);
  });

  test(`${engine}: both states of a parent are judged by one reading of what it refers to, which may change meanwhile`, async (context) => {
    const store = await storeOn(engine, context);
    const ofX: Filter = {
      ...{ op: 'related', field: field('comments', 'ticketId'), table: 'tickets' },
      filter: {
        ...{ op: 'related', field: field('tickets', 'customerId'), table: 'customers' },
        filter: { op: 'eq', field: field('customers', 'a'), value: 'x' },
      },
    };
    const reach = reachOf(readBy(ofX), principal);
    const docs: Doc[] = [
      { table: 'customers', id: 'moving', owner: null, fields: { a: 'y' } },
      { table: 'tickets', id: 'of-moving', owner: null, fields: { a: 'x', customerId: 'moving' } },
      { table: 'comments', id: 'beyond', owner: null, fields: { a: 'x', ticketId: 'of-moving' } },
    ];
    const [, ticket] = docs;
    assert.ok(ticket !== undefined);
    const entry = await eventOfChange(store, docs, { ...ticket, fields: { ...ticket.fields, a: 'y' } });
    let reads = 0;
    // A customer that is another user's at each reading.
    const changing: LooksStore = {
      ...{ tail: store.tail, head: store.head, plan: store.plan },
      read: async (table, id) => {
        const row = await store.read(table, id);
        if (table !== 'customers' || row === undefined) return row;
        reads += 1;
        return { ...row, doc: JSON.stringify({ id, a: reads % 2 === 1 ? 'y' : 'x' }) };
      },
    };
    const [answer] = await told(changing, { reach }, [entry]);
    assert.deepEqual(answer?.children, []);
    assert.equal(reads, 1);
  });

  test(`${engine}: each of many readers with a rule of its own is told, although their looks take turns`, async (context) => {
    const store = await storeOn(engine, context);
    const rules = new Map<string, Filter>();
    const read: ConditionRule = {
      source: '',
      mayRelate: true,
      filterFor: (reader) => rules.get(reader.kind === 'authenticated' ? reader.id : '') ?? { op: 'never' },
    };
    const collections = [...declared.values()].map((each) =>
      each.name === 'comments' ? { ...each, access: { ...each.access, read } } : each,
    );
    const room = openRoom(store, { collections, views: createLogViews(collections) });
    const ticket: Doc = { table: 'tickets', id: 'shared', owner: null, fields: { a: 'x' } };
    const children: Doc[] = [];
    const peers: MemoryPeer[] = [];
    for (let at = 0; at < 150; at += 1) {
      const id = `reader${at}`;
      rules.set(id, {
        op: 'and',
        filters: [
          { op: 'eq', field: ownerField, value: id },
          {
            ...{ op: 'related', field: field('comments', 'ticketId'), table: 'tickets' },
            filter: { op: 'eq', field: field('tickets', 'a'), value: 'x' },
          },
        ],
      });
      const peer = await room.connect(authenticated({ id, scopes: ['read'] }));
      endWith(context, peer);
      peer.say({ subscribe: ['*'] });
      peers.push(peer);
      // Every third has no comment.
      if (at % 3 > 0)
        children.push({ table: 'comments', id: `c-${id}`, owner: id, fields: { ticketId: 'shared' } });
    }
    await eventOfChange(store, [ticket, ...children], { ...ticket, fields: { a: 'y' } });
    const lefts = (peer: MemoryPeer) => peer.frames.filter(({ left }) => left !== undefined);
    const left = { left: { collection: 'comments', where: { ticketId: 'shared' } } };
    await until(() => peers.every((peer, at) => at % 3 === 0 || lefts(peer).length > 0), 'all are told');
    for (const [at, peer] of peers.entries()) assert.deepEqual(lefts(peer), at % 3 === 0 ? [] : [left]);
  });
}
