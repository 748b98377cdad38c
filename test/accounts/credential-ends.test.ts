/** What outlives its request learns when its credential has ended (§5.1): by revocation on any process, and by time. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import {
  createVerifiedCredentials,
  credentialsStage,
  type Unverified,
} from '../../src/accounts/verified-credentials.ts';
import type { Known } from '../../src/model/principal.ts';
import { withStages } from '../../src/store/stages.ts';
import { type Store, StoreUnavailable } from '../../src/store/store.ts';
import { engines, openEmbedded } from '../harness/stores.ts';
import { badgeReader, putBadge, revokeBadge } from './fixtures/badges.ts';

async function knownBy(
  context: TestContext,
  store: Store,
  credential: Unverified,
  clock: () => number = () => 0,
): Promise<Known> {
  const credentials = createVerifiedCredentials(store, clock, 1_000_000);
  context.after(() => credentials.close());
  const known = await credentials.verify(credential);
  assert.ok('principal' in known);
  return known;
}

/** Resolves when it ends. */
function endOf(known: Known): Promise<void> {
  return new Promise((resolve) => known.onEnd(resolve));
}

/** Something else that is held has ended: whatever ends had been looked at by then. */
async function another(context: TestContext, store: Store): Promise<void> {
  await putBadge(store, 'another', { holder: 'another' });
  const known = await knownBy(context, store, badgeReader(store).credential('another'));
  const ended = endOf(known);
  await revokeBadge(store, 'another');
  await ended;
}

for (const [engine, open] of engines) {
  test(`${engine}: a revocation by another process is told`, async (context) => {
    const [one, other] = await open(context);
    await putBadge(one, 'badge', { holder: 'ann' });
    const ended = endOf(await knownBy(context, other, badgeReader(other).credential('badge')));
    await revokeBadge(one, 'badge');
    await ended;
  });
}

for (const [engine, open] of engines) {
  test(`${engine}: a commit of this process resolves after what it ended was told, however short after another`, async (context) => {
    const [plain] = await open(context);
    const credentials = createVerifiedCredentials(plain, () => 0, 1_000_000);
    context.after(() => credentials.close());
    const store = withStages(plain, credentialsStage(credentials));
    const told: string[] = [];
    for (const badge of ['one', 'two', 'three']) {
      await putBadge(store, badge, { holder: badge });
      const known = await credentials.verify(badgeReader(store).credential(badge));
      assert.ok('principal' in known);
      known.onEnd(() => told.push(badge));
    }
    for (const [index, badge] of ['one', 'two', 'three'].entries()) {
      await revokeBadge(store, badge);
      assert.deepEqual(told, ['one', 'two', 'three'].slice(0, index + 1));
    }
  });
}

test('a change that leaves the same principal with the same rights ends nothing, one that takes rights away does', async (context) => {
  const store = await openEmbedded(context);
  await putBadge(store, 'badge', { holder: 'ann', scopes: ['read', 'write'] });
  const reader = badgeReader(store);
  const known = await knownBy(context, store, reader.credential('badge'));
  let isEnded = false;
  known.onEnd(() => {
    isEnded = true;
  });
  for (let round = 0; round < 3; round += 1) {
    const before = reader.verified;
    await putBadge(store, 'badge', { holder: 'ann', scopes: ['write', 'read'] });
    while (reader.verified === before) await new Promise((resolve) => setImmediate(resolve));
    await another(context, store);
    assert.ok(!isEnded);
  }
  const ended = endOf(known);
  await putBadge(store, 'badge', { holder: 'ann', scopes: ['read'] });
  await ended;
  assert.ok(isEnded);
});

test('another principal behind the same credential ends it', async (context) => {
  const store = await openEmbedded(context);
  await putBadge(store, 'badge', { holder: 'ann' });
  const ended = endOf(await knownBy(context, store, badgeReader(store).credential('badge')));
  await putBadge(store, 'badge', { holder: 'bob' });
  await ended;
});

test('a credential whose text is not kept ends with any change of what it rests on', async (context) => {
  const store = await openEmbedded(context);
  await putBadge(store, 'badge', { holder: 'ann' });
  const reader = badgeReader(store);
  const known = await knownBy(context, store, reader.credential('badge', { repeatable: false }));
  const ended = endOf(known);
  await putBadge(store, 'badge', { holder: 'ann' });
  await ended;
  assert.equal(reader.verified, 1);
});

test('what was revoked between its use and its holding is told', async (context) => {
  const store = await openEmbedded(context);
  await putBadge(store, 'badge', { holder: 'ann' });
  const known = await knownBy(context, store, badgeReader(store).credential('badge'));
  await revokeBadge(store, 'badge');
  await endOf(known);
});

