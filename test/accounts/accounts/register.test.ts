import assert from 'node:assert/strict';
import test from 'node:test';
import { passwordsTable, usersCollection, usersTable } from '../../../src/accounts/account-tables.ts';
import { compileValidator } from '../../../src/kernel/content/validator.ts';
import { embeddedOnly, engines, failing, openEmbedded } from '../../harness/stores.ts';
import { good } from '../sessions/fixture.ts';
import { ada, codeOf, how, join, registered, startAccounts } from './fixture.ts';

for (const [engine, open] of engines) {
  test(`${engine}: makes one account of an address that many register at once`, async (context) => {
    const [one, other] = await open(context);
    const all = [await startAccounts(context, one), await startAccounts(context, other)];
    const outcomes = await Promise.all(
      Array.from({ length: 6 }, (_, at) => all[at % 2]?.register({ ...ada, name: `Ada ${at}` }, how)),
    );
    const made = outcomes.filter((outcome) => outcome?.ok === true);
    assert.equal(made.length, 1);
    for (const outcome of outcomes) {
      if (outcome?.ok === false) assert.equal(outcome.problem, 'unique_taken');
    }
  });
}

for (const [engine, open] of embeddedOnly) {
  test(`${engine}: makes an account with a session that is good at once`, async (context) => {
    const [store] = await open(context);
    const accounts = await startAccounts(context, store);
    const { user, opened } = await join(accounts);
    assert.equal(user.email, 'ada@shop.example');
    assert.match(user.id, /^usr_[0-9a-z]{26}$/);
    assert.deepEqual(opened.content.user, { id: user.id, email: user.email });
    const verdict = await good(accounts.sessions.verifyToken(opened.content.token));
    assert.equal(verdict.principal.id, user.id);
    assert.deepEqual([...verdict.principal.scopes], ['read', 'write']);
    const row = await store.read(usersTable, user.id);
    assert.equal(row?.owner, user.id);
    assert.deepEqual(JSON.parse(row?.doc ?? ''), user);
  });

  test(`${engine}: leaves nothing of a registration whose unit was lost`, async (context) => {
    const [store] = await open(context);
    const broken = failing(store);
    const accounts = await startAccounts(context, broken);
    broken.fault = 'lost';
    await assert.rejects(accounts.register(ada, how));
    assert.equal(await accounts.parts.findUser.byEmail('ada@shop.example'), undefined);
    assert.equal(accounts.mails.length, 0);
    broken.fault = 'none';
    await join(accounts);
  });
}

test('refuses an address that is taken in another spelling, before a hash is spent on it', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context));
  await join(accounts);
  const before = accounts.hashes();
  const outcome = await accounts.register({ ...ada, email: ' ADA@shop.example ' }, how);
  assert.deepEqual(outcome, { ok: false, problem: 'unique_taken' });
  assert.equal(accounts.hashes(), before);
});

test('tells all faults of a registration at once', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context));
  assert.deepEqual(await accounts.register({ email: 'ada', password: 'short' }, how), {
    ok: false,
    problem: 'validation_failed',
    faults: [
      { pointer: '/email', message: 'must be an e-mail address, such as ada@example.com' },
      { pointer: '/password', message: 'must be at least 8 characters long' },
    ],
  });
  assert.equal(accounts.hashes(), 0);
});

test('keeps the password as a hash alone, in a row of its own', async (context) => {
  const store = await openEmbedded(context);
  const { user } = await join(await startAccounts(context, store));
  const row = await store.read(passwordsTable, user.id);
  const kept = JSON.parse(row?.doc ?? '') as { hash: string };
  assert.match(kept.hash, /^\$argon2id\$v=19\$m=64,t=1,p=1\$/);
  const account = await store.read(usersTable, user.id);
  for (const doc of [row?.doc, account?.doc]) assert.doesNotMatch(doc ?? '', /correct horse/);
});

test('sends a code to the new address, and one that works', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context));
  const { user } = await join(accounts);
  assert.equal(accounts.mails.length, 1);
  assert.equal(accounts.mails[0]?.to[0], 'ada@shop.example');
  assert.deepEqual(await accounts.verifyEmail(codeOf(accounts), how), { ok: true });
  assert.equal((await accounts.parts.findUser.byId(user.id))?.user.emailVerified, true);
});

test('registers without a mail server, and sends nothing', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context), { mailConfigured: false });
  await join(accounts);
  assert.equal(accounts.mails.length, 0);
});

test('opens no session where the address must be verified first', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context), { verifiedEmailRequired: true });
  const { user, opened } = registered(await accounts.register(ada, how));
  assert.equal(opened, null);
  assert.equal(user.emailVerified, false);
});

test('sets a cookie where one is asked for, and none otherwise', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context));
  assert.deepEqual((await join(accounts)).opened.fields, []);
  const eve = { email: 'eve@shop.example', password: 'battery staple' };
  const { opened } = registered(await accounts.register(eve, { ...how, cookie: true }));
  assert.equal(opened?.fields[0], 'Set-Cookie');
});

test('audits a registration in its unit, by its own account and from where', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context));
  const { user, opened } = await join(accounts);
  assert.deepEqual(accounts.entries.at(-1), {
    type: 'account.registered',
    actor: user.id,
    subject: user.id,
    address: how.address,
    detail: { session: opened.session },
  });
});

test('makes an account that the collection of accounts would take, and finds, as its own', async (context) => {
  const accounts = await startAccounts(context, await openEmbedded(context));
  const { user } = registered(await accounts.register({ ...ada, name: 'Ada' }, how));
  const { id: _id, createdAt: _created, updatedAt: _updated, ...fields } = user;
  const { missing, invalid } = compileValidator(usersCollection).check(fields);
  assert.deepEqual([...missing, ...invalid], []);
  const declared = Object.keys(usersCollection.schema.properties);
  assert.deepEqual(
    Object.keys(fields),
    declared.filter((name) => Object.hasOwn(fields, name)),
  );
});
