/**
 * Verified credentials (§5.1: every request is validated): remembered while they hold, and dead at once when what they rest on has
 * changed, in this process and in any other on the same store.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Bad, Verdict } from '../../src/accounts/verdict.ts';
import {
  createVerifiedCredentials,
  type Unverified,
  type VerifiedCredentials,
} from '../../src/accounts/verified-credentials.ts';
import { authenticated, type Known } from '../../src/model/principal.ts';

import { type Store, StoreUnavailable } from '../../src/store/store.ts';

import { engines, openEmbedded } from '../harness/stores.ts';
import { badgeReader, badgesTable, putBadge, revokeBadge } from './fixtures/badges.ts';

type Options = { readonly now?: () => number; readonly bytesMax?: number };

function remembering(
  context: TestContext,
  store: Store,
  { now = () => 0, bytesMax = 1_000_000 }: Options = {},
) {
  const credentials = createVerifiedCredentials(store, now, bytesMax);
  context.after(() => credentials.close());
  return credentials;
}

/** As authenticate.ts and the walk use it: remembered or verified, and once more where another process came between. */
async function identify(credentials: VerifiedCredentials, credential: Unverified): Promise<Known | Bad> {
  for (;;) {
    const known =
      credentials.recall(credential.name, credential.proof) ?? (await credentials.verify(credential));
    if ('problem' in known || known.confirmed === undefined || (await known.confirmed)) return known;
  }
}

async function holderOf(credentials: VerifiedCredentials, credential: Unverified): Promise<string> {
  const known = await identify(credentials, credential);
  return 'problem' in known ? known.problem : known.principal.id;
}

for (const [engine, open] of engines) {
  test(`${engine}: what one process revokes is dead on every other before the answer is out`, async (context) => {
    const [one, other] = await open(context);
    const processes = [one, other].map((store) => ({ store, credentials: remembering(context, store) }));
    for (let round = 0; round < 50; round += 1) {
      const id = `badge_${round}`;
      await putBadge(one, id, { holder: 'ann' });
      for (const { store, credentials } of processes) {
        const badge = badgeReader(store).credential(id);
        for (let use = 0; use < 1 + (round % 6); use += 1) {
          assert.equal(await holderOf(credentials, badge), 'ann');
        }
      }
      await revokeBadge(round % 2 === 0 ? one : other, id);
      for (const { store, credentials } of processes) {
        assert.equal(await holderOf(credentials, badgeReader(store).credential(id)), 'invalid_api_key');
      }
    }
  });

  test(`${engine}: what one process changes counts on every other at once`, async (context) => {
    const [one, other] = await open(context);
    const credentials = remembering(context, other);
    const badge = badgeReader(other).credential('badge');
    for (let round = 0; round < 20; round += 1) {
      await putBadge(one, 'badge', { holder: `holder ${round}` });
      assert.equal(await holderOf(credentials, badge), `holder ${round}`);
      assert.equal(await holderOf(credentials, badge), `holder ${round}`);
    }
  });

  test(`${engine}: a use reads its rows at once and is verified no second time`, async (context) => {
    const [store] = await open(context);
    await putBadge(store, 'badge', { holder: 'ann' });
    let reads = 0;
    const counted: Store = {
      ...store,
      shared: store.shared,
      read: (table, id) => {
        reads += 1;
        return store.read(table, id);
      },
    };
    const credentials = remembering(context, counted);
    const reader = badgeReader(store);
    const badge = reader.credential('badge');
    const fresh = await credentials.verify(badge);
    assert.ok('principal' in fresh);
    assert.equal(fresh.confirmed, undefined, 'a fresh verdict costs nothing more');
    assert.equal(reads, 0);
    const again = credentials.recall('badge');
    assert.equal(reads, 1, 'in the same turn');
    assert.equal(await again?.confirmed, true);
    await revokeBadge(store, 'badge');
    assert.equal(await credentials.recall('badge')?.confirmed, false);
    assert.equal(credentials.recall('badge'), undefined, 'forgotten');
    assert.equal(credentials.size(), 0);
    assert.equal(reader.verified, 1);
  });

  test(`${engine}: uses are told once each, and none that was not confirmed`, async (context) => {
    const [store] = await open(context);
    await putBadge(store, 'badge', { holder: 'ann' });
    let now = 1;
    const credentials = remembering(context, store, { now: () => now });
    const reader = badgeReader(store);
    const badge = reader.credential('badge');
    for (; now <= 3; now += 1) await identify(credentials, badge);
    await revokeBadge(store, 'badge');
    await identify(credentials, badge);
    assert.deepEqual(reader.uses, [1, 2, 3]);
  });
}