test('every listener is told once, and none that has stopped', async (context) => {
  const store = await openEmbedded(context);
  await putBadge(store, 'badge', { holder: 'ann' });
  const known = await knownBy(context, store, badgeReader(store).credential('badge'));
  const told: string[] = [];
  const twice = () => told.push('twice');
  known.onEnd(twice);
  const stop = known.onEnd(twice);
  known.onEnd(() => told.push('once'));
  const stopOther = known.onEnd(() => told.push('never'));
  stop();
  stop();
  stopOther();
  const ended = endOf(known);
  await revokeBadge(store, 'badge');
  await ended;
  await another(context, store);
  assert.deepEqual(told, ['twice', 'once']);
});

test('time ends it, at its millisecond and not before, with one timer for all', async (context) => {
  const store = await openEmbedded(context);
  const startedAt = Date.UTC(2030, 0, 1);
  const ends = [5000, 1000, 3_000_000_000, 1000];
  for (const [index, ms] of ends.entries()) {
    await putBadge(store, `badge_${index}`, { holder: 'ann', expiresAt: startedAt + ms });
  }
  context.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: startedAt });
  const credentials = createVerifiedCredentials(store, Date.now, 1_000_000);
  const reader = badgeReader(store);
  const told: string[] = [];
  for (const index of ends.keys()) {
    const known = await credentials.verify(reader.credential(`badge_${index}`));
    assert.ok('principal' in known);
    known.onEnd(() => told.push(`${index}`));
  }
  const pass = async (ms: number) => {
    context.mock.timers.tick(ms);
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  await pass(999);
  assert.deepEqual(told, []);
  await pass(1);
  assert.deepEqual(told, ['1', '3']);
  await pass(3999);
  assert.equal(told.length, 2);
  await pass(1);
  assert.deepEqual(told, ['1', '3', '0']);
  // Longer than one timer can be.
  await pass(2_147_483_647);
  assert.equal(told.length, 3);
  await pass(3_000_000_000 - 2_147_483_647 - 5000);
  assert.deepEqual(told, ['1', '3', '0', '2']);
  credentials.close();
});

test('what time was to end goes on when it has been given more', async (context) => {
  const store = await openEmbedded(context);
  await putBadge(store, 'badge', { holder: 'ann', expiresAt: 1000 });
  context.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 0 });
  const known = await knownBy(context, store, badgeReader(store).credential('badge'), Date.now);
  let isEnded = false;
  known.onEnd(() => {
    isEnded = true;
  });
  await putBadge(store, 'badge', { holder: 'ann', expiresAt: 2000 });
  const pass = async (ms: number) => {
    context.mock.timers.tick(ms);
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  await pass(1000);
  assert.ok(!isEnded);
  await pass(999);
  assert.ok(!isEnded);
  await pass(1);
  assert.ok(isEnded);
});

test('storage that fails ends nothing but what time has ended, and it is looked at again', async (context) => {
  const embedded = await openEmbedded(context);
  await putBadge(embedded, 'badge', { holder: 'ann' });
  await putBadge(embedded, 'short', { holder: 'ann', expiresAt: 1000 });
  let failures = 0;
  let fails = false;
  const store: Store = {
    ...embedded,
    read: (table, id) => {
      if (!fails) return embedded.read(table, id);
      failures += 1;
      throw new StoreUnavailable('the test cut the connection', { retryAfterSeconds: 1 });
    },
  };
  let now = 0;
  const credentials = createVerifiedCredentials(store, () => now, 1_000_000);
  context.after(() => credentials.close());
  const reader = badgeReader(store);
  const told: string[] = [];
  for (const id of ['badge', 'short']) {
    const known = await credentials.verify(reader.credential(id));
    assert.ok('principal' in known);
    known.onEnd(() => told.push(id));
  }
  fails = true;
  now = 1000;
  await revokeBadge(embedded, 'badge');
  while (failures < 3) await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(told, ['short']);
  fails = false;
  now = 2000;
  while (told.length < 2) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(told, ['short', 'badge']);
});

test('ten thousand that are held are looked at in slices, and only once for many changes', async (context) => {
  const store = await openEmbedded(context);
  await putBadge(store, 'badge', { holder: 'ann' });
  let reads = 0;
  const counted: Store = {
    ...store,
    read: (table, id) => {
      reads += 1;
      return store.read(table, id);
    },
  };
  const credentials = createVerifiedCredentials(counted, Date.now, 1_000_000);
  context.after(() => credentials.close());
  const reader = badgeReader(store);
  const count = 10_000;
  let left = count;
  const all = new Promise<void>((resolve) => {
    const listener = () => {
      left -= 1;
      if (left === 0) resolve();
    };
    for (let index = 0; index < count; index += 1) {
      const known = credentials.verify(reader.credential('badge', { name: `badge ${index}` }));
      assert.ok('principal' in known);
      known.onEnd(listener);
    }
  });
  while (reads < count) await new Promise((resolve) => setImmediate(resolve));
  reads = 0;
  for (let change = 0; change < 20; change += 1) await putBadge(store, `other ${change}`, { holder: 'x' });
  await revokeBadge(store, 'badge');
  await all;
  assert.ok(reads <= 3 * count, `${reads} reads`);
});
