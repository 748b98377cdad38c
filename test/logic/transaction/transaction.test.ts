/** What handlers write (§4.14.5), over each store: rules, own writes, and a unit with exactly what came of it. */
import assert from 'node:assert/strict';
import { hash, randomInt } from 'node:crypto';
import { after, describe, it } from 'node:test';
import { Type } from 'typebox';
import { resolveConfiguration } from '../../../src/config/configuration.ts';
import { loadSettings } from '../../../src/config/load-settings.ts';
import { ResourceRefused } from '../../../src/config/senders.ts';
import type { ResourceCall, Transaction } from '../../../src/logic/transaction/resource-call.ts';
import { createOpenTransaction } from '../../../src/logic/transaction/transaction.ts';
import { createIdSource } from '../../../src/model/id.ts';
import { LoopTurns } from '../../../src/observe/event-loop.ts';
import { createServing } from '../../../src/resources/collection/serve-collection.ts';
import { openPostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import type { Commit, Store } from '../../../src/store/store.ts';
import { storeTables } from '../../../src/store-tables.ts';
import { eventTypesOf } from '../../../src/webhooks/sending/event-types/event-types.ts';
import { createEmitEvent } from '../../../src/webhooks/sending/events/post-event.ts';
import { databaseWith } from '../../harness/postgres-database.ts';
import { servicesOver } from '../../harness/services-over.ts';
import { openEmbedded } from '../../harness/stores.ts';

const configuration = resolveConfiguration({
  collections: {
    categories: { schema: Type.Object({ name: Type.String() }) },
    products: {
      schema: Type.Object({
        name: Type.String({ minLength: 1 }),
        price: Type.Number({ minimum: 0 }),
        sku: Type.Optional(Type.String()),
        categoryId: Type.Optional(Type.String()),
      }),
      unique: ['sku'],
      references: { categoryId: { collection: 'categories' } },
    },
    articles: {
      schema: Type.Object({ title: Type.String() }),
      putCreates: true,
      softDelete: true,
      requireMatch: true,
    },
    notes: { schema: Type.Object({ text: Type.String() }), access: { read: 'owner' } },
  },
  eventTypes: { 'invoice.paid': { description: 'Paid.', schema: Type.Object({ amount: Type.Integer() }) } },
});

const tables = storeTables(configuration);
const engines = [
  ['SQLite', (): Promise<Store> => openEmbedded({ after }, tables)],
  [
    'PostgreSQL',
    async (): Promise<Store> => {
      const database = await databaseWith(tables);
      const store = await openPostgresStore({ url: database.url, tables });
      after(async () => {
        await store.close();
        await database.dispose();
      });
      return store;
    },
  ],
] as const;

type Program = {
  readonly store: Store;
  readonly open: () => Transaction;
  /** Ends the transaction as the engine does. */
  commit(transaction: Transaction): Promise<Commit>;
};

function programOver(
  store: Store,
  given: Partial<Record<'handlerChangesMax' | 'handlerReadsMax', number>> = {},
): Program {
  const settings = { ...loadSettings({}, {}, {}).settings, ...given };
  const serving = createServing({
    settings,
    store,
    base: '/api/v1',
    collections: configuration.collections,
    newId: createIdSource(Date.now, () => randomInt(32)),
    clock: Date.now,
    turns: new LoopTurns(),
    mac: (text) => hash('sha256', text, 'base64url').slice(0, 22),
    addressOf: ({ peer }) => peer,
  });
  const reach = {
    collections: configuration.collections,
    emit: createEmitEvent(servicesOver(store, { settings }), configuration, eventTypesOf(configuration)),
  };
  const open = createOpenTransaction(serving, reach, { onFailed: (error) => assert.fail(error) });
  return { store, open, commit: (transaction) => store.commit(transaction.unit()) };
}

const create = (
  collection: string,
  fields: object,
  more: { id?: string; owner?: string } = {},
): ResourceCall => ({
  do: 'create',
  collection,
  fields,
  id: more.id,
  owner: more.owner,
});
const patch = (collection: string, id: string, changes: object): ResourceCall => ({
  do: 'update',
  collection,
  id,
  patch: changes,
});
const remove = (collection: string, id: string): ResourceCall => ({ do: 'delete', collection, id });
const emit = (type: string, object: object): ResourceCall => ({
  do: 'emit',
  type,
  object,
  tenant: undefined,
});

async function said(
  transaction: Transaction,
  call: ResourceCall,
): Promise<Record<string, unknown> & { id: string }> {
  return JSON.parse(String(await transaction.call(call))) as Record<string, unknown> & { id: string };
}

async function read(transaction: Transaction, collection: string, id: string): Promise<unknown> {
  const text = await transaction.call({ do: 'get', collection, id });
  return text === undefined ? undefined : JSON.parse(String(text));
}

function refused(code: string, message?: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof ResourceRefused, String(error));
    assert.equal(error.code, code);
    if (message !== undefined) assert.match(error.message, message);
    return true;
  };
}

