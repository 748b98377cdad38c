/** The second factor of an account: an authenticator application and recovery codes (§5.8), over the wire. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secret, TOTP } from 'otpauth';
import {
  asAdministrator,
  basic,
  bearer,
  type Client,
  changeUser,
  cookieOf,
  login,
  makeKey,
  register,
  serveAccounts,
  type Tokens,
  tokensOf,
} from '../../harness/account-client.ts';
import { adminKey } from '../../harness/exchange.ts';
import type { Expectation } from '../../harness/expected-answer.ts';
import { valuesOf } from '../../harness/values-of.ts';

const password = 'correct horse';
/** A wide window: a file of tests uses more codes than a person does. */
const { client } = await serveAccounts({
  env: { COMITY_TOTP_WINDOW_STEPS_MAX: '10', COMITY_LOGIN_ATTEMPTS: '0' },
});

const required: Expectation = [401, 'second_factor_required'];
const invalid: Expectation = [401, 'second_factor_invalid'];
const spent: Expectation = [400, 'challenge_invalid'];

let people = 0;

type Person = Tokens & { readonly email: string };

async function join(at: Client = client): Promise<Person> {
  people += 1;
  const email = `person${people}@shop.example`;
  return { ...(await register(at, email, password)), email };
}

/** An authenticator application: codes of later and later time steps, from the first of the window. */
function authenticator(secret: string): () => string {
  const totp = new TOTP({ secret: Secret.fromBase32(secret) });
  let step = Math.floor(Date.now() / 30_000) - 9;
  return () => totp.generate({ timestamp: step++ * 30_000 });
}

type Enrolled = Person & { readonly code: () => string; readonly recoveryCodes: readonly string[] };

const post = (path: string, json: unknown, expect: Expectation, token?: string, at: Client = client) =>
  at.ask('POST', `auth/${path}`, { json, as: token, expect });
const logIn = ({ email }: Pick<Person, 'email'>, code: string, expect: Expectation) =>
  post('login', { email, password, code }, expect);
const finish = (challenge: string, code: string | undefined, expect: Expectation, at: Client = client) =>
  post('login/second-factor', { challenge, code }, expect, undefined, at);
const me = (headers: Readonly<Record<string, string>>, expect: Expectation) =>
  client.ask('GET', 'auth/me', { headers, expect });

async function enrol(person: Person, at: Client = client): Promise<Enrolled> {
  const begun = await post('second-factor/totp', { password }, 200, person.token, at);
  const { enrolment, secret } = begun.json();
  const code = authenticator(secret);
  const json = { enrolment, code: code() };
  const confirmed = await post('second-factor/totp/confirm', json, 200, person.token, at);
  const { recoveryCodes } = confirmed.json();
  assert.equal(recoveryCodes.length, 10);
  return { ...person, code, recoveryCodes };
}

async function challengeOf({ email }: Pick<Person, 'email'>, at: Client = client): Promise<string> {
  return String((await post('login', { email, password }, required, undefined, at)).json().challenge);
}

test('answers a right password with a challenge, which a code turns into a session', async () => {
  const person = await enrol(await join());
  const first = await post(
    'login',
    { email: person.email, password },
    {
      status: 401,
      code: 'second_factor_required',
      members: { expiresIn: 300, methods: ['totp', 'recovery_code'], token: undefined },
      fields: { 'www-authenticate': /Bearer/ },
    },
  );
  const { challenge } = first.json();
  const finished = await post('login/second-factor', { challenge, code: person.code(), cookie: true }, 200);
  const tokens = tokensOf(finished);
  await me(bearer(tokens.token), 200);
  await me({ Cookie: cookieOf(finished) ?? '' }, 200);
  await post('refresh', { refreshToken: tokens.refreshToken }, 200);
});

test('takes the code with the password in one request', async () => {
  const person = await enrol(await join());
  await logIn(person, person.code(), 200);
  await logIn(person, '000000', invalid);
  // Where there is no factor, a code is ignored.
  await logIn(await join(), '000000', 200);
});

test('refuses a code that was used, and one of an earlier time step than a used one', async () => {
  const person = await enrol(await join());
  const [earlier, used] = [person.code(), person.code()];
  await logIn(person, used, 200);
  await logIn(person, used, invalid);
  await logIn(person, earlier, invalid);
  await logIn(person, person.code(), 200);
});

