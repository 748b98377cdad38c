/** Sessions over both engines: opened, refreshed, seen and ended. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { auditTable, sessionsTable } from '../../../src/accounts/account-tables.ts';
import { sessionKeptSeconds } from '../../../src/accounts/sessions/sessions.ts';
import { ownerField } from '../../../src/model/field.ts';
import type { Store } from '../../../src/store/store.ts';
import { embeddedOnly, engines, openEmbedded } from '../../harness/stores.ts';
import {
  cookieOf,
  dayMs,
  good,
  minuteMs,
  putUser,
  refused,
  removeUser,
  start,
  startProcess,
} from './fixture.ts';

const ada = { id: 'usr_01jg0000000000000000000000' };

function sessionsOf(store: Store, user: string) {
  return store.count(sessionsTable, { op: 'eq', field: ownerField, value: user });
}

async function twoProcesses([one, other]: readonly [Store, Store]) {
  const user = await putUser(one, ada);
  return { one, other, user, here: await startProcess(one), there: await startProcess(other) };
}

async function oneProcess(context: TestContext, given: Parameters<typeof startProcess>[2] = {}) {
  const store = await openEmbedded(context);
  const clock = { now: start };
  const user = await putUser(store, ada);
  return { store, clock, user, process: await startProcess(store, clock, given) };
}

for (const [engine, open] of engines) {
  test(`${engine}: a login gives a token, a refresh token and a cookie that are good on every process`, async (context) => {
    const [one, other] = await open(context);
    const user = await putUser(one, { ...ada, roles: ['clerk'], tenant: 'north' });
    const here = await startProcess(one);
    const there = await startProcess(other);
    const { session, content, fields } = await here.login(user, true);
    assert.match(session, /^ses_[0-9a-z]{26}$/);
    assert.equal(content.expiresIn, 900);
    assert.deepEqual(content.user, { id: user.id, email: user.email });
    for (const process of [here, there]) {
      const byToken = await good(process.sessions.verifyToken(content.token));
      assert.equal(byToken.scheme, 'token');
      assert.equal(byToken.session, session);
      assert.equal(byToken.expiresAt, start + 15 * minuteMs);
      const byCookie = await good(process.sessions.verifyCookie(cookieOf(fields)));
      assert.equal(byCookie.scheme, 'session-cookie');
      assert.equal(byCookie.session, session);
      for (const { principal, basis } of [byToken, byCookie]) {
        assert.equal(principal.id, user.id);
        assert.equal(principal.tenant, 'north');
        assert.deepEqual([...principal.roles], ['clerk']);
        assert.deepEqual([...principal.scopes], ['read', 'write']);
        assert.deepEqual(
          basis.map(({ table }) => table),
          ['sessions', 'users'],
        );
      }
    }
    const refreshed = await there.refresh(content.refreshToken, null);
    assert.ok(refreshed.ok);
    for (const process of [here, there]) await process.keys.close();
  });

  test(`${engine}: the end of a session kills its token, its refresh token and its cookie at once on every process`, async (context) => {
    const { user, here, there } = await twoProcesses(await open(context));
    const ended = await here.login(user, true);
    const left = await here.login(user, true);
    await good(there.sessions.verifyToken(ended.content.token));
    await here.logout(ended.session);
    for (const process of [there, here]) {
      await refused(process.sessions.verifyToken(ended.content.token));
      await refused(process.sessions.verifyCookie(cookieOf(ended.fields)));
      assert.deepEqual(await process.refresh(ended.content.refreshToken, null), { ok: false });
      await good(process.sessions.verifyToken(left.content.token));
      await good(process.sessions.verifyCookie(cookieOf(left.fields)));
    }
    assert.deepEqual(await here.sessions.end(ended.session), [], 'what has ended needs no end');
    for (const process of [here, there]) await process.keys.close();
  });

  test(`${engine}: a refresh token works once, and its reuse ends the session and is audited`, async (context) => {
    const { user, here, there } = await twoProcesses(await open(context));
    const { session, content, fields } = await here.login(user, true);
    const second = await there.refresh(content.refreshToken, null);
    assert.ok(second.ok);
    assert.notEqual(second.content.refreshToken, content.refreshToken);
    await good(here.sessions.verifyToken(second.content.token));
    await good(here.sessions.verifyToken(content.token));
    assert.deepEqual(await here.refresh(content.refreshToken, { address: '192.0.2.1' }), {
      ok: false,
    });
    for (const process of [here, there]) {
      assert.deepEqual(await process.refresh(second.content.refreshToken, null), { ok: false });
      await refused(process.sessions.verifyToken(second.content.token));
      await refused(process.sessions.verifyToken(content.token));
      await refused(process.sessions.verifyCookie(cookieOf(fields)));
    }
    const reused = here.facts.filter(({ type }) => type === 'session.reused');
    assert.deepEqual(reused, [
      {
        type: 'session.reused',
        actor: null,
        subject: session,
        address: '192.0.2.1',
        detail: { user: user.id },
      },
    ]);
    for (const process of [here, there]) await process.keys.close();
  });

  test(`${engine}: of two refreshes at the same moment one wins, and the session ends`, async (context) => {
    const { one, user, here, there } = await twoProcesses(await open(context));
    for (let round = 0; round < 10; round += 1) {
      const { session, content } = await here.login(user);
      const both = await Promise.all([
        here.refresh(content.refreshToken, null),
        there.refresh(content.refreshToken, null),
      ]);
      assert.equal(both.filter(({ ok }) => ok).length, 1);
      assert.equal(await one.read(sessionsTable, session), undefined);
    }
    assert.equal([...here.facts, ...there.facts].filter(({ type }) => type === 'session.reused').length, 10);
    for (const process of [here, there]) await process.keys.close();
  });

  test(`${engine}: nothing of a disabled or deleted account is good, and a changed role counts at once`, async (context) => {
    const { one, other, user, here, there } = await twoProcesses(await open(context));
    const { content, fields } = await here.login(user, true);
    await putUser(other, { ...ada, roles: ['administrator'] });
    const { principal } = await good(here.sessions.verifyToken(content.token));
    assert.ok(principal.scopes.has('admin'));
    await putUser(other, { ...ada, disabled: true });
    for (const process of [here, there]) {
      await refused(process.sessions.verifyToken(content.token));
      await refused(process.sessions.verifyCookie(cookieOf(fields)));
      assert.deepEqual(await process.refresh(content.refreshToken, null), { ok: false });
    }
    await putUser(one, ada);
    await good(there.sessions.verifyCookie(cookieOf(fields)));
    await removeUser(one, user.id);
    for (const process of [here, there]) {
      await refused(process.sessions.verifyToken(content.token));
      await refused(process.sessions.verifyCookie(cookieOf(fields)));
      assert.deepEqual(await process.refresh(content.refreshToken, null), { ok: false });
      await process.keys.close();
    }
  });
}

for (const [engine, open] of embeddedOnly) {
  test(`${engine}: ends all sessions of an account but one, over several pages, and none of another account`, async (context) => {
    const [one] = await open(context);
    const user = await putUser(one, ada);
    const grace = await putUser(one, { id: 'usr_01jg0000000000000000000001' });
    const process = await startProcess(one, undefined, { sessionsPerAccountMax: 1000 });
    const kept = await process.login(user);
    for (let at = 0; at < 120; at += 1) await process.login(user);
    await process.login(grace);
    const ends = await process.sessions.endOfUser(user.id, kept.session);
    assert.equal(ends.length, 120);
    assert.equal((await one.commit({ changes: ends, events: [] })).outcome, 'committed');
    assert.equal(await sessionsOf(one, user.id), 1);
    assert.equal(await sessionsOf(one, grace.id), 1);
    await good(process.sessions.verifyToken(kept.content.token));
    const rest = await process.sessions.endOfUser(user.id, null);
    assert.deepEqual(
      rest.map(({ id }) => id),
      [kept.session],
    );
    await process.keys.close();
  });

  test(`${engine}: a login beyond sessionsPerAccountMax ends the oldest session in its own unit`, async (context) => {
    const [one] = await open(context);
    const user = await putUser(one, ada);
    const clock = { now: start };
    const process = await startProcess(one, clock, { sessionsPerAccountMax: 3 });
    const opened = [];
    for (let at = 0; at < 5; at += 1) {
      clock.now += 1000;
      opened.push(await process.login(user));
    }
    assert.equal(await sessionsOf(one, user.id), 3);
    for (const [at, { content }] of opened.entries()) {
      const verdict = process.sessions.verifyToken(content.token);
      await (at < 2 ? refused(verdict) : good(verdict));
    }
    await process.keys.close();
  });
}

test('a wrong secret of a refresh token is refused and ends nothing where the family is not known either', async (context) => {
  const { user, process } = await oneProcess(context);
  const { session, content } = await process.login(user);
  const [, family = '', secret = ''] = content.refreshToken.slice('rt_'.length).split('.');
  const guess = 'A'.repeat(43);
  for (const token of [
    `rt_${session}.${guess}.${secret}`,
    `rt_${session}.${guess}.${guess}`,
    `rt_${session}.${family}.${secret}x`,
    `rt_${session}.${family}`,
    `rt_ses_01jg0000000000000000000009.${family}.${secret}`,
    content.refreshToken.toUpperCase(),
    ` ${content.refreshToken}`,
    content.token,
    '',
    'rt_',
    `rt_${'x'.repeat(100_000)}`,
  ]) {
    assert.deepEqual(await process.refresh(token, null), { ok: false });
  }
  assert.ok((await process.refresh(content.refreshToken, null)).ok);
  assert.deepEqual(
    process.facts.filter(({ type }) => type === 'session.reused'),
    [],
  );
  await process.keys.close();
});

test('a refresh token is good until the last moment of refreshTokenSeconds', async (context) => {
  const { store, user, clock, process } = await oneProcess(context, { refreshTokenSeconds: 100 });
  const [first, second] = [await process.login(user), await process.login(user)];
  clock.now = start + 100_000 - 1;
  const refreshed = await process.refresh(first.content.refreshToken, null);
  assert.ok(refreshed.ok);
  clock.now = start + 100_000;
  assert.deepEqual(await process.refresh(second.content.refreshToken, null), { ok: false });
  assert.ok(await store.read(sessionsTable, second.session), 'too late is not reuse');
  clock.now = start + 200_000 - 2;
  assert.ok(
    (await process.refresh(refreshed.content.refreshToken, null)).ok,
    'the next one has its own time',
  );
  await process.keys.close();
});

test('a session ends after sessionSeconds however busy it is', async (context) => {
  const { user, clock, process } = await oneProcess(context, {
    sessionSeconds: 1000,
    refreshTokenSeconds: 700,
    sessionIdleSeconds: 600,
  });
  const { content, fields } = await process.login(user, true);
  assert.equal(content.expiresIn, 900);
  clock.now = start + 400_000;
  const refreshed = await process.refresh(content.refreshToken, null);
  assert.ok(refreshed.ok);
  assert.equal(refreshed.content.expiresIn, 600, 'a token does not outlive its session');
  clock.now = start + 999_999;
  const atEdge = await good(process.sessions.verifyCookie(cookieOf(fields)));
  assert.equal(atEdge.expiresAt, start + 1_000_000);
  const byToken = await good(process.sessions.verifyToken(refreshed.content.token));
  assert.equal(byToken.expiresAt, start + 1_000_000);
  const third = await process.refresh(refreshed.content.refreshToken, null);
  assert.ok(third.ok);
  clock.now = start + 1_000_000;
  await refused(process.sessions.verifyCookie(cookieOf(fields)));
  await refused(process.sessions.verifyToken(refreshed.content.token));
  await refused(process.sessions.verifyToken(third.content.token));
  assert.deepEqual(await process.refresh(third.content.refreshToken, null), { ok: false });
  await process.keys.close();
});

test('a cookie ends after sessionIdleSeconds without a request, and a request keeps it', async (context) => {
  const { store, user, clock, process } = await oneProcess(context, { sessionIdleSeconds: 1000 });
  const idle = cookieOf((await process.login(user, true)).fields);
  const busy = await process.login(user, true);
  const cookie = cookieOf(busy.fields);
  const rev = async () => (await store.read(sessionsTable, busy.session))?.rev;
  const before = await rev();
  clock.now = start + 99_999;
  const verdict = await good(process.sessions.verifyCookie(cookie));
  verdict.onUse?.(clock.now);
  await process.sessions.close();
  assert.equal(await rev(), before, 'a sight within a tenth of the idle time is not written');
  clock.now = start + 100_000;
  for (let use = 0; use < 100; use += 1) verdict.onUse?.(clock.now);
  await process.sessions.close();
  const after = await rev();
  assert.notEqual(after, before);
  clock.now = start + 1_000_000 - 1;
  await good(process.sessions.verifyCookie(idle));
  clock.now = start + 1_000_000;
  await refused(process.sessions.verifyCookie(idle));
  const kept = await good(process.sessions.verifyCookie(cookie));
  assert.equal(kept.expiresAt, start + 1_100_000);
  clock.now = start + 1_100_000;
  await refused(process.sessions.verifyCookie(cookie));
  await process.keys.close();
});

for (const times of [
  { accessTokenSeconds: 10, refreshTokenSeconds: 50, sessionIdleSeconds: 100, sessionSeconds: 1000 },
  { accessTokenSeconds: 10, refreshTokenSeconds: 100, sessionIdleSeconds: 50, sessionSeconds: 1000 },
  { accessTokenSeconds: 100, refreshTokenSeconds: 10, sessionIdleSeconds: 50, sessionSeconds: 1000 },
  { accessTokenSeconds: 300, refreshTokenSeconds: 200, sessionIdleSeconds: 500, sessionSeconds: 100 },
]) {
  test(`retention removes a session when nothing of it can be good any more, and not before: ${JSON.stringify(times)}`, async (context) => {
    const { store, user, clock, process } = await oneProcess(context, times);
    const { session, content, fields } = await process.login(user, true);
    const purge = () => store.purge(sessionsTable, clock.now - sessionKeptSeconds(times) * 1000, 10);
    clock.now = start + 100_000 - 1;
    assert.equal(await purge(), 0);
    const verdicts = [
      await process.sessions.verifyToken(content.token),
      await process.sessions.verifyCookie(cookieOf(fields)),
    ];
    const refreshed = await process.refresh(content.refreshToken, null);
    assert.ok(refreshed.ok || verdicts.some((verdict) => 'principal' in verdict));
    clock.now = (await store.read(sessionsTable, session))?.updatedAt ?? 0;
    clock.now += 100_001;
    assert.equal(await purge(), 1);
    await process.keys.close();
  });
}

test('a sight that is written late never brings an ended session back', async (context) => {
  const { store, user, clock, process } = await oneProcess(context);
  const { session, fields } = await process.login(user, true);
  const verdict = await good(process.sessions.verifyCookie(cookieOf(fields)));
  await process.logout(session);
  clock.now += dayMs / 2;
  verdict.onUse?.(clock.now);
  await process.sessions.close();
  assert.equal(await store.read(sessionsTable, session), undefined);
  assert.ok(!process.observed.some(({ kind }) => kind === 'store-failed'));
  await process.keys.close();
});

test('cookies carry the attributes of §5.2, and no login reuses what a client brought', async (context) => {
  const { user, process } = await oneProcess(context);
  const [first, second] = [await process.login(user, true), await process.login(user, true)];
  assert.match(
    first.fields.join(': '),
    /^Set-Cookie: __Host-comity_session=ses_[0-9a-z]{26}\.[\w-]{43}; Path=\/; Max-Age=2592000; HttpOnly; Secure; SameSite=Lax$/,
  );
  assert.notEqual(cookieOf(first.fields), cookieOf(second.fields));
  assert.deepEqual(process.sessions.clearCookie, [
    'Set-Cookie',
    '__Host-comity_session=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax',
  ]);
  assert.deepEqual((await process.login(user)).fields, []);
  await process.keys.close();
});

test('a cookie with another secret, of another session or of a session without one is refused', async (context) => {
  const { user, process } = await oneProcess(context);
  const [first, second] = [await process.login(user, true), await process.login(user, true)];
  const without = await process.login(user);
  const secret = cookieOf(first.fields).split('.')[1] ?? '';
  for (const value of [
    `${first.session}.${'A'.repeat(43)}`,
    `${second.session}.${secret}`,
    `${without.session}.${secret}`,
    `${first.session}.`,
    first.session,
    secret,
    '',
    `${cookieOf(first.fields)}x`,
    `"${cookieOf(first.fields)}"`,
    `ses_01jg0000000000000000000009.${secret}`,
  ]) {
    await refused(process.sessions.verifyCookie(value));
  }
  await good(process.sessions.verifyCookie(cookieOf(first.fields)));
  await process.keys.close();
});

test('no secret of a session stands in the store', async (context) => {
  const { store, user, process } = await oneProcess(context);
  const { session, content, fields } = await process.login(user, true);
  const refreshed = await process.refresh(content.refreshToken, null);
  assert.ok(refreshed.ok);
  const row = await store.read(sessionsTable, session);
  const secrets = [content.refreshToken, refreshed.content.refreshToken, cookieOf(fields)]
    .flatMap((credential) => credential.split('.').slice(1))
    .concat(content.token, refreshed.content.token);
  assert.equal(secrets.length, 7);
  for (const secret of secrets) assert.ok(!row?.doc.includes(secret));
  await process.refresh(content.refreshToken, null);
  const entry = process.facts.find(({ type }) => type === 'session.reused');
  for (const secret of secrets) assert.ok(!JSON.stringify(entry).includes(secret));
  assert.equal(await store.count(auditTable, { op: 'always' }), 1);
  await process.keys.close();
});
