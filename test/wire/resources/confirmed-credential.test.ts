/**
 * A remembered credential on a store that other processes write to (§5.1: no cached authentication state is trusted): what stands may be
 * looked at while it is confirmed; nothing is said, read from the client or done before.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Identified } from '../../../src/kernel/resource.ts';
import type { Known } from '../../../src/model/principal.ts';
import { identify, openShop } from './shop-of-many.ts';

const notes = '/api/v1/notes';

/** Alice's credential, remembered: each use waits for the test to say whether it still holds. */
function remembered() {
  const uses: PromiseWithResolvers<boolean>[] = [];
  const waiting: (() => void)[] = [];
  let revoked = false;
  return {
    revoke: () => {
      revoked = true;
    },
    /** The use with this number, once there is one. */
    async use(number: number): Promise<PromiseWithResolvers<boolean>> {
      for (;;) {
        const found = uses[number];
        if (found !== undefined) return found;
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
    },
    get count() {
      return uses.length;
    },
    identify(authorization: string | undefined): Identified {
      const found = identify(authorization);
      if (authorization !== 'Bearer alice') return found;
      if (revoked) return { problem: 'invalid_token' };
      const use = Promise.withResolvers<boolean>();
      uses.push(use);
      for (const wake of waiting.splice(0)) wake();
      return { ...(found as Known), confirmed: use.promise };
    },
  };
}

test('answers a read once the credential is confirmed, and not before', async () => {
  const credential = remembered();
  const shop = await openShop({ identify: credential.identify });
  try {
    let answered = false;
    const read = shop.as('alice', 'GET', notes).finally(() => {
      answered = true;
    });
    const use = await credential.use(0);
    await pause(20);
    assert.equal(answered, false);
    use.resolve(true);
    assert.equal((await read).status, 200);
  } finally {
    await shop.stop();
  }
});

test('begins again when the credential was revoked meanwhile: the answer is 401, whatever stands', async () => {
  const credential = remembered();
  const shop = await openShop({ identify: credential.identify });
  try {
    for (const [method, path] of [
      ['GET', notes],
      ['GET', `${notes}/none`],
      ['HEAD', notes],
      ['DELETE', `${notes}/none`],
    ] as const) {
      const number = credential.count;
      const asked = shop.as('alice', method, path);
      (await credential.use(number)).resolve(false);
      // It is verified anew, and found to be good after all, then revoked for good.
      (await credential.use(number + 1)).resolve(true);
      assert.notEqual((await asked).status, 401, `${method} ${path}`);
    }
    const number = credential.count;
    const asked = shop.as('alice', 'GET', notes);
    const use = await credential.use(number);
    credential.revoke();
    use.resolve(false);
    const answer = await asked;
    assert.equal(answer.status, 401);
    assert.equal(answer.json().error, 'invalid token');
  } finally {
    await shop.stop();
  }
});

test('neither reads content nor writes before the credential is confirmed', async () => {
  const credential = remembered();
  const shop = await openShop({ identify: credential.identify });
  try {
    const headers = { Expect: '100-continue', 'Idempotency-Key': '"once"' };
    const write = shop.as('alice', 'POST', notes, { json: { text: 'too late' }, headers });
    const use = await credential.use(0);
    await pause(20);
    const before = await shop.as('root', 'GET', notes, { headers: { Prefer: 'count=exact' } });
    assert.equal(before.headers['x-total-count'], '0');
    credential.revoke();
    use.resolve(false);
    assert.equal((await write).status, 401);
    const after = await shop.as('root', 'GET', notes, { headers: { Prefer: 'count=exact' } });
    assert.equal(after.headers['x-total-count'], '0');
  } finally {
    await shop.stop();
  }
});

test('a store that cannot confirm is 503, not an answer on trust', async () => {
  const { StoreUnavailable } = await import('../../../src/store/store.ts');
  const credential = remembered();
  const shop = await openShop({ identify: credential.identify });
  try {
    const asked = shop.as('alice', 'GET', notes);
    (await credential.use(0)).reject(new StoreUnavailable('away', { retryAfterSeconds: 1 }));
    assert.equal((await asked).status, 503);
  } finally {
    await shop.stop();
  }
});
