/** Tokens of the portal (§5.10) to verdicts, on both stores. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import {
  createPortalVerifier,
  makePortalToken,
  portalLinksCollection,
  portalSecretChange,
  portalSecretsRetention,
  validToken,
} from '../../src/accounts/portal/portal-verifier.ts';
import { createFactorRule } from '../../src/accounts/second-factor/factor-row.ts';
import { keptRow, type Store } from '../../src/store/store.ts';
import { engines } from '../harness/stores.ts';

const now = Date.parse('2026-08-01T09:30:00.000Z');
const endsAt = now + 1000;

async function plant(store: Store, kind: 'link' | 'session'): Promise<string> {
  const id = `plk_${randomBytes(8).toString('hex')}`;
  const token = makePortalToken(kind, randomBytes);
  const time = new Date(now).toISOString();
  const link = {
    id,
    tenant: 'acme',
    expiresAt: new Date(endsAt).toISOString(),
    createdAt: time,
    updatedAt: time,
  };
  const next = keptRow(JSON.stringify(link), 'administrator', now, now);
  await store.commit({
    changes: [
      { table: portalLinksCollection.name, id, expect: { absent: true }, next },
      portalSecretChange(token, { kind, link: id }, now, endsAt),
    ],
    events: [],
  });
  return token;
}

for (const [engine, open] of engines) {
  test(`${engine}: a token is valid until the millisecond at which its link ends`, async (context) => {
    const [store, other] = await open(context);
    let at = now;
    const options = { store: other, clock: () => at, factorRule: createFactorRule(other, 'optional') };
    const verify = createPortalVerifier(options);
    const [session, link] = [await plant(store, 'session'), await plant(store, 'link')];
    at = endsAt - 1;
    const good = await verify(session);
    assert.ok('principal' in good);
    assert.deepEqual(
      [good.principal.id, good.principal.tenant, [...good.principal.scopes], good.expiresAt],
      ['tenant|acme', 'acme', ['read', 'webhooks'], endsAt],
    );
    assert.ok((await validToken(options, link, 'link')) !== undefined);
    assert.equal(await validToken(options, link, 'session'), undefined);
    at = endsAt;
    assert.deepEqual(await verify(session), { problem: 'invalid_token' });
    assert.equal(await validToken(options, link, 'link'), undefined);
    assert.ok(portalSecretsRetention.seconds > 0);
  });
}
