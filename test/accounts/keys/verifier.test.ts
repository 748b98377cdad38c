/** API keys to verdicts, on both stores. */
import assert from 'node:assert/strict';
import { hash, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { keySecretsTable, usersTable } from '../../../src/accounts/account-tables.ts';
import { administrator, loadAdminKey } from '../../../src/accounts/admin-key.ts';
import { keySecretsRetention, makeKey } from '../../../src/accounts/keys/key-rows.ts';
import { createKeyVerifier } from '../../../src/accounts/keys/key-verifier.ts';
import { createFactorRule } from '../../../src/accounts/second-factor/factor-row.ts';
import type { Good, Verdict } from '../../../src/accounts/verdict.ts';
import { administratorRole, scopes } from '../../../src/model/principal.ts';
import type { Store } from '../../../src/store/store.ts';
import { embeddedOnly, engines, openEmbedded } from '../../harness/stores.ts';
import { iso, now, plantKey, plantUser, remove, rewrite } from './planted.ts';

const adminKey = 'sk_test_0123456789abcdef0123456789';
const unusable = { problem: 'invalid_api_key' };

function verifierOf(store: Store, at: () => number = () => now) {
  const noted: (readonly [key: string, at: number])[] = [];
  const uses = { intervalMs: 60_000, note: (key: string, atMs: number) => void noted.push([key, atMs]) };
  const verify = createKeyVerifier(
    { store, clock: at, uses, factorRule: createFactorRule(store, 'optional') },
    { hash: () => hash('sha256', adminKey, 'buffer'), isKept: false },
  );
  return { verify, noted };
}

function good(verdict: Verdict): Good {
  assert.ok('principal' in verdict, JSON.stringify(verdict));
  return verdict;
}

for (const [engine, open] of engines) {
  test(`${engine}: a key is no longer good once its text is gone, or its account is disabled or deleted`, async (context) => {
    const [store, other] = await open(context);
    const { verify } = verifierOf(other);
    const revoked = await plantKey(store);
    good(await verify(revoked.text));
    await remove(store, keySecretsTable, revoked.digest);
    assert.deepEqual(await verify(revoked.text), unusable);
    const user = await plantUser(store);
    const { text } = await plantKey(store, { owner: user.id });
    good(await verify(text));
    await rewrite(store, usersTable, user.id, { disabled: true });
    assert.deepEqual(await verify(text), unusable);
    await rewrite(store, usersTable, user.id, { disabled: false });
    good(await verify(text));
    await remove(store, usersTable, user.id);
    assert.deepEqual(await verify(text), unusable);
  });

  test(`${engine}: an administrator key that another process changed is refused before this one is told`, async (context) => {
    const [store, other] = await open(context);
    const { made = '', hash: known } = await loadAdminKey(store, undefined, now);
    const verify = createKeyVerifier(
      {
        ...{ store: other, clock: () => now, factorRule: createFactorRule(other, 'optional') },
        uses: { intervalMs: 1, note: () => assert.fail('the administrator key has no row to note it in') },
      },
      { hash: () => known, isKept: true },
    );
    const verdict = good(await verify(made));
    assert.equal(verdict.principal, administrator);
    verdict.onUse?.(now);
    const [basis] = verdict.basis;
    assert.ok(basis);
    await rewrite(store, basis.table, basis.id, { sha256: hash('sha256', 'sk_changed', 'hex') });
    assert.deepEqual(await verify(made), unusable);
  });
}

for (const [engine, open] of embeddedOnly) {
  test(`${engine}: a key of an account stands for the account, within the scopes of both`, async (context) => {
    const [store] = await open(context);
    const user = await plantUser(store, { scopes: ['read', 'write', 'webhooks'], tenant: 'north' });
    const { text, key, digest } = await plantKey(store, { owner: user.id, scopes: ['read', 'tunnel'] });
    const { verify } = verifierOf(store);
    const verdict = good(await verify(text));
    assert.equal(verdict.principal.id, user.id);
    assert.equal(verdict.principal.tenant, 'north');
    assert.deepEqual([...verdict.principal.scopes], ['read']);
    assert.deepEqual([verdict.scheme, verdict.key, verdict.session], ['key', key.id, null]);
    assert.equal(verdict.expiresAt, Number.POSITIVE_INFINITY);
    assert.deepEqual(
      verdict.basis.map(({ table, id }) => [table, id]),
      [
        [keySecretsTable, digest],
        [usersTable, user.id],
      ],
    );
    for (const { table, id, rev } of verdict.basis) assert.equal((await store.read(table, id))?.rev, rev);
    await rewrite(store, usersTable, user.id, { scopes: ['write', 'tunnel'] });
    assert.deepEqual([...good(await verify(text)).principal.scopes], ['tunnel']);
  });

  test(`${engine}: a key that no account owns is a principal of its own`, async (context) => {
    const [store] = await open(context);
    const { text, key } = await plantKey(store);
    const { principal } = good(await verifierOf(store).verify(text));
    assert.deepEqual([principal.id, principal.tenant], [key.id, null]);
    assert.deepEqual([...principal.scopes].sort(), ['read', 'write']);
  });

  test(`${engine}: texts that are over are purged, and all others stay`, async (context) => {
    const [store] = await open(context);
    const over = await plantKey(store, { secretEndsAt: now + 1000 });
    const later = await plantKey(store, { secretEndsAt: now + 2000 });
    const lasting = await plantKey(store);
    const { table, seconds } = keySecretsRetention;
    assert.equal(await store.purge(table, now + 1000 - seconds * 1000, 100), 0);
    assert.equal(await store.purge(table, now + 1001, 100), 1);
    assert.equal(await store.read(table, over.digest), undefined);
    assert.ok(await store.read(table, later.digest));
    assert.ok(await store.read(table, lasting.digest));
  });
}

test('a key is good to the millisecond before it expires, by its own end and by that of a rotated text', async (context) => {
  const store = await openEmbedded(context);
  let at = now;
  const { verify } = verifierOf(store, () => at);
  const end = now + 5000;
  const expiring = await plantKey(store, { expiresAt: iso(end) });
  const rotated = await plantKey(store, { secretEndsAt: end });
  const sooner = await plantKey(store, { expiresAt: iso(end), secretEndsAt: end + 1 });
  for (const { text } of [expiring, rotated, sooner]) {
    at = end - 1;
    assert.equal(good(await verify(text)).expiresAt, end);
    at = end;
    assert.deepEqual(await verify(text), unusable);
  }
});

test('a publishable key reads and does nothing else, whatever its row says', async (context) => {
  const store = await openEmbedded(context);
  const { verify } = verifierOf(store);
  const user = await plantUser(store, { roles: [administratorRole] });
  for (const owner of [undefined, user.id]) {
    const { text } = await plantKey(store, {
      kind: 'publishable',
      scopes: [...scopes],
      ...(owner === undefined ? {} : { owner }),
    });
    assert.ok(text.startsWith('pk_'));
    const { principal } = good(await verify(text));
    assert.deepEqual([...principal.scopes], ['read']);
    assert.ok(!principal.roles.has(administratorRole));
  }
});

test('a text of one kind is not good for a key of the other', async (context) => {
  const store = await openEmbedded(context);
  const { text, digest } = await plantKey(store, { kind: 'publishable' });
  await rewrite(store, keySecretsTable, digest, { kind: 'secret', scopes: ['read', 'write'] });
  assert.deepEqual(await verifierOf(store).verify(text), unusable);
});

test('the administrator key outranks every other and rests on no row where the operator gave it', async (context) => {
  const store = await openEmbedded(context);
  const verdict = good(await verifierOf(store).verify(adminKey));
  assert.equal(verdict.principal, administrator);
  assert.deepEqual([verdict.key, verdict.basis], [null, []]);
});

test('refuses what is no key without asking the store', async () => {
  const store = { read: () => assert.fail('the store was asked') } as unknown as Store;
  const { verify } = verifierOf(store);
  const sound = makeKey('secret', randomBytes);
  const texts = [
    '',
    'sk_',
    sound.slice(0, -1),
    `${sound}x`,
    `xk_${sound.slice(3)}`,
    `${sound.slice(0, -1)}=`,
  ];
  for (const text of [...texts, `${sound.slice(0, -1)}\0`, 'sk_'.padEnd(60_000, 'a'), ` ${sound.slice(1)}`]) {
    assert.deepEqual(verify(text), unusable);
  }
});

test('refuses a key that was never made', async (context) => {
  const store = await openEmbedded(context);
  assert.deepEqual(await verifierOf(store).verify(makeKey('secret', randomBytes)), unusable);
  assert.deepEqual(await verifierOf(store).verify(makeKey('publishable', randomBytes)), unusable);
});

test('asks the store by id alone, one row for a key and one more for its account', async (context) => {
  const store = await openEmbedded(context);
  const user = await plantUser(store);
  const own = await plantKey(store, { owner: user.id });
  const independent = await plantKey(store);
  const asked: string[] = [];
  const counting = {
    ...store,
    read: (table: string, id: string) => {
      asked.push(table);
      return store.read(table, id);
    },
    plan: () => assert.fail('a list was asked for'),
  };
  const { verify } = verifierOf(counting);
  good(await verify(independent.text));
  assert.deepEqual(asked.splice(0), [keySecretsTable]);
  good(await verify(own.text));
  assert.deepEqual(asked, [keySecretsTable, usersTable]);
});

test('a use is noted once in the interval', async (context) => {
  const store = await openEmbedded(context);
  const { text, key } = await plantKey(store);
  const { verify, noted } = verifierOf(store);
  const first = good(await verify(text));
  first.onUse?.(now);
  first.onUse?.(now + 59_999);
  first.onUse?.(now + 60_000);
  assert.deepEqual(noted, [
    [key.id, now],
    [key.id, now + 60_000],
  ]);
});