test('in a shared store a use asks for versions alone while they stand still, and for rows after a change', async (context) => {
  const store = { ...(await openEmbedded(context)), shared: true };
  for (const id of ['badge', 'other']) await putBadge(store, id, { holder: id });
  const asked: string[] = [];
  const counted: Store = {
    ...store,
    read: (table, id) => {
      asked.push('row');
      return store.read(table, id);
    },
    version: (table) => {
      asked.push('version');
      return store.version(table);
    },
  };
  const credentials = remembering(context, counted);
  const badge = badgeReader(store).credential('badge');
  for (let use = 0; use < 4; use += 1) await identify(credentials, badge);
  asked.length = 0;
  for (let use = 0; use < 3; use += 1) await identify(credentials, badge);
  assert.deepEqual(asked, ['version', 'version', 'version']);
  await putBadge(store, 'other', { holder: 'changed' });
  asked.length = 0;
  for (let use = 0; use < 3; use += 1) await identify(credentials, badge);
  assert.deepEqual(asked, ['version', 'row', 'version', 'version']);
});

/**
 * A shared store whose every read sees some moment between its asking and its answer, in whatever order a schedule of numbers says.
 */
function scheduled(next: (below: number) => number) {
  const waiting: {
    look: () => unknown;
    seen: { value: unknown } | undefined;
    tell: (value: unknown) => void;
  }[] = [];
  let version = 1;
  let rev = 1;
  const ask = (look: () => unknown) =>
    new Promise<never>((resolve) => {
      waiting.push({ look, seen: undefined, tell: resolve as (value: unknown) => void });
    });
  return {
    store: {
      shared: true,
      onChange: () => () => undefined,
      read: () => ask(() => ({ id: 'badge', rev })),
      version: () => ask(() => String(version)),
    },
    revision: () => rev,
    /** @param own whether the row changes, or another one of the table */
    change(own: boolean) {
      version += 1;
      if (own) rev = version;
    },
    /** A read that waits sees the store as it is now, or is answered what it saw. */
    step() {
      const index = next(waiting.length);
      const read = waiting[index];
      if (read === undefined) return;
      if (read.seen === undefined) read.seen = { value: read.look() };
      else {
        waiting.splice(index, 1);
        read.tell(read.seen.value);
      }
    },
    idle: () => waiting.length === 0,
  };
}

