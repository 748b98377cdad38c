import assert from 'node:assert/strict';
import test from 'node:test';
import { passwordsTable } from '../../../src/accounts/account-tables.ts';
import type { LoggedIn } from '../../../src/accounts/login.ts';
import { createPasswordVerifier } from '../../../src/accounts/passwords/check-password.ts';
import type { Store } from '../../../src/store/store.ts';
import { embeddedOnly, engines, openEmbedded } from '../../harness/stores.ts';
import { good, putUser } from '../sessions/fixture.ts';
import {
  type Accounts,
  ada,
  address,
  codeOf,
  how,
  join,
  registered,
  startAccounts,
  wish,
} from './fixture.ts';

const wrong = { ok: false, problem: 'invalid_credentials' };

function loggedIn(outcome: LoggedIn): Extract<LoggedIn, { ok: true }> {
  if (!outcome.ok) throw new assert.AssertionError({ message: `not logged in: ${outcome.problem}` });
  return outcome;
}

function verifierOf({ parts }: Accounts, verifiedEmailRequired = false) {
  const settings = { ...parts.settings, verifiedEmailRequired };
  return createPasswordVerifier({ ...parts, settings }, parts.checkPassword, parts.factorRule);
}

async function hashOf(store: Store, userId: string): Promise<string> {
  const row = await store.read(passwordsTable, userId);
  return (JSON.parse(row?.doc ?? '') as { hash: string }).hash;
}

for (const [engine, open] of engines) {
  test(`${engine}: logs in by any spelling of the address, with a session of its own each time`, async (context) => {
    const [one, other] = await open(context);
    const accounts = await startAccounts(context, one);
    const { user, opened } = await join(accounts);
    const elsewhere = await startAccounts(context, other);
    const first = loggedIn(await elsewhere.login('ada@SHOP.example ', ada.password, how));
    const second = loggedIn(await elsewhere.login(ada.email, ada.password, how));
    assert.equal(new Set([opened.session, first.opened.session, second.opened.session]).size, 3);
    const verdict = await good(accounts.sessions.verifyToken(first.opened.content.token));
    assert.equal(verdict.principal.id, user.id);
  });

  test(`${engine}: logs in eight times at once`, async (context) => {
    const [one, other] = await open(context);
    const all = [await startAccounts(context, one), await startAccounts(context, other)] as const;
    await join(all[0]);
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, (_, at) => all[at % 2]?.login(ada.email, ada.password, how)),
    );
    const sessions = outcomes.map((outcome) => (outcome?.ok ? outcome.opened.session : undefined));
    assert.equal(new Set(sessions).size, 8);
    assert.ok(!sessions.includes(undefined), JSON.stringify(outcomes));
  });

  test(`${engine}: leaves no session of the old password after a change that a login raced with`, async (context) => {
    const [one, other] = await open(context);
    const here = await startAccounts(context, one, { loginAttempts: 0 });
    const there = await startAccounts(context, other, { loginAttempts: 0 });
    const { user } = await join(here);
    let password = ada.password;
    for (let round = 0; round < 8; round += 1) {
      const next = `correct horse ${round}`;
      const login = there.login(ada.email, password, how);
      const who = { userId: user.id, session: null, address };
      const changed = await here.changePassword(who, password, next);
      assert.deepEqual(changed, { ok: true });
      const outcome = await login;
      if (outcome.ok) {
        const verdict = await here.sessions.verifyToken(outcome.opened.content.token);
        assert.deepEqual(verdict, { problem: 'invalid_token' }, `round ${round}`);
      } else assert.deepEqual(outcome, wrong);
      password = next;
    }
  });

  test(`${engine}: logs everyone in whose login raced with the renewal of the hash`, async (context) => {
    const [one, other] = await open(context);
    await join(await startAccounts(context, one));
    const all = [
      await startAccounts(context, one, { passwordPasses: 2 }),
      await startAccounts(context, other, { passwordPasses: 2 }),
    ];
    const outcomes = await Promise.all(
      Array.from({ length: 4 }, (_, at) => all[at % 2]?.login(ada.email, ada.password, how)),
    );
    assert.ok(
      outcomes.every((outcome) => outcome?.ok),
      JSON.stringify(outcomes),
    );
  });
}

