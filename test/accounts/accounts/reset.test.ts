import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import test from 'node:test';
import { keysTable, mailCodesTable } from '../../../src/accounts/account-tables.ts';
import { keptRow } from '../../../src/store/store.ts';
import { embeddedOnly, engines, failing, openEmbedded } from '../../harness/stores.ts';
import { putUser, refused, start } from '../sessions/fixture.ts';
import { ada, address, codeOf, how, join, registered, startAccounts, wish } from './fixture.ts';

const email = 'ada@shop.example';
const next = 'battery staple';
const invalid = { ok: false, problem: 'code_invalid' };

for (const [engine, open] of engines) {
  test(`${engine}: sets a new password by a code, ends every session and verifies the address`, async (context) => {
    const [one, other] = await open(context);
    const accounts = await startAccounts(context, one);
    const elsewhere = await startAccounts(context, other);
    const { user, opened } = await join(accounts);
    await wish(accounts, 'reset', email);
    assert.deepEqual(await elsewhere.resetPassword(codeOf(accounts), next, { address }), { ok: true });
    await refused(accounts.sessions.verifyToken(opened.content.token));
    assert.equal((await accounts.parts.findUser.byId(user.id))?.user.emailVerified, true);
    assert.equal((await accounts.login(ada.email, ada.password, how)).ok, false);
    assert.equal((await accounts.login(ada.email, next, how)).ok, true);
  });

  test(`${engine}: lets a code be used once, however many try at the same moment`, async (context) => {
    const [one, other] = await open(context);
    const all = [await startAccounts(context, one), await startAccounts(context, other)];
    const [accounts] = all;
    assert.ok(accounts);
    await join(accounts);
    await wish(accounts, 'reset', email);
    const code = codeOf(accounts);
    const passwords = Array.from({ length: 6 }, (_, at) => `battery staple ${at}`);
    const outcomes = await Promise.all(
      passwords.map((password, at) => all[at % 2]?.resetPassword(code, password, { address })),
    );
    assert.equal(outcomes.filter((outcome) => outcome?.ok).length, 1);
    for (const outcome of outcomes) if (!outcome?.ok) assert.deepEqual(outcome, invalid);
    const winner = passwords[outcomes.findIndex((outcome) => outcome?.ok)] ?? '';
    assert.equal((await accounts.login(ada.email, winner, how)).ok, true);
    assert.deepEqual(await accounts.resetPassword(code, next, { address }), invalid);
  });

  test(`${engine}: leaves no session that was opened while the password was reset`, async (context) => {
    const [one, other] = await open(context);
    const here = await startAccounts(context, one, { loginAttempts: 0 });
    const there = await startAccounts(context, other, { loginAttempts: 0 });
    await join(here);
    let password = ada.password;
    for (let round = 0; round < 4; round += 1) {
      await wish(here, 'reset', email);
      const fresh = `battery staple ${round}`;
      const login = there.login(ada.email, password, how);
      assert.deepEqual(await here.resetPassword(codeOf(here), fresh, { address }), { ok: true });
      const outcome = await login;
      if (outcome.ok) await refused(here.sessions.verifyToken(outcome.opened.content.token));
      password = fresh;
    }
  });
}

for (const [engine, open] of embeddedOnly) {
  test(`${engine}: makes the other codes of the account void, whatever they are for`, async (context) => {
    const [store] = await open(context);
    const accounts = await startAccounts(context, store);
    await join(accounts);
    const verification = codeOf(accounts);
    await wish(accounts, 'reset', email);
    const first = codeOf(accounts);
    await wish(accounts, 'reset', email);
    const second = codeOf(accounts);
    assert.notEqual(first, second);
    assert.deepEqual(await accounts.resetPassword(second, next, { address }), { ok: true });
    assert.deepEqual(await accounts.resetPassword(first, next, { address }), invalid);
    assert.deepEqual(await accounts.verifyEmail(verification, { address }), invalid);
  });

  test(`${engine}: lets a change of the address meanwhile make the code void`, async (context) => {
    const [store] = await open(context);
    const accounts = await startAccounts(context, store);
    const { user } = await join(accounts);
    await wish(accounts, 'reset', email);
    const code = codeOf(accounts);
    await putUser(store, { ...user, email: 'new@shop.example' });
    assert.deepEqual(await accounts.resetPassword(code, next, { address }), invalid);
    assert.equal((await accounts.parts.findUser.byId(user.id))?.user.email, 'new@shop.example');
  });
}

test('takes a code until its last millisecond and not after', async (context) => {
  const clock = { now: start };
  const accounts = await startAccounts(context, await openEmbedded(context), { clock });
  await join(accounts);
  await wish(accounts, 'reset', email);
  const code = codeOf(accounts);
  clock.now = start + 3_600_000;
  assert.deepEqual(await accounts.resetPassword(code, next, { address }), invalid);
  clock.now -= 1;
  assert.deepEqual(await accounts.resetPassword(code, next, { address }), { ok: true });
});

