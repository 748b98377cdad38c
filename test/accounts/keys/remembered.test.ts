/** A key that was verified once, seen from another process: dead at once when it is revoked, and unharmed when its use is noted. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { test } from 'node:test';
import { keySecretsTable, keysTable, usersTable } from '../../../src/accounts/account-tables.ts';
import { createKeyUses, createKeyVerifier } from '../../../src/accounts/keys/key-verifier.ts';
import { createFactorRule } from '../../../src/accounts/second-factor/factor-row.ts';
import { createVerifiedCredentials } from '../../../src/accounts/verified-credentials.ts';
import type { Store } from '../../../src/store/store.ts';
import { servicesOver } from '../../harness/services-over.ts';
import { engines } from '../../harness/stores.ts';
import { mustRead, now, plantKey, plantUser, remove, rewrite } from './planted.ts';

/** What a process does with a key: whether it holds at this use, and whether it had to be verified for that. */
function startProcess(store: Store) {
  const observe = () => assert.fail('the store is there');
  const uses = createKeyUses(servicesOver(store, { observe, settings: { keyUseSeconds: 60 } }), 1);
  const clock = () => now;
  const factorRule = createFactorRule(store, 'optional');
  const verify = createKeyVerifier(
    { store, clock, uses, factorRule },
    { hash: () => hash('sha256', 'sk_administrator', 'buffer'), isKept: false },
  );
  const cache = createVerifiedCredentials(store, clock, 1_000_000);
  let verified = 0;
  return {
    verifications: () => verified,
    async holds(text: string): Promise<boolean> {
      const recalled = cache.recall(text);
      if (recalled !== undefined && (await recalled.confirmed) !== false) return true;
      verified += 1;
      const unverified = { name: text, verify: () => verify(text), repeatable: true, sharedBy: '' };
      return 'principal' in (await cache.verify(unverified));
    },
    async stop() {
      await uses.close();
      cache.close();
    },
  };
}

for (const [engine, open] of engines) {
  test(`${engine}: a key is dead on every process with the commit that revoked it, and with that of its account`, async (context) => {
    const [store, other] = await open(context);
    const process = startProcess(other);
    const user = await plantUser(store);
    const [revoked, disabled] = [await plantKey(store), await plantKey(store, { owner: user.id })];
    for (const { text } of [revoked, disabled, revoked, disabled]) assert.ok(await process.holds(text));
    assert.equal(process.verifications(), 2);
    await remove(store, keySecretsTable, revoked.digest);
    assert.ok(!(await process.holds(revoked.text)));
    await rewrite(store, usersTable, user.id, { disabled: true });
    assert.ok(!(await process.holds(disabled.text)));
    await process.stop();
  });

  test(`${engine}: noting a use makes no process verify the key again`, async (context) => {
    const [store, other] = await open(context);
    const process = startProcess(other);
    const { text, key } = await plantKey(store);
    assert.ok(await process.holds(text));
    await rewrite(store, keysTable, key.id, { lastUsedAt: new Date(now).toISOString() });
    assert.ok((await mustRead(other, keysTable, key.id)).doc.includes('lastUsedAt'));
    assert.ok(await process.holds(text));
    assert.equal(process.verifications(), 1);
    await process.stop();
  });
}
