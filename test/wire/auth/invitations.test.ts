/** Roles that accounts give, and invitations by mail (§5.4.9, §5.7.5), on both stores. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  type Answer,
  bearer,
  changeUser,
  cookieOf,
  login,
  makeKey,
  register,
  serveAccounts,
  tokensOf,
} from '../../harness/account-client.ts';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import { adminKey } from '../../harness/exchange.ts';
import type { Expectation } from '../../harness/expected-answer.ts';
import { codeIn, startMailServer, textOf } from '../../harness/mail-server.ts';
import { startServer } from '../../harness/running-server.ts';
import { createPasskey } from './fixtures/software-authenticator.ts';

const config = fileURLToPath(new URL('./fixtures/crews.config.ts', import.meta.url));
const guild = fileURLToPath(new URL('./fixtures/guild.config.ts', import.meta.url));
const password = 'correct horse battery';
const origin = 'https://app.shop.example';

describeOnEachStore('invitations', async (engine) => {
  const mails = await startMailServer({ after });
  const { client } = await serveAccounts({
    ...{ config, engine },
    env: {
      ...{ COMITY_SMTP_URL: mails.url, COMITY_LOGIN_ATTEMPTS: '0', COMITY_PUBLIC_URL: origin },
      COMITY_MAIL_INVITATION_URL: `${origin}/join#{code}`,
    },
  });
  let people = 0;
  const newAddress = (): string => {
    people += 1;
    return `p${people}@field.example`;
  };
  /** An account with these rights, and its access token. */
  const member = async (rights: object) => {
    const email = newAddress();
    const tokens = await register(client, email, password);
    await mails.next(email);
    await changeUser(client, tokens.userId, { tenant: 'north', emailVerified: true, ...rights });
    return { ...tokens, email };
  };
  const make = (as: string, json: object, expect: Expectation) =>
    client.ask('POST', 'users', { as, json, expect });
  const invite = (as: string, json: object, expect?: Expectation) =>
    client.ask('POST', 'auth/invite', { as, json, expect });
  const accept = (json: object, expect?: Expectation) =>
    client.ask('POST', 'auth/invitation/accept', { json, expect });
  /** A technician whom the caller has made and invited. */
  const invited = async (as: string, rights: object = { roles: ['technician'] }) => {
    const email = newAddress();
    const { id } = (await invite(as, { email, tenant: 'north', ...rights }, 201)).json();
    const { raw } = await mails.next(email);
    return { id: String(id), email, code: codeIn({ raw }), text: textOf(raw) };
  };

  test('a role gives the roles that it grants, and a refusal names the right that is missing', async () => {
    const { token: dispatcher } = await member({ roles: ['dispatcher'] });
    const email = newAddress();
    const rights = { email, tenant: 'north' };
    const refusal = (pointer: string, message: string) => ({
      ...{ status: 403, code: 'forbidden' },
      members: { error: message, errors: [{ pointer, message }] },
    });
    for (const [further, pointer, missing] of [
      [{ roles: ['dispatcher'] }, '/roles', 'role "dispatcher"'],
      [{ roles: ['technician', 'administrator'] }, '/roles', 'role "administrator"'],
      [{ scopes: ['read', 'write', 'admin'] }, '/scopes', 'scope "admin"'],
    ] as const)
      for (const request of [make, invite])
        await request(
          dispatcher,
          { ...rights, ...further },
          refusal(pointer, `you may not give the ${missing}`),
        );
    const me = { status: 200, members: { grants: ['technician'] } };
    await client.ask('GET', 'auth/me', { as: dispatcher, expect: me });
    const none = { status: 403, members: { error: 'you do not administer this account' } };
    for (const request of [make, invite]) await request(dispatcher, { ...rights, tenant: 'south' }, none);
    const made = await make(dispatcher, { ...rights, roles: ['technician'] }, 201);
    const { id } = made.json();
    const patch = (json: object, expect: Expectation, as = dispatcher) =>
      client.ask('PATCH', `users/${id}`, { as, json, expect });
    await patch(
      { roles: ['technician', 'dispatcher'] },
      refusal('/roles', 'you may not give the role "dispatcher"'),
    );
    await patch({ name: 'Tilda' }, 200);
    await patch({ roles: ['dispatcher'] }, 200, adminKey);
    const touched = 'the account has the role "dispatcher", which you may not give';
    await patch({ name: 'Mine' }, refusal('/roles', touched));
    await invite(dispatcher, { email }, refusal('/roles', touched));
  });

  test('an invitation sets a password, verifies the address and opens a session, once', async () => {
    const { token: dispatcher } = await member({ roles: ['dispatcher'] });
    const { id, email, code, text } = await invited(dispatcher);
    assert.ok(text.includes(`${origin}/join#${code}`));
    await accept({ code }, [400, 'field_missing']);
    await accept({ code, password: 'short' }, [422, 'validation_failed']);
    const entered = await accept({ code, password, cookie: true }, 200);
    assert.ok(cookieOf(entered) !== undefined);
    const expect = { status: 200, members: { emailVerified: true, roles: ['technician'] } };
    await client.ask('GET', `users/${id}`, { as: tokensOf(entered).token, expect });
    await accept({ code, password }, [400, 'code_invalid']);
    await login(client, email, password);
    await invite(dispatcher, { email }, [409, 'account_entered']);
  });

  test('an invitation takes a passkey in place of a password, with recovery codes', async () => {
    const { id, code } = await invited(adminKey);
    const asked = await client.ask('POST', 'auth/invitation/passkey-options', {
      json: { code },
      expect: 200,
    });
    const { challenge, options } = asked.json();
    assert.equal(options.authenticatorSelection.residentKey, 'required');
    const passkey = createPasskey();
    const ceremony = { origin, rpId: 'app.shop.example', challenge: options.challenge };
    const response = passkey.register(ceremony);
    await accept({ code, password, passkey: { challenge, response } }, [422, 'validation_failed']);
    await accept({ code, passkey: { challenge: 'none', response } }, [400, 'challenge_invalid']);
    // The options of another invitation are for another account.
    const other = await invited(adminKey);
    await accept({ code: other.code, passkey: { challenge, response } }, [400, 'challenge_invalid']);
    const entered = (await accept({ code, passkey: { challenge, response } }, 200)).json();
    assert.equal(entered.recoveryCodes.length, 10);
    assert.equal(entered.user.id, id);
    const begun = (await client.ask('POST', 'auth/login/passkey/options', { json: {}, expect: 200 })).json();
    const used = passkey.use({
      ...ceremony,
      challenge: begun.options.challenge,
      userHandle: options.user.id,
    });
    const json = { challenge: begun.challenge, response: used };
    await client.ask('POST', 'auth/login/passkey', { json, expect: 200 });
  });

  test('an invitation ends with the right of who made it, and with the rights that it leads to', async () => {
    for (const [rights, change] of [
      [{ roles: ['dispatcher'] }, { roles: [] }],
      [{ roles: ['dispatcher'] }, { tenant: 'south' }],
      [{ roles: ['dispatcher'] }, { disabled: true }],
      // Owners need a second factor, without which nothing of theirs is good.
      [{ roles: ['dispatcher'] }, { roles: ['dispatcher', 'owner'] }],
    ] as const) {
      const inviter = await member(rights);
      const { code } = await invited(inviter.token);
      await changeUser(client, inviter.userId, change);
      await accept({ code, password }, [400, 'code_invalid']);
      await changeUser(client, inviter.userId, { tenant: 'north', disabled: false, ...rights });
      await accept({ code, password }, 200);
    }
    const inviter = await member({ roles: ['dispatcher'] });
    const raised = await invited(inviter.token);
    await changeUser(client, raised.id, { roles: ['technician', 'owner'] });
    await accept({ code: raised.code, password }, [400, 'code_invalid']);
    const gone = await invited(inviter.token);
    await client.ask('DELETE', `users/${inviter.userId}`, { as: adminKey, expect: 204 });
    await accept({ code: gone.code, password }, [400, 'code_invalid']);
  });

  test('an invitation by a key ends with the key', async () => {
    const inviter = await member({ roles: ['dispatcher'] });
    const { key, id } = await makeKey(client, bearer(inviter.token), { name: 'mine' });
    const { code } = await invited(key);
    await client.ask('DELETE', `keys/${id}`, { as: inviter.token, expect: 204 });
    await accept({ code, password }, [400, 'code_invalid']);
  });

  test('a new invitation ends the one before, as a reset, another address and the end of the account do', async () => {
    const first = await invited(adminKey);
    await invite(adminKey, { email: first.email }, 200);
    const second = codeIn(await mails.next(first.email));
    await accept({ code: first.code, password }, [400, 'code_invalid']);
    await accept({ code: second, password }, 200);
    for (const change of [{ email: newAddress() }, { disabled: true }]) {
      const { id, code } = await invited(adminKey);
      await changeUser(client, id, change);
      await accept({ code, password }, [400, 'code_invalid']);
    }
    const reset = await invited(adminKey);
    await client.ask('POST', 'auth/password-reset', { json: { email: reset.email }, expect: 204 });
    const json = { code: codeIn(await mails.next(reset.email)), password };
    await client.ask('POST', 'auth/password-reset/confirm', { json, expect: 204 });
    await accept({ code: reset.code, password }, [400, 'code_invalid']);
  });

  test('of many that accept at once one enters', async () => {
    const { code } = await invited(adminKey);
    const answers = await Promise.all(Array.from({ length: 8 }, () => accept({ code, password })));
    assert.deepEqual(statusesOf(answers), [200, 400, 400, 400, 400, 400, 400, 400]);
  });

  test('only who administers the account invites, at most five times in an hour', async () => {
    const email = newAddress();
    const technician = await member({ roles: ['technician'] });
    await invite(technician.token, { email }, 403);
    await invite(technician.token, { email: technician.email }, 403);
    await client.ask('POST', 'auth/invite', { json: { email }, expect: 401 });
    await invite(adminKey, { email: 'none' }, [422, 'validation_failed']);
    await invite(adminKey, { email, name: 'n'.repeat(70_000) }, [413, 'content_too_large']);
    await invite(adminKey, { email }, 201);
    for (let count = 1; count < 5; count += 1) await invite(adminKey, { email }, 200);
    await invite(
      adminKey,
      { email },
      { status: 429, code: 'rate_limited', fields: { 'retry-after': '3600' } },
    );
  });

  test('an invitation creates an account, or changes and invites one that nobody has entered', async () => {
    const { token: dispatcher } = await member({ roles: ['dispatcher'] });
    const email = newAddress();
    const invited = { email: ` ${email.toUpperCase()}`, tenant: 'north', roles: ['technician'] };
    const created = await invite(dispatcher, invited, 201);
    const account = created.json();
    assert.equal(created.headers.location, `/api/v1/users/${account.id}`);
    assert.deepEqual([account.email, account.roles], [email, ['technician']]);
    const first = codeIn(await mails.next(email));
    // Without further members the account stays as it is.
    assert.deepEqual((await invite(dispatcher, { email }, 200)).json(), account);
    const second = codeIn(await mails.next(email));
    const changed = (await invite(dispatcher, { email, name: 'Tilda' }, 200)).json();
    assert.deepEqual([changed.name, changed.roles], ['Tilda', ['technician']]);
    const third = codeIn(await mails.next(email));
    const message = 'you may not give the role "dispatcher"';
    const refused = { status: 403, code: 'forbidden', members: { error: message } };
    await invite(dispatcher, { email, roles: ['dispatcher'] }, refused);
    await invite(dispatcher, { email, disabled: true }, [409, 'account_entered']);
    for (const code of [first, second]) await accept({ code, password }, [400, 'code_invalid']);
    assert.equal(tokensOf(await accept({ code: third, password }, 200)).userId, account.id);
    // An account that the dispatcher may not know is an address that is taken, as for a creation.
    const elsewhere = newAddress();
    await invite(adminKey, { email: elsewhere, tenant: 'south' }, 201);
    for (const request of [make, invite])
      await request(dispatcher, { email: elsewhere, tenant: 'north' }, [409, 'unique_taken']);
  });

  test('of many that invite an address at once one creates the account, and each mails a code', async () => {
    const email = newAddress();
    const answers = await Promise.all(Array.from({ length: 4 }, () => invite(adminKey, { email })));
    assert.deepEqual(statusesOf(answers), [200, 200, 200, 201]);
    const codes = [];
    for (let count = 0; count < 4; count += 1) codes.push(codeIn(await mails.next(email)));
    const entered = [];
    for (const code of codes) entered.push((await accept({ code, password })).status);
    assert.deepEqual(entered.sort(), [200, 400, 400, 400]);
  });

  test('without a mail server, only an administrator gets the link, once, and it verifies no address', async (context) => {
    const page = 'https://app.shop.example/join#{code}';
    const program = await startServer({ config, engine, env: { COMITY_MAIL_INVITATION_URL: page } });
    context.after(() => program.stop());
    const post = (path: string, json: object, expect: Expectation, as?: string) =>
      program.send('POST', `/api/v1/${path}`, {
        ...{ json, expect },
        ...(as === undefined ? {} : { headers: bearer(as) }),
      });
    const email = 'lia@field.example';
    await post(
      'auth/invite',
      { email },
      {
        ...{ status: 503, code: 'unavailable' },
        members: { error: 'no mail server is configured: set COMITY_SMTP_URL' },
      },
    );
    const made = await post('auth/invite/link', { email, tenant: 'north', roles: ['dispatcher'] }, 201);
    const { id, invitation } = made.json();
    assert.equal(invitation.url, page.replace('{code}', invitation.code));
    assert.ok(Date.parse(invitation.expiresAt) > Date.now());
    assert.ok(!(await program.send('GET', `/api/v1/users/${id}`)).body.includes(invitation.code));
    // Another one ends it.
    const again = await post('auth/invite/link', { email }, 200);
    const { code } = again.json().invitation;
    await post('auth/invitation/accept', { code: invitation.code, password }, [400, 'code_invalid']);
    const entered = await post('auth/invitation/accept', { code, password }, 200);
    const { emailVerified } = (await program.send('GET', `/api/v1/users/${id}`)).json();
    assert.equal(emailVerified, false);
    await post('auth/invitation/accept', { code, password }, [400, 'code_invalid']);
    await post('auth/invite/link', { email }, [409, 'account_entered']);
    // Who administers accounts without being an administrator waits for the mail.
    const { token } = entered.json();
    await post(
      'auth/invite/link',
      { email: 'leo@field.example', tenant: 'north' },
      [403, 'forbidden'],
      token,
    );
  });

  test('no link where a login needs a verified address', async (context) => {
    const env = { COMITY_VERIFIED_EMAIL_REQUIRED: 'on', COMITY_SMTP_URL: mails.url };
    const program = await startServer({ config, engine, env });
    context.after(() => program.stop());
    const json = { email: 'lia@field.example' };
    await program.send('POST', '/api/v1/auth/invite/link', { json, expect: 404 });
  });

  test('an invitation passes the hooks of accounts, and needs their fields', async (context) => {
    const program = await startServer({ config: guild, engine, env: { COMITY_SMTP_URL: mails.url } });
    context.after(() => program.stop());
    const json = (expect: Expectation, content: object) =>
      program.send('POST', '/api/v1/auth/invite', { json: content, expect });
    await json([400, 'field_missing'], { email: 'lou@guild.example' });
    await json([409, 'no_such_nick'], { email: 'lou@guild.example', nick: 'refused', level: 7 });
    const { id, level } = (await json(201, { email: 'lou@guild.example', nick: 'lou', level: 7 })).json();
    assert.equal(level, 1);
    assert.equal((await json(200, { email: 'lou@guild.example', level: 2 })).json().level, 2);
    await json([409, 'unique_taken'], { email: 'max@guild.example', nick: 'lou', level: 7 });
    const profiles = await program.list('/api/v1/profiles');
    assert.deepEqual(
      profiles.map(({ userId }) => userId),
      [id],
    );
    await mails.next('lou@guild.example');
    assert.ok(!mails.received.some(({ to }) => to.includes('max@guild.example')));
  });

  test('invitations and changes of the address are absent where they are closed', async (context) => {
    const closed = fileURLToPath(new URL('./fixtures/closed.config.ts', import.meta.url));
    const program = await startServer({ config: closed, engine, env: { COMITY_SMTP_URL: mails.url } });
    context.after(() => program.stop());
    for (const path of ['invite', 'invitation/accept', 'me/email', 'me/email/undo'])
      await program.send('POST', `/api/v1/auth/${path}`, { json: {}, expect: 404 });
  });

  test('accounts with a role that requires a second factor can only add one', async () => {
    const { token, userId, email } = await member({ roles: ['owner'] });
    await client.ask('GET', 'orders', { as: token, expect: [403, 'second_factor_enrolment_required'] });
    const members = { required: true, enrolled: false, passkeys: 0 };
    await client.ask('GET', 'auth/second-factor', { as: token, expect: { status: 200, members } });
    const path = `users/${userId}/second-factor`;
    await client.ask('GET', path, { as: adminKey, expect: { status: 200, members } });
    await client.ask('GET', path, { as: (await member({})).token, expect: 403 });
    await client.ask('GET', 'users/usr_none/second-factor', { as: adminKey, expect: 404 });
    // The role counts as it is now, for sessions and keys that are open.
    await changeUser(client, userId, { roles: ['dispatcher'] });
    await client.ask('GET', 'orders', { as: token, expect: 200 });
    const { key } = await makeKey(client, bearer(token), { name: 'mine' });
    await changeUser(client, userId, { roles: ['dispatcher', 'owner'] });
    for (const credential of [token, key])
      await client.ask('GET', 'orders', {
        as: credential,
        expect: [403, 'second_factor_enrolment_required'],
      });
    assert.equal((await login(client, email, password)).userId, userId);
  });
});

function statusesOf(answers: readonly Answer[]): readonly number[] {
  return answers.map(({ status }) => status).sort();
}