test('keeps a code as its digest alone', async (context) => {
  const store = await openEmbedded(context);
  const accounts = await startAccounts(context, store);
  await join(accounts);
  await wish(accounts, 'reset', email);
  const code = codeOf(accounts);
  assert.equal(await store.read(mailCodesTable, code), undefined);
  const page = await store
    .plan({
      table: mailCodesTable,
      filter: { op: 'always' },
      sort: [{ field: { name: 'id', path: ['id'], type: 'string', column: 'id' }, direction: 'asc' }],
      limit: 10,
    })
    .page({ from: 'start' });
  assert.equal(page.docs.length, 2);
  assert.ok(!page.docs.join().includes(code));
});

for (const [what, codeFrom] of [
  ['nothing', () => ''],
  ['another code', () => randomBytes(32).toString('base64url')],
  ['a code with an end cut off', (code: string) => code.slice(0, -1)],
  ['a code with more behind it', (code: string) => `${code}A`],
  ['a text of any length', () => 'A'.repeat(100_000)],
] as const) {
  test(`takes ${what} for no code, and spends no hash on it`, async (context) => {
    const accounts = await startAccounts(context, await openEmbedded(context));
    await join(accounts);
    await wish(accounts, 'reset', email);
    const before = accounts.hashes();
    const outcome = await accounts.resetPassword(codeFrom(codeOf(accounts)), next, { address });
    assert.deepEqual(outcome, invalid);
    assert.equal(accounts.hashes(), before);
  });
}

test('takes no code of another purpose', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context));
  await join(accounts);
  const verification = codeOf(accounts);
  await wish(accounts, 'reset', email);
  assert.deepEqual(await accounts.resetPassword(verification, next, { address }), invalid);
  assert.deepEqual(await accounts.verifyEmail(codeOf(accounts), { address }), invalid);
});

test('leaves the code good when the new password is not', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context));
  await join(accounts);
  await wish(accounts, 'reset', email);
  const code = codeOf(accounts);
  assert.deepEqual(await accounts.resetPassword(code, 'short', { address }), {
    ok: false,
    problem: 'validation_failed',
    fault: 'must be at least 8 characters long',
  });
  assert.deepEqual(await accounts.resetPassword(code, next, { address }), { ok: true });
});

test('sets the first password of an account that had none', async (context) => {
  const store = await openEmbedded(context);
  const accounts = await startAccounts(context, store);
  await putUser(store, { id: 'usr_none', email: 'none@shop.example' });
  await wish(accounts, 'reset', 'none@shop.example');
  assert.deepEqual(await accounts.resetPassword(codeOf(accounts), next, { address }), { ok: true });
  assert.equal((await accounts.login('none@shop.example', next, how)).ok, true);
});

test('sends no mail to an unknown address and to a disabled account, nor takes its code', async (context) => {
  const store = await openEmbedded(context);
  const accounts = await startAccounts(context, store);
  const { user } = await join(accounts);
  await wish(accounts, 'reset', email);
  const code = codeOf(accounts);
  const sent = accounts.mails.length;
  await putUser(store, { ...user, disabled: true });
  await wish(accounts, 'reset', email);
  await wish(accounts, 'reset', 'nobody@shop.example');
  assert.equal(accounts.mails.length, sent);
  assert.deepEqual(await accounts.resetPassword(code, next, { address }), invalid);
});

test('sends an account five mails an hour for a purpose, together with other processes', async (context) => {
  const clock = { now: start };
  const store = await openEmbedded(context);
  const all = [
    await startAccounts(context, store, { clock }),
    await startAccounts(context, store, { clock }),
  ] as const;
  await join(all[0]);
  const sent = () => all[0].mails.length + all[1].mails.length - 1;
  for (let at = 0; at < 8; at += 1) await wish(all[at % 2 === 0 ? 0 : 1], 'reset', email);
  assert.equal(sent(), 5);
  await wish(all[0], 'verification', email);
  assert.equal(sent(), 6);
  clock.now += 3_599_999;
  await wish(all[0], 'reset', email);
  assert.equal(sent(), 6);
  clock.now += 60_001;
  await wish(all[0], 'reset', email);
  assert.equal(sent(), 7);
});

test('counts the mail of the registration, and no mail that was refused', async (context) => {
  const clock = { now: start };
  const accounts = await startAccounts(context, await openEmbedded(context), { clock });
  await join(accounts);
  for (let at = 0; at < 8; at += 1) {
    clock.now += 60_000;
    await wish(accounts, 'verification', email);
  }
  assert.equal(accounts.mails.length, 5);
  // The first of them leaves the hour, which makes room for one.
  clock.now = start + 3_660_000;
  for (let at = 0; at < 2; at += 1) await wish(accounts, 'verification', email);
  assert.equal(accounts.mails.length, 6);
});

