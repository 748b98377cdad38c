/** The administrator key of several processes on one store. */
import assert from 'node:assert/strict';
import { hash, timingSafeEqual } from 'node:crypto';
import { test } from 'node:test';
import {
  adminKeyRowId,
  followAdminKey,
  loadAdminKey,
  loadSecret,
  secretsTable,
} from '../../src/accounts/admin-key.ts';
import type { Observation } from '../../src/observe/observation.ts';
import { keptRow, type Store, StoreUnavailable } from '../../src/store/store.ts';
import { servicesOver } from '../harness/services-over.ts';
import { engines, openEmbedded } from '../harness/stores.ts';
import { until } from '../harness/until.ts';

const now = Date.UTC(2030, 0, 1);

/** What a process of the store accepts, once it has loaded its key. */
async function startProcess(
  store: Store,
  given?: string,
  observe: (fact: Observation) => void = () => undefined,
) {
  const key = await loadAdminKey(store, given, now);
  const followed = followAdminKey(servicesOver(store, { observe }), key, given);
  return {
    made: key.made,
    stop: followed.stop,
    accepts: (sent: string) => timingSafeEqual(hash('sha256', sent, 'buffer'), followed.hash()),
  };
}

async function changeKey(store: Store, key: string): Promise<void> {
  const row = await store.read(secretsTable, adminKeyRowId);
  assert.ok(row);
  const next = keptRow(JSON.stringify({ sha256: hash('sha256', key, 'hex') }), null, now, now);
  const change = { table: secretsTable, id: adminKeyRowId, expect: { rev: row.rev }, next };
  assert.equal((await store.commit({ changes: [change], events: [] })).outcome, 'committed');
}

for (const [engine, open] of engines) {
  test(`${engine}: processes that start together agree on one key and one secret, and one of them shows the key`, async (context) => {
    const stores = await open(context);
    const processes = await Promise.all([...stores, ...stores].map((store) => startProcess(store)));
    const made = processes.flatMap((process) => process.made ?? []);
    assert.equal(made.length, 1);
    for (const process of processes) {
      assert.ok(process.accepts(made[0] ?? ''));
      process.stop();
    }
    let drawn = 0;
    const bytes = (count: number) => {
      drawn += 1;
      return Buffer.alloc(count, drawn);
    };
    const secrets = await Promise.all(
      [...stores, ...stores].map((store) => loadSecret(store, 'cursor', now, bytes)),
    );
    assert.equal(new Set(secrets).size, 1);
  });

  test(`${engine}: a key that is changed on one process counts on all, and the old one no longer`, async (context) => {
    const [one, other] = await open(context);
    const processes = [await startProcess(one), await startProcess(other)] as const;
    const before = processes[0].made ?? '';
    await changeKey(one, 'sk_changed');
    for (const process of processes) {
      await until(() => process.accepts('sk_changed'));
      assert.ok(!process.accepts(before));
    }
    processes[1].stop();
    await changeKey(other, 'sk_again');
    await until(() => processes[0].accepts('sk_again'));
    assert.ok(processes[1].accepts('sk_changed'), 'a process that stopped looks no more');
    processes[0].stop();
  });
}

test('a key from COMITY_ADMIN_KEY stays what the operator set, whatever the store holds', async (context) => {
  const store = await openEmbedded(context);
  const without = await startProcess(store);
  const given = await startProcess(store, 'sk_given');
  await changeKey(store, 'sk_changed');
  await until(() => without.accepts('sk_changed'));
  assert.ok(given.accepts('sk_given'));
  assert.ok(!given.accepts('sk_changed'));
  without.stop();
});

test('looks again after a look that failed', async (context) => {
  const store = await openEmbedded(context);
  let fails = false;
  const facts: Observation[] = [];
  const shaky: Store = {
    ...store,
    read: (table, id) => {
      if (fails) {
        fails = false;
        return Promise.reject(new StoreUnavailable('the test cut the connection', { retryAfterSeconds: 1 }));
      }
      return store.read(table, id);
    },
  };
  const process = await startProcess(shaky, undefined, (fact) => facts.push(fact));
  // Let the first look end.
  await new Promise((resolve) => setImmediate(resolve));
  fails = true;
  await changeKey(store, 'sk_changed');
  await until(() => process.accepts('sk_changed'));
  assert.deepEqual(
    facts.map(({ kind }) => kind),
    ['store-failed'],
  );
  process.stop();
});
