/** What a new or changed key may hold at most. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AccountParts } from '../../../src/accounts/account-parts.ts';
import { administrator } from '../../../src/accounts/admin-key.ts';
import { exceeds, expiryOf, grantKey } from '../../../src/accounts/keys/grant.ts';
import { createKeyOperation } from '../../../src/accounts/keys/key-routes.ts';
import { authenticated, type Known, type Scope } from '../../../src/model/principal.ts';
import type { Served } from '../../../src/resources/collection/served-collection.ts';
import { servicesOver } from '../../harness/services-over.ts';
import { openEmbedded } from '../../harness/stores.ts';
import { askOf } from '../../resources/ask.ts';
import { knownAs } from '../../resources/known.ts';
import { iso, now, plantKey } from './planted.ts';

const operator = knownAs(administrator);

function callerWith(scopes: readonly Scope[], key: string | null = null): Known {
  return { ...knownAs(authenticated({ id: 'usr_someone', scopes })), key };
}

test('a secret key has read and write unless others are asked for, as far as its maker has them', async (context) => {
  const store = await openEmbedded(context);
  const scopesFor = async (known: Known, scopes?: readonly Scope[]) => {
    const wanted = scopes === undefined ? {} : { scopes };
    const granted = await grantKey(store, known, { kind: 'secret', ...wanted }, now);
    return granted.ok ? granted.scopes : granted.errors;
  };
  assert.deepEqual(await scopesFor(operator), ['read', 'write']);
  assert.deepEqual(await scopesFor(callerWith(['write'])), ['write']);
  assert.deepEqual(await scopesFor(operator, ['tunnel', 'admin']), ['tunnel', 'admin']);
  assert.deepEqual(await scopesFor(operator, []), []);
  assert.deepEqual(await scopesFor(callerWith(['read', 'write']), ['read', 'admin', 'tunnel']), [
    { pointer: '/scopes', message: 'must be scopes of the caller, which lacks admin, tunnel' },
  ]);
});

test('a publishable key reads, whoever asks for more', async (context) => {
  const store = await openEmbedded(context);
  const granted = await grantKey(store, operator, { kind: 'publishable' }, now);
  assert.deepEqual(granted, { ok: true, scopes: ['read'], expiresAt: undefined });
  const refused = await grantKey(store, operator, { kind: 'publishable', scopes: ['read', 'write'] }, now);
  assert.deepEqual(refused, {
    ok: false,
    errors: [{ pointer: '/scopes', message: 'must be only "read" for a publishable key' }],
  });
});

test('an end lies ahead by a millisecond at least, and not behind that of the key that asks', () => {
  assert.deepEqual(expiryOf(iso(now + 1), now, undefined), { endsAt: now + 1 });
  assert.deepEqual(expiryOf(iso(now + 1), now, now + 1), { endsAt: now + 1 });
  assert.deepEqual(expiryOf(undefined, now, undefined), { endsAt: undefined });
  assert.deepEqual(expiryOf(undefined, now, now + 9), { endsAt: now + 9 });
  for (const [wanted, latest] of [
    [iso(now), undefined],
    [iso(now + 2), now + 1],
    ['no time', undefined],
  ] as const) {
    const expiry = expiryOf(wanted, now, latest);
    assert.equal('error' in expiry && expiry.error.pointer, '/expiresAt', wanted);
  }
});

test('tells every fault of a wish at once', async (context) => {
  const store = await openEmbedded(context);
  const wanted = { kind: 'secret', scopes: ['admin'], expiresAt: iso(now) } as const;
  const refused = await grantKey(store, callerWith(['read']), wanted, now);
  assert.deepEqual(refused.ok ? [] : refused.errors.map(({ pointer }) => pointer), ['/scopes', '/expiresAt']);
});

test('a key may be given the text of one that does as much or less, and ends as early or earlier', async (context) => {
  const store = await openEmbedded(context);
  const own = (await plantKey(store, { expiresAt: iso(now + 1000) })).key;
  const caller = callerWith(['read', 'write'], own.id);
  const like = async (wish: Parameters<typeof plantKey>[1]) => (await plantKey(store, wish)).key;
  assert.ok(!(await exceeds(store, caller, own)));
  assert.ok(!(await exceeds(store, caller, await like({ scopes: ['read'], expiresAt: iso(now + 1000) }))));
  assert.ok(await exceeds(store, caller, await like({ scopes: ['read'], expiresAt: iso(now + 1001) })));
  assert.ok(await exceeds(store, caller, await like({ scopes: ['read'] })));
  assert.ok(await exceeds(store, caller, await like({ scopes: ['admin'], expiresAt: iso(now + 10) })));
  assert.ok(!(await exceeds(store, callerWith(['read']), await like({ scopes: ['admin'] }))), 'no key asks');
});

test('refuses keys to principals of another issuer, who could keep them after it has shut them out', async () => {
  const { act } = createKeyOperation(servicesOver({}) as AccountParts, { path: '/keys' } as Served);
  const known: Known = { ...operator, scheme: 'issuer' };
  const result = await act?.(
    { ...askOf({}), known },
    { exists: true, visible: true, permitted: true },
    undefined,
  );
  assert.equal(result !== undefined && 'refused' in result && result.refused.code, 'forbidden');
});