for (const [engine, open] of embeddedOnly) {
  test(`${engine}: refuses an unknown address, a wrong password, a disabled account and one without a password alike`, async (context) => {
    const [store] = await open(context);
    const accounts = await startAccounts(context, store, { loginAttempts: 0 });
    await join(accounts);
    const eve = { email: 'eve@shop.example', password: 'battery staple' };
    const { user } = await join(accounts, eve);
    await putUser(store, { ...user, disabled: true });
    await putUser(store, { id: 'usr_none', email: 'none@shop.example' });
    const attempts: readonly (readonly [email: string, password: string])[] = [
      ['nobody@shop.example', ada.password],
      ['no address', ada.password],
      [ada.email, 'wrong horse'],
      [ada.email, ''],
      [ada.email, 'x'.repeat(10_000)],
      [eve.email, eve.password],
      ['none@shop.example', ''],
    ];
    for (const [email, password] of attempts) {
      const before = accounts.hashes();
      assert.deepEqual(await accounts.login(email, password, how), wrong, email);
      assert.equal(accounts.hashes() - before, 1, `hashes for ${email}`);
    }
  });

  test(`${engine}: renews a hash of other costs at a login`, async (context) => {
    const [store] = await open(context);
    const { user } = await join(await startAccounts(context, store));
    const before = await hashOf(store, user.id);
    const costlier = await startAccounts(context, store, { passwordPasses: 2 });
    loggedIn(await costlier.login(ada.email, ada.password, how));
    const renewed = await hashOf(store, user.id);
    assert.match(before, /t=1/);
    assert.match(renewed, /t=2/);
    loggedIn(await costlier.login(ada.email, ada.password, how));
    assert.equal(await hashOf(store, user.id), renewed);
  });
}

async function fiveFailures(accounts: Accounts): Promise<void> {
  for (let at = 0; at < 5; at += 1) {
    assert.deepEqual(await accounts.login(ada.email, 'wrong horse', how), wrong);
  }
}

test('answers the sixth attempt after five failures with the limit, and spends no hash on it', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context));
  await join(accounts);
  await fiveFailures(accounts);
  const before = accounts.hashes();
  const outcome = await accounts.login(ada.email, ada.password, how);
  assert.ok(!outcome.ok);
  assert.equal(outcome.problem, 'rate_limited');
  assert.equal(outcome.allowance?.policy, '"login";q=5;w=900');
  assert.equal(accounts.hashes(), before);
});

test('counts failures of Basic, of logins and of changes of the password together', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context));
  const { user } = await join(accounts);
  const basic = verifierOf(accounts);
  const who = { userId: user.id, session: null, address };
  await basic(ada.email, 'wrong horse', { address });
  await basic(ada.email, 'wrong horse', { address });
  await accounts.login(ada.email, 'wrong horse', how);
  await accounts.login(ada.email, 'wrong horse', how);
  assert.deepEqual(await accounts.changePassword(who, 'wrong horse', 'battery staple'), wrong);
  for (const outcome of [
    await basic(ada.email, ada.password, { address: '192.0.2.2' }),
    await accounts.login(ada.email, ada.password, { ...how, address: '192.0.2.3' }),
    await accounts.changePassword({ ...who, address: '192.0.2.4' }, ada.password, 'battery staple'),
  ]) {
    assert.ok('problem' in outcome && outcome.problem === 'rate_limited', JSON.stringify(outcome));
    assert.equal(outcome.allowance?.exceeded, true);
  }
});

test('counts unknown addresses as it counts known ones', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context));
  const from = (at: number) => ({ ...how, address: `192.0.2.${at}` });
  for (let at = 0; at < 5; at += 1) {
    assert.deepEqual(await accounts.login('nobody@shop.example', 'wrong horse', from(at)), wrong);
  }
  const outcome = await accounts.login('NOBODY@shop.example', 'wrong horse', from(9));
  assert.equal(!outcome.ok && outcome.problem, 'rate_limited');
});