test('opens one session for one recovery code, however many ask at once', async () => {
  const person = await enrol(await join());
  const [code = ''] = person.recoveryCodes;
  const challenge = await challengeOf(person);
  const json = { challenge, code };
  const asked = Array.from({ length: 50 }, () => client.ask('POST', 'auth/login/second-factor', { json }));
  const statuses = valuesOf(await Promise.all(asked), 'status');
  assert.equal(statuses.filter((status) => status === 200).length, 1);
  for (const status of statuses) assert.ok([200, 400, 401].includes(status), String(status));
  await Promise.all(Array.from({ length: 10 }, async () => finish(await challengeOf(person), code, invalid)));
  const expect = { status: 200, members: { recoveryCodesLeft: 9 } };
  await client.ask('GET', 'auth/second-factor', { as: person.token, expect });
});

test('accepts a challenge once, and only for its account and its purpose', async () => {
  const [ada, eve] = [await enrol(await join()), await enrol(await join())];
  const challenge = await challengeOf(ada);
  await finish(challenge, eve.code(), invalid);
  await finish(challenge, ada.code(), 200);
  await finish(challenge, ada.code(), spent);
  const { enrolment } = (await post('second-factor/totp', { code: ada.code() }, 200, ada.token)).json();
  for (const wrong of [enrolment, `${challenge}A`, 'x', '', 'A'.repeat(5000)]) {
    await finish(wrong, ada.code(), spent);
  }
  await post('second-factor/totp/confirm', { enrolment, code: eve.code() }, spent, eve.token);
});

test('makes a challenge void when the password changes, and keeps the factor', async () => {
  const person = await enrol(await join());
  const challenge = await challengeOf(person);
  const newPassword = 'a much better one';
  await post('password', { currentPassword: password, newPassword }, 204, person.token);
  await finish(challenge, person.code(), spent);
  await post('login', { email: person.email, password: newPassword }, required);
});

test('does not let Basic authentication past the second factor, not even a remembered one', async () => {
  const person = await join();
  const headers = basic(person.email, password);
  await me(headers, 200);
  const enrolled = await enrol(person);
  await me(headers, required);
  await post('second-factor/totp/remove', { code: enrolled.code() }, 204, enrolled.token);
  await me(headers, 200);
});

test('asks for the password before the first factor is added, and for a code from then on', async () => {
  const person = await join();
  const begin = (json: object, expect: Expectation) => post('second-factor/totp', json, expect, person.token);
  await begin({}, [401, 'invalid_credentials']);
  await begin({ password: 'wrong horse' }, [401, 'invalid_credentials']);
  const { enrolment, secret } = (await begin({ password }, 200)).json();
  const enrolled = await enrol(person);
  for (const action of ['second-factor/totp', 'second-factor/totp/remove', 'second-factor/recovery-codes']) {
    const json = action === 'second-factor/totp' ? { password } : {};
    const bare = await client.ask('POST', `auth/${action}`, { json, as: enrolled.token });
    assert.ok([400, 401].includes(bare.status), bare.body);
    await post(action, { code: '000000' }, invalid, enrolled.token);
  }
  // The enrolment that a password proved before there was a factor is void.
  const late = { enrolment, code: authenticator(secret)() };
  await post('second-factor/totp/confirm', late, spent, enrolled.token);
});

