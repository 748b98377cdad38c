/** When keys were last used: noted in the background, seldom, and never in anybody's way. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keysTable } from '../../../src/accounts/account-tables.ts';
import { createKeyUses } from '../../../src/accounts/keys/key-verifier.ts';
import type { Observation } from '../../../src/observe/observation.ts';
import type { Store } from '../../../src/store/store.ts';
import { servicesOver } from '../../harness/services-over.ts';
import { engines, failing, openEmbedded } from '../../harness/stores.ts';
import { iso, mustRead, now, plantKey, rewrite } from './planted.ts';

const minuteMs = 60_000;

function usesOf(store: Store, delayMs = 1) {
  const facts: Observation[] = [];
  const observe = (fact: Observation) => facts.push(fact);
  const services = servicesOver(store, { observe, settings: { keyUseSeconds: 60 } });
  return { uses: createKeyUses(services, delayMs), facts };
}

async function lastUsedAt(store: Store, id: string): Promise<unknown> {
  return (JSON.parse((await mustRead(store, keysTable, id)).doc) as { lastUsedAt?: unknown }).lastUsedAt;
}

for (const [engine, open] of engines) {
  test(`${engine}: the uses of many keys are kept, each in its row, and nothing else of the row changes`, async (context) => {
    const [store, other] = await open(context);
    const { uses, facts } = usesOf(store);
    const planted = await Promise.all(Array.from({ length: 300 }, () => plantKey(store)));
    for (const [index, { key }] of planted.entries()) uses.note(key.id, now + index);
    await uses.close();
    for (const [index, { key }] of planted.entries()) {
      const row = await mustRead(other, keysTable, key.id);
      const { createdAt, updatedAt, ...fields } = key;
      const doc = JSON.stringify({ ...fields, lastUsedAt: iso(now + index), createdAt, updatedAt });
      assert.equal(row.doc, doc);
      assert.deepEqual([row.owner, row.createdAt, row.updatedAt], [key.id, now, now]);
    }
    assert.deepEqual(facts, []);
  });

  test(`${engine}: two processes that see a key used at about the same time write it once`, async (context) => {
    const [store, other] = await open(context);
    const { key } = await plantKey(store);
    const one = usesOf(store);
    const two = usesOf(other);
    one.uses.note(key.id, now);
    await one.uses.close();
    const { rev } = await mustRead(store, keysTable, key.id);
    two.uses.note(key.id, now + minuteMs - 1);
    await two.uses.close();
    assert.equal((await mustRead(other, keysTable, key.id)).rev, rev);
    const three = usesOf(other);
    three.uses.note(key.id, now + minuteMs);
    await three.uses.close();
    assert.equal(await lastUsedAt(store, key.id), iso(now + minuteMs));
  });
}

test('a use of a key that was revoked meanwhile is forgotten, and one of a key that changed is written again', async (context) => {
  const store = await openEmbedded(context);
  const [kept, changed] = [await plantKey(store), await plantKey(store)];
  let interferes = true;
  const racing: Store = {
    ...store,
    commit: async (unit) => {
      if (interferes) {
        interferes = false;
        await rewrite(store, keysTable, changed.key.id, { name: 'renamed' });
      }
      return store.commit(unit);
    },
  };
  const { uses, facts } = usesOf(racing);
  uses.note('key_gone', now);
  uses.note(changed.key.id, now);
  uses.note(kept.key.id, now);
  await uses.close();
  assert.equal(await lastUsedAt(store, kept.key.id), iso(now));
  assert.equal(await lastUsedAt(store, changed.key.id), iso(now));
  assert.equal(JSON.parse((await mustRead(store, keysTable, changed.key.id)).doc).name, 'renamed');
  assert.deepEqual(facts, []);
});

test('a store that is away loses the uses and is told of, and later uses are kept', async (context) => {
  const store = failing(await openEmbedded(context));
  const { key } = await plantKey(store);
  store.fault = 'lost-once';
  const { promise, resolve } = Promise.withResolvers<Observation>();
  const uses = createKeyUses(servicesOver(store, { observe: resolve, settings: { keyUseSeconds: 60 } }), 1);
  uses.note(key.id, now);
  const fact = await promise;
  assert.deepEqual([fact.kind, 'what' in fact && fact.what], ['store-failed', 'key uses']);
  assert.equal(await lastUsedAt(store, key.id), undefined);
  uses.note(key.id, now + 1);
  await uses.close();
  assert.equal(await lastUsedAt(store, key.id), iso(now + 1));
});

test('keeps a bounded number of uses waiting, and the newest of each key', async () => {
  const read: string[] = [];
  const store = {
    read: (_table: string, id: string) => {
      read.push(id);
      return undefined;
    },
  } as unknown as Store;
  const { uses } = usesOf(store, minuteMs);
  for (let index = 0; index < 10_001; index += 1) uses.note(`key_${index}`, now);
  uses.note('key_0', now + 1);
  await uses.close();
  assert.equal(read.length, 10_000);
  assert.ok(!read.includes('key_10000'));
  uses.note('key_late', now);
  await uses.close();
  assert.ok(!read.includes('key_late'), 'nothing is kept after the end');
});
