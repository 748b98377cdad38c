/** Hosts that a key may tunnel to, besides what holds for its owner (§4.10). */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { test } from 'node:test';
import { keysCollection, keysTable } from '../../../src/accounts/account-tables.ts';
import { administrator } from '../../../src/accounts/admin-key.ts';
import { exceeds, grantKey } from '../../../src/accounts/keys/grant.ts';
import type { KeyTunnel } from '../../../src/accounts/keys/key-rows.ts';
import { createKeyVerifier } from '../../../src/accounts/keys/key-verifier.ts';
import { createFactorRule } from '../../../src/accounts/second-factor/factor-row.ts';
import type { Good } from '../../../src/accounts/verdict.ts';
import { createVerifiedCredentials } from '../../../src/accounts/verified-credentials.ts';
import { authenticated, type Known, type Scope } from '../../../src/model/principal.ts';
import type { Store } from '../../../src/store/store.ts';
import { engines, openEmbedded } from '../../harness/stores.ts';
import { knownAs } from '../../resources/known.ts';
import { now, plantKey, plantUser, remove, type Wish } from './planted.ts';

const operator = knownAs(administrator);
const wide: KeyTunnel = { mode: 'enforce', allow: ['*.example.com'], deny: [] };
const narrow: KeyTunnel = { mode: 'enforce', allow: ['a.example.com'], deny: ['b.example.com'] };
const reporting: KeyTunnel = { mode: 'report', deny: ['*.example.net'] };

function verifierOf(store: Store) {
  const uses = { intervalMs: 60_000, note: () => undefined };
  return createKeyVerifier(
    { store, clock: () => now, uses, factorRule: createFactorRule(store, 'optional') },
    { hash: () => hash('sha256', 'sk_administrator', 'buffer'), isKept: false },
  );
}

async function verified(store: Store, text: string): Promise<Good> {
  const verdict = await verifierOf(store)(text);
  assert.ok('principal' in verdict, JSON.stringify(verdict));
  return verdict;
}

const tunnelKey = (wish: Wish): Wish => ({ scopes: ['read', 'write', 'tunnel'], ...wish });

for (const [engine, open] of engines) {
  test(`${engine}: the list of a key is known with it, and so are those of the keys that it was made with`, async (context) => {
    const [store, other] = await open(context);
    const user = await plantUser(store, { scopes: ['read', 'write', 'tunnel'] });
    const wish = (own: Wish) => tunnelKey({ owner: user.id, ...own });
    const first = await plantKey(store, wish({ tunnel: wide }));
    const second = await plantKey(store, wish({ madeBy: first.key.id }));
    const third = await plantKey(store, wish({ madeBy: second.key.id, tunnel: reporting }));
    const { makers, hosts } = await verified(other, third.text);
    assert.deepEqual(makers, [second.key.id, first.key.id]);
    assert.deepEqual(hosts, [
      { mode: 'report', allow: null, deny: ['*.example.net'], name: `the list of ${third.key.id}` },
      { ...wide, name: `the list of ${first.key.id}` },
    ]);
    assert.deepEqual((await verified(other, second.text)).hosts, [
      { ...wide, name: `the list of ${first.key.id}` },
    ]);
    const { hosts: none, makers: nobody } = await verified(other, (await plantKey(store, wish({}))).text);
    assert.deepEqual([none, nobody], [undefined, undefined]);
    await remove(store, keysTable, first.key.id);
    assert.deepEqual(await verifierOf(other)(third.text), { problem: 'invalid_api_key' });
  });
}

test('a credential that is remembered keeps its lists', async (context) => {
  const store = await openEmbedded(context);
  const { text, key } = await plantKey(store, tunnelKey({ tunnel: narrow }));
  const cache = createVerifiedCredentials(store, () => now, 1_000_000);
  context.after(() => cache.close());
  const known = await cache.verify({ name: text, verify: () => verifierOf(store)(text), repeatable: true });
  assert.ok('scheme' in known);
  for (const each of [known, cache.recall(text)]) {
    assert.deepEqual(each?.hosts, [{ ...narrow, name: `the list of ${key.id}` }]);
    assert.equal(each?.makers, undefined);
  }
});

async function granted(store: Store, scopes: readonly Scope[], tunnel: Partial<KeyTunnel>) {
  const result = await grantKey(store, operator, { kind: 'secret', scopes, tunnel }, now);
  return result.ok ? result.tunnel : result.errors;
}

test('a list is kept in the spelling that hosts are compared in, with the mode that was meant', async (context) => {
  const store = await openEmbedded(context);
  const wanted = { allow: ['*.Example.COM.', '[2001:DB8::0:1]'], deny: ['BÜCHER.example'] };
  assert.deepEqual(await granted(store, ['tunnel'], wanted), {
    mode: 'enforce',
    allow: ['*.example.com', '2001:db8::1'],
    deny: ['xn--bcher-kva.example'],
  });
  assert.deepEqual(await granted(store, ['tunnel'], { mode: 'report' }), { mode: 'report', deny: [] });
  assert.deepEqual(await granted(store, ['tunnel'], { allow: [] }), { mode: 'enforce', allow: [], deny: [] });
});

test('refuses a list of what are no hosts, and one for a key that cannot tunnel', async (context) => {
  const store = await openEmbedded(context);
  const errors = await granted(store, ['read'], { allow: ['a.example', 'https://a.example'], deny: ['*.*'] });
  assert.deepEqual(Array.isArray(errors) ? errors.map(({ pointer }) => pointer) : errors, [
    '/tunnel',
    '/tunnel/deny/0',
    '/tunnel/allow/1',
  ]);
});

test('a key with a list is not given the text of one that it does not hold for', async (context) => {
  const store = await openEmbedded(context);
  const principal = authenticated({ id: 'usr_a', scopes: ['read', 'write', 'tunnel'] });
  const listed = await plantKey(store, tunnelKey({ owner: 'usr_a', tunnel: narrow }));
  const hosts = [{ ...narrow, allow: narrow.allow ?? null }];
  const caller: Known = { ...knownAs(principal), key: listed.key.id, hosts };
  const free = await plantKey(store, tunnelKey({ owner: 'usr_a' }));
  const reader = await plantKey(store, { owner: 'usr_a', scopes: ['read', 'write'] });
  const made = await plantKey(store, tunnelKey({ owner: 'usr_a', madeBy: listed.key.id }));
  const grandchild = await plantKey(store, tunnelKey({ owner: 'usr_a', madeBy: made.key.id }));
  const ofOther = await plantKey(store, tunnelKey({ owner: 'usr_a', madeBy: free.key.id, tunnel: narrow }));
  assert.equal(await exceeds(store, caller, free.key), true);
  assert.equal(await exceeds(store, caller, ofOther.key), true);
  for (const { key } of [reader, listed, made, grandchild]) {
    assert.equal(await exceeds(store, caller, key), false, key.id);
  }
  const unlisted: Known = { ...knownAs(principal), key: free.key.id };
  assert.equal(await exceeds(store, unlisted, listed.key), false);
});

test('what a key may tunnel to is fixed when it is made, as its scopes are', () => {
  assert.ok(keysCollection.unpatchable.has('tunnel'));
});
