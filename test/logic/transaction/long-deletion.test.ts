/** A deletion that takes more with it than a unit does (§4.7.6), while others delete the same documents. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { it } from 'node:test';
import { Type } from 'typebox';
import { resolveConfiguration } from '../../../src/config/configuration.ts';
import { loadSettings } from '../../../src/config/load-settings.ts';
import type { Ask } from '../../../src/kernel/resource.ts';
import { createOpenTransaction } from '../../../src/logic/transaction/transaction.ts';
import { RequestLogic, type RunHooks } from '../../../src/logic/transaction/unit-logic.ts';
import { createIdSource } from '../../../src/model/id.ts';
import { authenticated, operatorId } from '../../../src/model/principal.ts';
import { LoopTurns } from '../../../src/observe/event-loop.ts';
import { createServing, serveCollection } from '../../../src/resources/collection/serve-collection.ts';
import type { Row, Store } from '../../../src/store/store.ts';
import { storeTables } from '../../../src/store-tables.ts';
import { openEmbedded } from '../../harness/stores.ts';

const configuration = resolveConfiguration({
  collections: {
    parents: { schema: Type.Object({ name: Type.String() }) },
    children: {
      schema: Type.Object({ parentId: Type.String() }),
      references: { parentId: { collection: 'parents', onDelete: 'cascade' } },
    },
  },
});
const noHooks: RunHooks = (_served, _ask, write) => ({ fields: write.fields ?? {} });
const principal = authenticated({ id: operatorId, scopes: ['read', 'write', 'admin'] });

it('goes on when another request deletes one of the documents between two reads of it', async (context) => {
  const kept = await openEmbedded(context, storeTables(configuration));
  let reads = 0;
  /** The second read of the first child finds that it was deleted since the first. */
  const store: Store = {
    ...kept,
    read: async (table, id) => {
      const row = await kept.read(table, id);
      if (table !== 'children' || id !== 'child-1') return row;
      reads += 1;
      if (reads !== 2 || row === undefined) return row;
      await kept.commit({ changes: [{ table, id, expect: { rev: row.rev }, next: null }], events: [] });
      return kept.read(table, id);
    },
  };
  const settings = { ...loadSettings({}, {}, {}).settings, cascadeMax: 2 };
  const serving = createServing({
    settings,
    store,
    base: '/api/v1',
    collections: configuration.collections,
    newId: createIdSource(Date.now, () => randomInt(32)),
    clock: Date.now,
    turns: new LoopTurns(),
    mac: (text) => text,
    addressOf: ({ peer }) => peer,
  });
  const reach = { collections: configuration.collections, emit: () => assert.fail('nothing is emitted') };
  const open = createOpenTransaction(serving, reach, { onFailed: (error) => assert.fail(error) });
  await create(kept, 'parents', 'parent', { name: 'one' });
  for (let n = 1; n <= 5; n += 1) await create(kept, 'children', `child-${n}`, { parentId: 'parent' });
  const parents = configuration.collections.get('parents');
  assert.ok(parents);
  const { served } = serveCollection(serving, parents);
  let parts = 0;
  const progressed = async (): Promise<void> => {
    parts += 1;
  };
  // An operation that has judged its deletion; nothing else of the request is used before the last unit.
  const operation = { id: 'op_1', state: 'decided', progressed } as const;
  const ask = { principal, companions: [], request: { id: 'one' }, operation } as unknown as Ask;
  const before = (await kept.read('parents', 'parent')) as Row;
  const result = await new RequestLogic(open, noHooks, assert.fail).write(
    served,
    ask,
    [{ action: 'delete', id: 'parent', before, fields: undefined }],
    () => ({ refused: { code: 'not_found' } }),
  );
  assert.deepEqual(result, { refused: { code: 'not_found' } }, 'that of the last unit');
  assert.ok(reads >= 2);
  assert.equal(parts, 2, 'each part is told, so that a death after it is not one of the operation');
  for (let n = 1; n <= 5; n += 1) assert.equal(await kept.read('children', `child-${n}`), undefined);
});

async function create(store: Store, table: string, id: string, fields: object): Promise<void> {
  const at = 1;
  const time = new Date(at).toISOString();
  const { parentId } = fields as { parentId?: string };
  const next = {
    doc: JSON.stringify({ id, ...fields, createdAt: time, updatedAt: time }),
    ...{ owner: null, createdAt: at, updatedAt: at, deletedAt: null, search: null },
    references: parentId === undefined ? [] : [{ field: 'parentId', table: 'parents', id: parentId }],
  };
  const made = await store.commit({ changes: [{ table, id, expect: { absent: true }, next }], events: [] });
  assert.equal(made.outcome, 'committed');
}