test('in a shared store nothing that was changed before a use is confirmed, in whatever order reads are answered', async (context) => {
  let confirmed = 0;
  let refused = 0;
  for (let seed = 1; seed <= 400; seed += 1) {
    let state = seed;
    const next = (below: number) => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return Math.floor((state / 2 ** 32) * Math.max(1, below));
    };
    const world = scheduled(next);
    const credentials = createVerifiedCredentials(world.store as unknown as Store, () => 0, 1_000_000);
    context.after(() => credentials.close());
    const remember = () => {
      const verdict: Verdict = {
        principal: authenticated({ id: String(world.revision()), scopes: ['read'] }),
        scheme: 'key',
        session: null,
        key: null,
        expiresAt: Number.POSITIVE_INFINITY,
        basis: [{ table: 'things', id: 'badge', rev: world.revision() }],
      };
      credentials.verify({ name: 'badge', verify: () => verdict, repeatable: true });
    };
    for (let step = 0; step < 300; step += 1) {
      const what = next(10);
      if (what === 0) world.change(next(4) === 0);
      else if (what > 3) world.step();
      else {
        const before = String(world.revision());
        const known = credentials.recall('badge');
        if (known === undefined) remember();
        else {
          known.confirmed?.then((holds) => {
            if (!holds) refused += 1;
            else {
              confirmed += 1;
              assert.equal(known.principal.id, before, `seed ${seed}, step ${step}`);
            }
          });
        }
      }
      await Promise.resolve();
    }
    while (!world.idle()) {
      world.step();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  assert.ok(confirmed > 5000 && refused > 1000, `${confirmed} confirmed, ${refused} refused`);
});

test('in a store of one process an unchanged table is proof: no row is read, and nothing is awaited', async (context) => {
  const embedded = await openEmbedded(context);
  for (const id of ['badge', 'other']) await putBadge(embedded, id, { holder: id });
  let reads = 0;
  const store: Store = {
    ...embedded,
    read: (table, id) => {
      reads += 1;
      return embedded.read(table, id);
    },
  };
  const credentials = remembering(context, store);
  const badge = badgeReader(embedded).credential('badge');
  const known = credentials.verify(badge);
  assert.ok('principal' in known, 'at once');
  for (let use = 0; use < 10; use += 1) assert.equal(credentials.recall('badge'), known);
  assert.equal(reads, 0);
  await putBadge(embedded, 'other', { holder: 'changed' });
  for (let use = 0; use < 10; use += 1) assert.equal(credentials.recall('badge'), known);
  assert.equal(reads, 1, 'once after a change of the table');
  await revokeBadge(embedded, 'badge');
  assert.equal(credentials.recall('badge'), undefined);
  assert.equal(credentials.size(), 0);
});

test('a revocation counts in the very turn in which its commit resolves', async (context) => {
  const store = await openEmbedded(context);
  const credentials = remembering(context, store);
  const badge = badgeReader(store).credential('badge');
  for (let round = 0; round < 100; round += 1) {
    await putBadge(store, 'badge', { holder: 'ann' });
    assert.ok('principal' in (await credentials.verify(badge)));
    const row = await store.read(badgesTable, 'badge');
    const recalled = store
      .commit({
        changes: [{ table: badgesTable, id: 'badge', expect: { rev: row?.rev ?? 0 }, next: null }],
        events: [],
      })
      .then(() => credentials.recall('badge'));
    assert.equal(await recalled, undefined);
  }
});

test('time ends what is remembered to the millisecond, and it is verified anew', async (context) => {
  const store = await openEmbedded(context);
  await putBadge(store, 'badge', { holder: 'ann', expiresAt: 1000 });
  let now = 999;
  const credentials = remembering(context, store, { now: () => now });
  const reader = badgeReader(store);
  credentials.verify(reader.credential('badge'));
  assert.ok(credentials.recall('badge') !== undefined);
  now = 1000;
  assert.equal(credentials.recall('badge'), undefined);
  assert.equal(credentials.size(), 0);
});

test('what is refused is not remembered: a credential that becomes good is good at once', async (context) => {
  const store = await openEmbedded(context);
  const credentials = remembering(context, store);
  const reader = badgeReader(store);
  const badge = reader.credential('badge');
  for (let time = 0; time < 3; time += 1) assert.equal(await holderOf(credentials, badge), 'invalid_api_key');
  assert.equal(reader.verified, 3);
  assert.equal(credentials.size(), 0);
  await putBadge(store, 'badge', { holder: 'ann' });
  assert.equal(await holderOf(credentials, badge), 'ann');
});

test('holds no more than its bound, and a credential in use stays', async (context) => {
  const store = await openEmbedded(context);
  for (let index = 0; index < 200; index += 1)
    await putBadge(store, `badge_${index}`, { holder: `${index}` });
  const credentials = remembering(context, store, { bytesMax: 65_536 });
  const reader = badgeReader(store);
  for (let index = 0; index < 200; index += 1) {
    assert.equal(await holderOf(credentials, reader.credential(`badge_${index}`)), `${index}`);
    assert.equal(await holderOf(credentials, reader.credential('badge_0')), '0');
    assert.ok(credentials.size() <= 65_536 / 1024);
  }
  assert.equal(reader.verified, 200, 'the one in use was verified once');
});

/** A verification that ends when the test says so. */
function slow(verdict: () => Verdict): {
  readonly verify: () => Promise<Verdict>;
  readonly end: () => void;
  begun: number;
} {
  const gate = Promise.withResolvers<void>();
  const held = {
    begun: 0,
    verify: async () => {
      held.begun += 1;
      const found = verdict();
      await gate.promise;
      return found;
    },
    end: () => gate.resolve(),
  };
  return held;
}

/** A store with the badge of Ann. */
async function withBadge(context: TestContext) {
  const store = await openEmbedded(context);
  await putBadge(store, 'badge', { holder: 'ann' });
  return { store, credentials: remembering(context, store), reader: badgeReader(store) };
}

async function verdictOf(reader: ReturnType<typeof badgeReader>, id: string): Promise<Verdict> {
  return reader.credential(id).verify();
}

/** The badge, whose first verification is the one that is given. */
function firstVerifiedBy(verify: Unverified['verify'], reader: ReturnType<typeof badgeReader>): Unverified {
  const credential = reader.credential('badge');
  let isFirst = true;
  return {
    ...credential,
    verify: () => {
      if (!isFirst) return credential.verify();
      isFirst = false;
      return verify();
    },
  };
}

test('many requests with one credential verify it once, and each is a use', async (context) => {
  const { credentials, reader } = await withBadge(context);
  const found = await verdictOf(reader, 'badge');
  const held = slow(() => found);
  const credential = { name: 'badge', verify: held.verify, repeatable: false, proof: 'one' };
  const requests = Array.from({ length: 8 }, () => identify(credentials, credential));
  const another = identify(credentials, { ...credential, proof: 'other' });
  held.end();
  for (const known of await Promise.all([...requests, another])) assert.ok('principal' in known);
  assert.equal(held.begun, 2, 'once for each proof');
  assert.equal(reader.uses.length, 9);
});

test('what is remembered under one proof is forgotten as soon as another is tried, right or wrong', async (context) => {
  const { credentials, reader } = await withBadge(context);
  const right = reader.credential('badge', { proof: 'right', repeatable: false });
  assert.equal(await holderOf(credentials, right), 'ann');
  assert.ok(credentials.recall('badge', 'right') !== undefined);
  assert.equal(credentials.recall('badge', 'wrong'), undefined);
  assert.equal(credentials.recall('badge', 'right'), undefined);
  assert.equal(credentials.size(), 0);
});

test('a bad password that many requests bring at once is tried once, and not remembered', async (context) => {
  const store = await openEmbedded(context);
  const credentials = remembering(context, store);
  const held = slow(() => ({ problem: 'invalid_credentials' }));
  const credential = { name: 'bad', verify: held.verify, repeatable: false, proof: 'digest' };
  const requests = Array.from({ length: 8 }, () => identify(credentials, credential));
  held.end();
  for (const known of await Promise.all(requests)) assert.ok('problem' in known);
  assert.equal(held.begun, 1);
  await identify(credentials, credential);
  assert.equal(held.begun, 2);
});

test('who joins a verification that began before a revocation does not profit by it', async (context) => {
  const { store, credentials, reader } = await withBadge(context);
  const found = await verdictOf(reader, 'badge');
  const held = slow(() => found);
  const credential = firstVerifiedBy(held.verify, reader);
  const first = identify(credentials, credential);
  await revokeBadge(store, 'badge');
  const second = holderOf(credentials, credential);
  held.end();
  assert.ok('principal' in (await first), 'it came before the revocation');
  assert.equal(await second, 'invalid_api_key');
  assert.equal(await holderOf(credentials, credential), 'invalid_api_key');
});

test('who joins a verification that began before a credential became good is admitted', async (context) => {
  const store = await openEmbedded(context);
  const credentials = remembering(context, store);
  const reader = badgeReader(store);
  const held = slow(() => ({ problem: 'invalid_api_key' }));
  const credential = firstVerifiedBy(held.verify, reader);
  const first = holderOf(credentials, credential);
  await putBadge(store, 'badge', { holder: 'ann' });
  const others = Array.from({ length: 3 }, () => holderOf(credentials, credential));
  held.end();
  assert.equal(await first, 'invalid_api_key');
  assert.deepEqual(await Promise.all(others), ['ann', 'ann', 'ann']);
});

test('a verification that fails for storage is told to all who wait, and the next one begins anew', async (context) => {
  const { credentials, reader } = await withBadge(context);
  let fails = true;
  const credential: Unverified = {
    ...reader.credential('badge'),
    verify: async () => {
      await Promise.resolve();
      if (fails) throw new StoreUnavailable('the test cut the connection', { retryAfterSeconds: 1 });
      return verdictOf(reader, 'badge');
    },
  };
  const requests = await Promise.allSettled([1, 2, 3].map(() => identify(credentials, credential)));
  for (const request of requests) {
    assert.equal(request.status, 'rejected');
    assert.ok(request.reason instanceof StoreUnavailable);
  }
  fails = false;
  assert.equal(await holderOf(credentials, credential), 'ann');
});

test('storage that fails while a use is confirmed fails the request and forgets nothing', async (context) => {
  const embedded = await openEmbedded(context);
  await putBadge(embedded, 'badge', { holder: 'ann' });
  let fails = false;
  const store: Store = {
    ...embedded,
    shared: true,
    read: async (table, id) => {
      if (fails) throw new StoreUnavailable('the test cut the connection', { retryAfterSeconds: 1 });
      return embedded.read(table, id);
    },
  };
  const credentials = remembering(context, store);
  const reader = badgeReader(store);
  const badge = reader.credential('badge');
  await identify(credentials, badge);
  fails = true;
  await assert.rejects(identify(credentials, badge), StoreUnavailable);
  fails = false;
  assert.equal(await holderOf(credentials, badge), 'ann');
  assert.equal(reader.verified, 1);
});