test('asks the store the same questions for an unknown address as for a known one', async (context) => {
  const store = await openEmbedded(context);
  const asked: string[] = [];
  const listening: Store = {
    ...store,
    read: (table, id) => {
      asked.push(table);
      return store.read(table, id);
    },
    plan: (query) => {
      asked.push(`plan ${query.table}`);
      return store.plan(query);
    },
  };
  const accounts = await startAccounts(context, listening);
  await join(accounts);
  const questions: string[][] = [];
  for (const email of [ada.email, 'nobody@shop.example']) {
    asked.length = 0;
    await accounts.checkPassword(email, 'wrong horse', { address });
    questions.push([...asked]);
  }
  assert.ok(questions[0] !== undefined && questions[0].length > 0);
  assert.deepEqual(questions[1], questions[0]);
});

test('refuses an unverified address where it must be verified, and only with the right password', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context), { verifiedEmailRequired: true });
  registered(await accounts.register(ada, how));
  assert.deepEqual(await accounts.login(ada.email, 'wrong horse', how), wrong);
  assert.deepEqual(await accounts.login(ada.email, ada.password, how), {
    ok: false,
    problem: 'email_unverified',
  });
  await wish(accounts, 'verification', 'ada@shop.example');
  await accounts.verifyEmail(codeOf(accounts), { address });
  loggedIn(await accounts.login(ada.email, ada.password, how));
});

test('sets a cookie where one is asked for', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context));
  await join(accounts);
  const { opened } = loggedIn(await accounts.login(ada.email, ada.password, { ...how, cookie: true }));
  assert.match(opened.fields[1] ?? '', /^__Host-comity_session=/);
});

test('audits logins in their unit, and failures beside requests, with nothing of what was typed', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context));
  const { user } = await join(accounts);
  const { opened } = loggedIn(await accounts.login(ada.email, ada.password, how));
  assert.deepEqual(accounts.entries.at(-1), {
    type: 'login.succeeded',
    actor: user.id,
    subject: user.id,
    address,
    detail: { session: opened.session },
  });
  await fiveFailures(accounts);
  await accounts.login(ada.email, 'wrong horse', how);
  await accounts.login(ada.email, 'wrong horse', how);
  await accounts.login('nobody@shop.example', 'wrong horse', { ...how, address: '192.0.2.2' });
  const failed = { type: 'login.failed', actor: null, address, detail: { use: 'login' } };
  assert.deepEqual(accounts.notes, [
    ...Array.from({ length: 5 }, () => ({ ...failed, subject: user.id })),
    { ...failed, type: 'login.limited', subject: null },
    { ...failed, subject: null, address: '192.0.2.2' },
  ]);
  assert.doesNotMatch(JSON.stringify(accounts.notes), /horse|shop\.example/);
});

test('verifies Basic credentials, resting on the account and on its password', async (context) => {
  const store = await openEmbedded(context);
  const accounts = await startAccounts(context, store);
  const { user } = await join(accounts);
  const verify = verifierOf(accounts);
  const verdict = await good(verify(ada.email, ada.password, { address }));
  assert.equal(verdict.principal.id, user.id);
  assert.equal(verdict.scheme, 'password');
  assert.equal(verdict.session, null);
  for (const { table, id, rev } of verdict.basis) {
    assert.equal((await store.read(table, id))?.rev, rev);
  }
  assert.deepEqual(
    verdict.basis.map(({ table, id }) => [table, id]),
    [
      ['users', user.id],
      ['passwords', user.id],
    ],
  );
  assert.deepEqual(await verify(ada.email, 'wrong horse', { address }), { problem: 'invalid_credentials' });
  assert.deepEqual(await verify('', '', { address }), { problem: 'invalid_credentials' });
});

test('lets Basic past the verified address no more than a login', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context));
  await join(accounts);
  const verify = verifierOf(accounts, true);
  assert.deepEqual(await verify(ada.email, ada.password, { address }), { problem: 'email_unverified' });
});