test('does not store a secret before a code confirms it, and confirms it once', async () => {
  const person = await join();
  const begun = await post('second-factor/totp', { password }, 200, person.token);
  const { enrolment, secret, uri } = begun.json();
  assert.match(uri, /^otpauth:\/\/totp\//);
  assert.ok(uri.includes(`secret=${secret}`));
  const code = authenticator(secret);
  const confirm = (text: string, expect: Expectation) =>
    post('second-factor/totp/confirm', { enrolment, code: text }, expect, person.token);
  await confirm('000000', invalid);
  await post('login', { email: person.email, password }, 200);
  await confirm(code(), 200);
  await confirm(code(), spent);
});

test('ends the other sessions of the account with its first factor', async () => {
  const person = await join();
  const other = await login(client, person.email, password);
  await enrol(person);
  await me(bearer(person.token), 200);
  await me(bearer(other.token), 401);
});

test('replaces recovery codes, so that the earlier ones no longer work', async () => {
  const person = await enrol(await join());
  const renewed = await post('second-factor/recovery-codes', { code: person.code() }, 200, person.token);
  const [code] = renewed.json().recoveryCodes;
  await logIn(person, person.recoveryCodes[0] ?? '', invalid);
  await logIn(person, code.toUpperCase().replaceAll('-', ' '), 200);
});

test('lets an administrator alone reset a factor, which ends the sessions of the account and is audited', async () => {
  const [person, other] = [await enrol(await join()), await join()];
  const reset = (token: string, expect: Expectation, id = person.userId) =>
    client.ask('POST', `users/${id}/reset-second-factor`, { as: token, expect });
  await reset(other.token, 403);
  await reset(person.token, 403);
  await reset(adminKey, 404, 'usr_nobody');
  const challenge = await challengeOf(person);
  await reset(adminKey, 204);
  await reset(adminKey, 204);
  await me(bearer(person.token), 401);
  await finish(challenge, person.code(), spent);
  await login(client, person.email, password);
  const lacks = [person.recoveryCodes[0] ?? 'missing'];
  const trail = `audit?subject=${person.userId}&limit=100`;
  const audit = await client.ask('GET', trail, { as: adminKey, expect: { status: 200, lacks } });
  const types = valuesOf(audit.json().items, 'type');
  for (const type of ['second_factor.reset', 'second_factor.added']) {
    assert.equal(types.filter((each) => each === type).length, 1);
  }
});

test('opens the second factor to people only', async () => {
  const person = await join();
  const { key } = await makeKey(client, bearer(person.token));
  const expect: Expectation = [403, 'forbidden'];
  for (const headers of [{ Authorization: `ApiKey ${key}` }, asAdministrator]) {
    await client.ask('GET', 'auth/second-factor', { headers, expect });
    await client.ask('POST', 'auth/second-factor/totp', { headers, json: { password }, expect });
  }
  await client.ask('GET', 'auth/second-factor', { expect: 401 });
});

test('leaves nothing behind when the account is deleted', async () => {
  const person = await enrol(await join());
  await client.ask('DELETE', `users/${person.userId}`, { as: adminKey, expect: 204 });
  await logIn(person, person.code(), [401, 'invalid_credentials']);
});

test('limits wrong codes by account and by address, as failed logins', async () => {
  const { client: limited } = await serveAccounts({
    env: { COMITY_TOTP_WINDOW_STEPS_MAX: '10', COMITY_LOGIN_ATTEMPTS: '5' },
  });
  const person = await enrol(await join(limited), limited);
  const challenge = await challengeOf(person, limited);
  const guesses = await Promise.all(
    Array.from({ length: 20 }, (_, index) => {
      const json = { challenge, code: String(index).padStart(6, '0') };
      return limited.ask('POST', 'auth/login/second-factor', { json });
    }),
  );
  assert.equal(guesses.filter(({ status }) => status === 401).length, 5);
  const refused = guesses.filter(({ status }) => status === 429);
  assert.equal(refused.length, 15);
  assert.ok(Number(refused[0]?.headers['retry-after']) > 0);
  // Neither the right code nor a session of the account changes that.
  const limit: Expectation = [429, 'rate_limited'];
  await finish(challenge, person.code(), limit, limited);
  await post('second-factor/totp/remove', { code: person.code() }, limit, person.token, limited);
});

for (const mode of ['administrators', 'required'] as const) {
  test(`COMITY_SECOND_FACTOR=${mode}: an account that needs a factor can only add one`, async () => {
    const { client: strict } = await serveAccounts({
      env: { COMITY_TOTP_WINDOW_STEPS_MAX: '10', COMITY_SECOND_FACTOR: mode },
    });
    const needed: Expectation = [403, 'second_factor_enrolment_required'];
    const [first, plain] = [await join(strict), await join(strict)];
    const at = (path: string, headers: Readonly<Record<string, string>>, expect: Expectation) =>
      strict.ask('GET', path, { headers, expect });
    let keyed: Readonly<Record<string, string>> = {};
    if (mode === 'administrators') {
      await at('notes', bearer(first.token), 200);
      keyed = { Authorization: `ApiKey ${(await makeKey(strict, bearer(first.token))).key}` };
      await at('notes', keyed, 200);
      await changeUser(strict, first.userId, { roles: ['administrator'] });
      await at('notes', keyed, needed);
    }
    const json = { email: first.email, password, cookie: true };
    const again = await post('login', json, 200, undefined, strict);
    const cookie = { Cookie: cookieOf(again) ?? '' };
    for (const headers of [bearer(first.token), cookie, basic(first.email, password)]) {
      for (const path of ['notes', 'users', 'products', 'keys', 'events']) await at(path, headers, needed);
      await strict.ask('POST', 'keys', { headers, json: { name: 'k', kind: 'secret' }, expect: needed });
      await at('auth/me', headers, 200);
      const members = { required: true, enrolled: false };
      await at('auth/second-factor', headers, { status: 200, members });
    }
    await at('notes', bearer(plain.token), mode === 'required' ? 403 : 200);
    await at('users', asAdministrator, 200);
    const enrolled = await enrol(first, strict);
    await at('notes', bearer(first.token), 200);
    if (mode === 'administrators') await at('notes', keyed, 200);
    await post('second-factor/totp/remove', { code: enrolled.code() }, 204, first.token, strict);
    await at('notes', bearer(first.token), needed);
    await strict.ask('POST', 'auth/logout', { as: first.token, expect: 204 });
  });
}
