import assert from 'node:assert/strict';
import test from 'node:test';
import type { ChangePassword } from '../../../src/accounts/passwords/set-password.ts';
import { engines, openEmbedded } from '../../harness/stores.ts';
import { good, putUser, refused } from '../sessions/fixture.ts';
import { ada, address, codeOf, how, join, startAccounts, wish } from './fixture.ts';

const next = 'battery staple';
const wrong = { ok: false, problem: 'invalid_credentials' };

function by(userId: string, session: string | null = null): Parameters<ChangePassword>[0] {
  return { userId, session, address };
}

for (const [engine, open] of engines) {
  test(`${engine}: changes the password, ends every other session and keeps the one that asked`, async (context) => {
    const [one, other] = await open(context);
    const accounts = await startAccounts(context, one);
    const elsewhere = await startAccounts(context, other);
    const { user, opened } = await join(accounts);
    const second = await elsewhere.login(ada.email, ada.password, how);
    assert.ok(second.ok);
    const who = by(user.id, opened.session);
    assert.deepEqual(await accounts.changePassword(who, ada.password, next), { ok: true });
    await good(elsewhere.sessions.verifyToken(opened.content.token));
    await refused(elsewhere.sessions.verifyToken(second.opened.content.token));
    assert.deepEqual(await elsewhere.login(ada.email, ada.password, how), wrong);
    assert.equal((await elsewhere.login(ada.email, next, how)).ok, true);
  });

  test(`${engine}: lets one of two changes at once win, and leaves its password`, async (context) => {
    const [one, other] = await open(context);
    const all = [await startAccounts(context, one), await startAccounts(context, other)];
    const [here] = all;
    assert.ok(here);
    const { user } = await join(here);
    const passwords = ['battery staple 1', 'battery staple 2'];
    const outcomes = await Promise.all(
      passwords.map((password, at) => all[at]?.changePassword(by(user.id), ada.password, password)),
    );
    assert.deepEqual(outcomes.map((outcome) => outcome?.ok).sort(), [false, true], JSON.stringify(outcomes));
    for (const [at, password] of passwords.entries()) {
      assert.equal((await here.login(ada.email, password, how)).ok, outcomes[at]?.ok);
    }
  });
}

test('ends the session that asked as well where the credential belongs to none', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context));
  const { user, opened } = await join(accounts);
  assert.deepEqual(await accounts.changePassword(by(user.id), ada.password, next), { ok: true });
  await refused(accounts.sessions.verifyToken(opened.content.token));
});

test('refuses a wrong current password, and changes nothing', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context));
  const { user, opened } = await join(accounts);
  assert.deepEqual(await accounts.changePassword(by(user.id), 'wrong horse', next), wrong);
  await good(accounts.sessions.verifyToken(opened.content.token));
  assert.equal((await accounts.login(ada.email, ada.password, how)).ok, true);
});

test('judges the new password before anything is counted or hashed', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context));
  const { user } = await join(accounts);
  const before = accounts.hashes();
  for (let at = 0; at < 10; at += 1) {
    assert.deepEqual(await accounts.changePassword(by(user.id), 'wrong horse', 'short'), {
      ok: false,
      problem: 'validation_failed',
      fault: 'must be at least 8 characters long',
    });
  }
  assert.equal(accounts.hashes(), before);
});

test('sets no password for an account that has only an identity of a provider, nor for none', async (context) => {
  const store = await openEmbedded(context);
  const accounts = await startAccounts(context, store);
  await putUser(store, { id: 'usr_none', email: 'none@shop.example' });
  assert.deepEqual(await accounts.changePassword(by('usr_none'), '', next), wrong);
  assert.deepEqual(await accounts.changePassword(by('usr_missing'), '', next), wrong);
});

test('makes codes void that would set a password', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context));
  const { user } = await join(accounts);
  await wish(accounts, 'reset', 'ada@shop.example');
  const code = codeOf(accounts);
  assert.deepEqual(await accounts.changePassword(by(user.id), ada.password, next), { ok: true });
  assert.deepEqual(await accounts.resetPassword(code, 'third password', { address }), {
    ok: false,
    problem: 'code_invalid',
  });
});

test('audits the change in its unit, without either password', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context));
  const { user } = await join(accounts);
  await accounts.changePassword(by(user.id), ada.password, next);
  assert.deepEqual(accounts.entries.at(-1), {
    type: 'password.changed',
    actor: user.id,
    subject: user.id,
    address,
  });
  assert.doesNotMatch(JSON.stringify([accounts.entries, accounts.notes]), /horse|staple/);
});