test('sends no more than five mails in an hour that begins in the middle of one', async (context) => {
  const clock = { now: Math.ceil(start / 3_600_000) * 3_600_000 - 1 };
  const accounts = await startAccounts(context, await openEmbedded(context), { clock });
  await join(accounts);
  const before = accounts.mails.length;
  for (let at = 0; at < 5; at += 1) await wish(accounts, 'reset', email);
  clock.now += 2;
  for (let at = 0; at < 5; at += 1) await wish(accounts, 'reset', email);
  assert.equal(accounts.mails.length - before, 5);
});

test('sends no mail whose code could not be kept, and goes on with the next wish', async (context) => {
  const store = failing(await openEmbedded(context));
  const accounts = await startAccounts(context, store);
  await join(accounts);
  const sent = accounts.mails.length;
  store.fault = 'lost-once';
  await wish(accounts, 'reset', email);
  assert.equal(accounts.mails.length, sent);
  await wish(accounts, 'reset', email);
  assert.deepEqual(await accounts.resetPassword(codeOf(accounts), next, { address }), { ok: true });
});

test('takes a wish down at once and bounds how many wait', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context));
  await join(accounts);
  for (let at = 0; at < 120; at += 1) {
    accounts.mail.request({ purpose: 'reset', for: { email: `user${at}@shop.example` }, address });
  }
  const given = accounts.observed.filter(({ kind }) => kind === 'mail-given-up');
  // One is being dealt with beside the hundred that may wait.
  assert.equal(given.length, 19);
  await accounts.mail.settled();
});

test('takes no wish down after it was closed', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context));
  await join(accounts);
  const sent = accounts.mails.length;
  await accounts.mail.close();
  await wish(accounts, 'reset', email);
  assert.equal(accounts.mails.length, sent);
});

test('lets a verification mail be asked for again until the address is verified', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context));
  const { user } = registered(await accounts.register(ada, how));
  const first = codeOf(accounts);
  accounts.mail.request({ purpose: 'verification', for: { id: user.id }, address });
  await accounts.mail.settled();
  const second = codeOf(accounts);
  assert.notEqual(second, first);
  assert.deepEqual(await accounts.verifyEmail(second, { address }), { ok: true });
  assert.deepEqual(await accounts.verifyEmail(first, { address }), invalid);
  const sent = accounts.mails.length;
  await wish(accounts, 'verification', email);
  assert.equal(accounts.mails.length, sent);
});

test('verifies no address that the account no longer has', async (context) => {
  const store = await openEmbedded(context);
  const accounts = await startAccounts(context, store);
  const { user } = await join(accounts);
  await putUser(store, { ...user, email: 'new@shop.example' });
  assert.deepEqual(await accounts.verifyEmail(codeOf(accounts), { address }), invalid);
  assert.equal((await accounts.parts.findUser.byId(user.id))?.user.emailVerified, false);
});

test('keeps everything else of an account that it verifies', async (context) => {
  const store = await openEmbedded(context);
  const accounts = await startAccounts(context, store);
  const { user } = await join(accounts);
  const given = { name: 'Ada', roles: ['clerk'], tenant: 'north', scopes: ['read'] as const };
  await putUser(store, { ...user, ...given });
  accounts.clock.now += 1000;
  assert.deepEqual(await accounts.verifyEmail(codeOf(accounts), { address }), { ok: true });
  const after = (await accounts.parts.findUser.byId(user.id))?.user;
  assert.deepEqual(after, {
    ...user,
    ...given,
    emailVerified: true,
    updatedAt: new Date(start + 1000).toISOString(),
  });
});

test('audits what is asked for, and what is done with a code, in the units of it', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context));
  const { user } = await join(accounts);
  await wish(accounts, 'reset', email);
  const code = codeOf(accounts);
  await accounts.resetPassword(code, next, { address });
  const fact = { actor: user.id, subject: user.id, address };
  assert.deepEqual(accounts.entries.slice(-3), [
    { ...fact, type: 'password.reset_requested', actor: null },
    { ...fact, type: 'password.reset' },
    { ...fact, type: 'email.verified' },
  ]);
  assert.ok(!JSON.stringify(accounts.entries).includes(code));
});

test('tells the audit trail of every key that it revokes', async (context) => {
  const store = await openEmbedded(context);
  const accounts = await startAccounts(context, store);
  const { user } = await join(accounts);
  const ids = Array.from({ length: 60 }, (_, index) => `key_${String(index).padStart(2, '0')}`);
  const changes = ids.map((id) => ({
    table: keysTable,
    id,
    expect: { absent: true as const },
    next: { ...keptRow(JSON.stringify({ id, name: id, kind: 'secret' }), user.id, start, start), search: '' },
  }));
  await store.commit({ changes, events: [] });
  await wish(accounts, 'reset', email);
  assert.deepEqual(await accounts.resetPassword(codeOf(accounts), next, { address }), { ok: true });
  const revoked = accounts.entries.filter(({ type }) => type === 'key.revoked');
  assert.deepEqual(revoked.map(({ subject }) => subject).sort(), ids);
  for (const { actor, detail } of revoked) {
    assert.deepEqual([actor, detail], [user.id, { reason: 'password.reset' }]);
  }
});
