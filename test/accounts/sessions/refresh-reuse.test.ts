/** Refresh tokens that were just exchanged, or come with the Idempotency-Key of their exchange: the same pair, on both engines. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sessionsTable } from '../../../src/accounts/account-tables.ts';
import type { Refreshed } from '../../../src/accounts/refresh.ts';
import { engines } from '../../harness/stores.ts';
import { good, putUser, removeUser, start, startProcess } from './fixture.ts';

const ada = { id: 'usr_01jg0000000000000000000000' };
const reuseMs = 10_000;

/** What a client keeps of an answer. */
function pairOf(refreshed: Refreshed) {
  assert.ok(refreshed.ok);
  const { token, refreshToken, expiresIn } = refreshed.content;
  return { token, refreshToken, expiresIn };
}

for (const [engine, open] of engines) {
  test(`${engine}: a refresh token that was just exchanged is answered with the current pair, on every process`, async (context) => {
    const [one, other] = await open(context);
    const clock = { now: start };
    const user = await putUser(one, ada);
    const given = { refreshReuseSeconds: reuseMs / 1000 };
    const here = await startProcess(one, clock, given);
    const there = await startProcess(other, clock, given);
    const use = async (token: string, key?: string) => pairOf(await there.refresh(token, null, key));
    const isRefused = async (token: string, key?: string) =>
      assert.deepEqual(await here.refresh(token, null, key), { ok: false });
    const openFirst = async () => (await here.login(user)).content.refreshToken;

    const both = await openFirst();
    const pairs = await Promise.all([here, there, here, there].map(({ refresh }) => refresh(both, null)));
    const [first] = pairs.map(pairOf);
    for (const pair of pairs) assert.deepEqual(pairOf(pair), first, 'at the same moment');
    await good(here.sessions.verifyToken(String(first?.token)));

    const n = await openFirst();
    const n1 = await use(n);
    clock.now += reuseMs - 1;
    assert.deepEqual(
      await use(n),
      { ...n1, expiresIn: 891 },
      'at the last moment, with the time that is left',
    );
    clock.now += 1;
    await isRefused(n);
    await isRefused(n1.refreshToken);
    assert.equal(here.facts.filter(({ type }) => type === 'session.reused').length, 1, 'then it is reuse');

    const m = await openFirst();
    const m1 = await use(m);
    const m2 = await use(m1.refreshToken);
    for (const token of [m, m1.refreshToken, m])
      assert.deepEqual(await use(token), m2, 'also of a later exchange');
    let last = m2.refreshToken;
    for (let round = 0; round < 3; round += 1) last = (await use(last)).refreshToken;
    await isRefused(m);
    await isRefused(last);

    const k = await openFirst();
    const k1 = await use(k, 'lost');
    clock.now += 3_600_000;
    assert.deepEqual(await use(k, 'lost'), { ...k1, expiresIn: 0 }, 'with its Idempotency-Key');
    await isRefused(k, 'other');
    await isRefused(k1.refreshToken);

    for (const end of [
      (session: string) => here.logout(session),
      () => putUser(one, { ...ada, disabled: true }),
      () => removeUser(one, user.id),
    ]) {
      await putUser(one, ada);
      const { session, content } = await here.login(user);
      await use(content.refreshToken, 'key');
      await end(session);
      await isRefused(content.refreshToken, 'key');
    }
    for (const process of [here, there]) await process.keys.close();
  });

  test(`${engine}: after that time, a token with its Idempotency-Key is answered until the pair that replaced it is exchanged`, async (context) => {
    const [one] = await open(context);
    const clock = { now: start };
    const user = await putUser(one, ada);
    const here = await startProcess(one, clock, { refreshReuseSeconds: reuseMs / 1000 });
    const use = async (token: string, key?: string) => pairOf(await here.refresh(token, null, key));
    const { refreshToken: z } = (await here.login(user)).content;
    const z1 = await use(z, 'first');
    const z2 = await use(z1.refreshToken, 'second');
    assert.deepEqual(await use(z, 'first'), z2, 'within the time, also of a later exchange');
    clock.now += reuseMs;
    assert.deepEqual(await use(z1.refreshToken, 'second'), { ...z2, expiresIn: 890 });
    const z3 = await use(z2.refreshToken);
    assert.deepEqual(await use(z2.refreshToken), z3);
    for (const [token, key] of [[z1.refreshToken, 'second'], [z, 'first'], [z3.refreshToken]] as const)
      assert.deepEqual(await here.refresh(token, null, key), { ok: false });
    assert.equal(here.facts.filter(({ type }) => type === 'session.reused').length, 1);
    await here.keys.close();
  });

  test(`${engine}: the stored session opens nothing without the exchanged token`, async (context) => {
    const [one] = await open(context);
    const user = await putUser(one, ada);
    const process = await startProcess(one, { now: start }, { refreshReuseSeconds: 10 });
    const { session, content } = await process.login(user);
    const next = pairOf(await process.refresh(content.refreshToken, null));
    const row = await one.read(sessionsTable, session);
    for (const secret of [next.token, ...next.refreshToken.split('.')]) {
      assert.ok(secret.startsWith('rt_') || !row?.doc.includes(secret), secret);
    }
    await process.keys.close();
  });
}