/** By a mistake of the function, which is no refusal. */
function failed(message: RegExp) {
  return { name: 'FunctionFailed', message };
}

function shape(transaction: Transaction): readonly string[] {
  const { changes, events } = transaction.unit();
  const kinds = changes.map(({ table, expect, next }) => {
    const from = 'absent' in expect ? 'none' : 'rev';
    return `${table} ${from} ${next === null ? 'gone' : 'put'}`;
  });
  return [...kinds, ...events.map(({ type }) => type)];
}

for (const [engine, openStore] of engines) {
  describe(`the writes of a handler on ${engine}`, async () => {
    const program = programOver(await openStore());
    const { store, open, commit } = program;

    /** Makes a resource that stands before the test. */
    async function standing(collection: string, fields: object, more = {}): Promise<string> {
      const transaction = open();
      const { id } = await said(transaction, create(collection, fields, more));
      assert.equal((await commit(transaction)).outcome, 'committed');
      return id;
    }

    it('are seen by its own reads and by nobody else before they are committed', async () => {
      const transaction = open();
      const made = await said(transaction, create('categories', { name: 'Kitchen' }));
      assert.deepEqual(await read(transaction, 'categories', made.id), made);
      assert.equal(await store.read('categories', made.id), undefined);
      const list = await said(transaction, {
        do: 'list',
        collection: 'categories',
        query: { filter: { name: 'Kitchen' } },
      });
      assert.deepEqual(list.items, [made]);
      assert.equal((await commit(transaction)).outcome, 'committed');
      const row = await store.read('categories', made.id);
      assert.deepEqual(JSON.parse(row?.doc ?? ''), made);
      assert.equal(row?.owner, null);
      const after = await said(open(), {
        do: 'list',
        collection: 'categories',
        query: { filter: { name: 'Kitchen' } },
      });
      assert.deepEqual(after.items, [made]);
    });

    it('are one change and one event for each resource, in an order that the store takes', async () => {
      const [left, leaving] = [
        await standing('categories', { name: 'Left' }),
        await standing('categories', { name: 'Leaving' }),
      ];
      const product = await standing('products', {
        name: 'Pan',
        price: 1,
        sku: `sku-${engine}`,
        categoryId: leaving,
      });
      const transaction = open();
      await transaction.call(patch('products', product, { price: 2, sku: null }));
      await transaction.call(emit('invoice.paid', { amount: 5 }));
      const category = await said(transaction, create('categories', { name: 'New' }));
      await transaction.call(patch('products', product, { categoryId: category.id }));
      const other = await said(
        transaction,
        create('products', { name: 'Pot', price: 3, sku: `sku-${engine}`, categoryId: category.id }),
      );
      await transaction.call(patch('categories', category.id, { name: 'Newer' }));
      await transaction.call(remove('categories', leaving));
      const gone = await said(transaction, create('categories', { name: 'Never' }));
      await transaction.call(remove('categories', gone.id));
      assert.deepEqual([...shape(transaction)].sort(), [
        'categories none put',
        'categories rev gone',
        'categories.created',
        'categories.deleted',
        'invoice.paid',
        'products none put',
        'products rev put',
        'products.created',
        'products.updated',
      ]);
      const { events } = transaction.unit();
      assert.deepEqual(
        [...events].sort((one, two) => (one.id < two.id ? -1 : 1)),
        [...events],
      );
      assert.deepEqual(await commit(transaction), {
        outcome: 'committed',
        rev: (await store.read('products', other.id))?.rev,
      });
      const row = await store.read('products', product);
      const doc = JSON.parse(row?.doc ?? '') as Record<string, unknown>;
      assert.deepEqual([doc.price, doc.categoryId, doc.sku], [2, category.id, undefined]);
      assert.equal(await store.read('categories', leaving), undefined);
      assert.ok(await store.read('categories', left));
    });

    it('are superseded where another wrote meanwhile the very value that the handler then writes', async () => {
      const id = await standing('products', { name: 'Sum', price: 1 });
      const [one, other] = [open(), open()];
      await read(one, 'products', id);
      await read(other, 'products', id);
      await one.call(patch('products', id, { price: 5 }));
      assert.equal((await commit(one)).outcome, 'committed');
      // Both add 4 to what they read. The second patch finds nothing to change, and one of the two would be lost.
      await other.call(patch('products', id, { price: 5 }));
      assert.equal((await commit(other)).outcome, 'superseded');
    });

    it('are superseded where what the handler has read changed meanwhile', async () => {
      const id = await standing('products', { name: 'Cup', price: 1 });
      const transaction = open();
      await read(transaction, 'products', id);
      const faster = open();
      await faster.call(patch('products', id, { price: 5 }));
      assert.equal((await commit(faster)).outcome, 'committed');
      await transaction.call(patch('products', id, { price: 2 }));
      assert.equal((await commit(transaction)).outcome, 'superseded');
    });

    it('are held to the rules of the collection', async () => {
      const transaction = open();
      await assert.rejects(
        transaction.call(create('products', { name: '', price: -1 })),
        refused('validation_failed', /\/name .*\/price /),
      );
      await assert.rejects(
        transaction.call(create('products', { price: 1 })),
        refused('field_missing', /\/name/),
      );
      await assert.rejects(
        transaction.call(create('categories', { name: 'x' }, { id: 'mine' })),
        refused('field_unpatchable'),
      );
      await assert.rejects(transaction.call(patch('products', 'none', {})), refused('not_found'));
      await assert.rejects(transaction.call(create('users', {})), failed(/no collection is named "users"/));
      await assert.rejects(
        transaction.call(emit('endpoint.disabled', {})),
        refused('validation_failed', /\/type/),
      );
      await assert.rejects(
        transaction.call(emit('invoice.paid', { amount: 'x' })),
        refused('validation_failed', /\/data\/object\/amount/),
      );
      await assert.rejects(
        transaction.call({ do: 'list', collection: 'products', query: { filter: { nothing: 1 } } }),
        refused('query_unprocessable', /nothing/),
      );
      // Whoever catches the refusal goes on because there is no such document.
      assert.deepEqual(shape(transaction), ['products none gone']);
    });

    it('may name the id where PUT creates, and the owner', async () => {
      const id = `welcome-${engine}`;
      const transaction = open();
      await transaction.call(create('articles', { title: 'One' }, { id }));
      await assert.rejects(
        transaction.call(create('articles', { title: 'Two' }, { id })),
        refused('precondition_failed'),
      );
      await transaction.call({ do: 'replace', collection: 'articles', id, fields: { title: 'Three' } });
      const note = await said(transaction, create('notes', { text: 'yours' }, { owner: 'usr_ada' }));
      assert.deepEqual(shape(transaction), [
        'articles none put',
        'notes none put',
        'articles.created',
        'notes.created',
      ]);
      assert.equal((await commit(transaction)).outcome, 'committed');
      assert.equal((await store.read('notes', note.id))?.owner, 'usr_ada');
      const second = open();
      await second.call(remove('articles', id));
      assert.equal(await read(second, 'articles', id), undefined);
      assert.deepEqual(shape(second), ['articles rev put', 'articles.deleted']);
      assert.equal((await commit(second)).outcome, 'committed');
      assert.equal(typeof (await store.read('articles', id))?.deletedAt, 'number');
    });

    it('are made in turn, however they are called', async () => {
      const id = await standing('products', { name: 'Jug', price: 1 });
      const transaction = open();
      await Promise.all([
        transaction.call(patch('products', id, { price: 7 })),
        transaction.call(patch('products', id, { name: 'Jar' })),
      ]);
      assert.equal((await commit(transaction)).outcome, 'committed');
      const doc = JSON.parse((await store.read('products', id))?.doc ?? '') as Record<string, unknown>;
      assert.deepEqual([doc.price, doc.name], [7, 'Jar']);
    });

    it('fail at the commit where only the store can tell', async () => {
      await standing('products', { name: 'Bowl', price: 1, sku: `bowl-${engine}` });
      const taken = open();
      await taken.call(create('products', { name: 'Bowl', price: 1, sku: `bowl-${engine}` }));
      assert.equal((await commit(taken)).outcome, 'taken');
      const dangling = open();
      await dangling.call(create('products', { name: 'Bowl', price: 1, categoryId: 'none' }));
      assert.equal((await commit(dangling)).outcome, 'dangling');
    });

    it('are bounded, and so are reads', async () => {
      const transaction = programOver(store, { handlerChangesMax: 2, handlerReadsMax: 1 }).open();
      await transaction.call(create('categories', { name: 'One' }));
      await transaction.call(emit('anything.else', {}));
      await assert.rejects(transaction.call(emit('anything.else', {})), failed(/2 changes/));
      await read(transaction, 'categories', 'x');
      await assert.rejects(read(transaction, 'categories', 'x'), failed(/1 times/));
    });
  });
}
