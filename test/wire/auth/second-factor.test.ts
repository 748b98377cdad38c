/** The second factor of an account: an authenticator application and recovery codes (§5.8), over the wire. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secret, TOTP } from 'otpauth';
import {
  type Answer,
  asAdministrator,
  base,
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

const password = 'correct horse';
/** A wide window: a file of tests uses more codes than a person does. */
const { client } = await serveAccounts({
  env: { COMITY_TOTP_WINDOW_STEPS_MAX: '10', COMITY_LOGIN_ATTEMPTS: '0' },
});

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

async function post(
  at: Client,
  path: string,
  json: Readonly<Record<string, unknown>>,
  token?: string,
): Promise<Answer> {
  return at.ask('POST', `${base}/auth/${path}`, {
    json,
    ...(token === undefined ? {} : { headers: bearer(token) }),
  });
}

function assertRefused(answer: Answer, status: number, code: string): void {
  assert.equal(answer.status, status, answer.body);
  assert.equal(answer.json().code, code);
}

async function enrol(person: Person, at: Client = client): Promise<Enrolled> {
  const begun = await post(at, 'second-factor/totp', { password }, person.token);
  assert.equal(begun.status, 200, begun.body);
  const { enrolment, secret } = begun.json() as { enrolment: string; secret: string };
  const code = authenticator(secret);
  const confirmed = await post(at, 'second-factor/totp/confirm', { enrolment, code: code() }, person.token);
  assert.equal(confirmed.status, 200, confirmed.body);
  const { recoveryCodes } = confirmed.json() as { recoveryCodes: string[] };
  assert.equal(recoveryCodes.length, 10);
  return { ...person, code, recoveryCodes };
}

async function challengeOf(person: Pick<Person, 'email'>, at: Client = client): Promise<string> {
  const answer = await post(at, 'login', { email: person.email, password });
  assertRefused(answer, 401, 'second_factor_required');
  return String(answer.json().challenge);
}

test('answers a right password with a challenge, which a code turns into a session', async () => {
  const person = await enrol(await join());
  const first = await post(client, 'login', { email: person.email, password });
  assertRefused(first, 401, 'second_factor_required');
  const { challenge, expiresIn, methods, token } = first.json();
  assert.equal(expiresIn, 300);
  assert.deepEqual(methods, ['totp', 'recovery_code']);
  assert.equal(token, undefined);
  assert.match(String(first.headers['www-authenticate']), /Bearer/);
  const finished = await post(client, 'login/second-factor', {
    challenge,
    code: person.code(),
    cookie: true,
  });
  assert.equal(finished.status, 200, finished.body);
  const tokens = tokensOf(finished);
  for (const headers of [bearer(tokens.token), { Cookie: cookieOf(finished) ?? '' }]) {
    assert.equal((await client.ask('GET', `${base}/auth/me`, { headers })).status, 200);
  }
  const refreshed = await post(client, 'refresh', { refreshToken: tokens.refreshToken });
  assert.equal(refreshed.status, 200, refreshed.body);
});

test('takes the code with the password in one request', async () => {
  const person = await enrol(await join());
  const answer = await post(client, 'login', { email: person.email, password, code: person.code() });
  assert.equal(answer.status, 200, answer.body);
  const wrong = await post(client, 'login', { email: person.email, password, code: '000000' });
  assertRefused(wrong, 401, 'second_factor_invalid');
  const plain = await join();
  const ignored = await post(client, 'login', { email: plain.email, password, code: '000000' });
  assert.equal(ignored.status, 200, ignored.body);
});

test('refuses a code that was used, and one of an earlier time step than a used one', async () => {
  const person = await enrol(await join());
  const [earlier, used] = [person.code(), person.code()];
  const login = (code: string) => post(client, 'login', { email: person.email, password, code });
  assert.equal((await login(used)).status, 200);
  assertRefused(await login(used), 401, 'second_factor_invalid');
  assertRefused(await login(earlier), 401, 'second_factor_invalid');
  assert.equal((await login(person.code())).status, 200);
});

test('opens one session for one recovery code, however many ask at once', async () => {
  const person = await enrol(await join());
  const [code = ''] = person.recoveryCodes;
  const challenge = await challengeOf(person);
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => post(client, 'login/second-factor', { challenge, code })),
  );
  assert.equal(answers.filter(({ status }) => status === 200).length, 1);
  for (const answer of answers) if (answer.status !== 200) assert.ok([400, 401].includes(answer.status));
  const others = await Promise.all(
    Array.from({ length: 10 }, async () =>
      post(client, 'login/second-factor', { challenge: await challengeOf(person), code }),
    ),
  );
  for (const answer of others) assertRefused(answer, 401, 'second_factor_invalid');
  const left = await client.ask('GET', `${base}/auth/second-factor`, { headers: bearer(person.token) });
  assert.equal(left.json().recoveryCodesLeft, 9);
});

test('accepts a challenge once, and only for its account and its purpose', async () => {
  const [ada, eve] = [await enrol(await join()), await enrol(await join())];
  const challenge = await challengeOf(ada);
  assertRefused(
    await post(client, 'login/second-factor', { challenge, code: eve.code() }),
    401,
    'second_factor_invalid',
  );
  const first = await post(client, 'login/second-factor', { challenge, code: ada.code() });
  assert.equal(first.status, 200, first.body);
  const again = await post(client, 'login/second-factor', { challenge, code: ada.code() });
  assertRefused(again, 400, 'challenge_invalid');
  const begun = await post(client, 'second-factor/totp', { code: ada.code() }, ada.token);
  const { enrolment } = begun.json() as { enrolment: string };
  for (const wrong of [enrolment, `${challenge}A`, 'x', '', 'A'.repeat(5000)]) {
    const answer = await post(client, 'login/second-factor', { challenge: wrong, code: ada.code() });
    assertRefused(answer, 400, 'challenge_invalid');
  }
  const stolen = await post(client, 'second-factor/totp/confirm', { enrolment, code: eve.code() }, eve.token);
  assertRefused(stolen, 400, 'challenge_invalid');
});

test('makes a challenge void when the password changes, and keeps the factor', async () => {
  const person = await enrol(await join());
  const challenge = await challengeOf(person);
  const changed = await post(
    client,
    'password',
    { currentPassword: password, newPassword: 'a much better one' },
    person.token,
  );
  assert.equal(changed.status, 204, changed.body);
  const answer = await post(client, 'login/second-factor', { challenge, code: person.code() });
  assertRefused(answer, 400, 'challenge_invalid');
  const login = await post(client, 'login', { email: person.email, password: 'a much better one' });
  assertRefused(login, 401, 'second_factor_required');
});

test('does not let Basic authentication past the second factor, not even a remembered one', async () => {
  const person = await join();
  const headers = basic(person.email, password);
  const me = () => client.ask('GET', `${base}/auth/me`, { headers });
  assert.equal((await me()).status, 200);
  const enrolled = await enrol(person);
  assertRefused(await me(), 401, 'second_factor_required');
  const removed = await post(client, 'second-factor/totp/remove', { code: enrolled.code() }, enrolled.token);
  assert.equal(removed.status, 204, removed.body);
  assert.equal((await me()).status, 200);
});

test('asks for the password before the first factor is added, and for a code from then on', async () => {
  const person = await join();
  const begin = (json: Readonly<Record<string, unknown>>) =>
    post(client, 'second-factor/totp', json, person.token);
  assertRefused(await begin({}), 401, 'invalid_credentials');
  assertRefused(await begin({ password: 'wrong horse' }), 401, 'invalid_credentials');
  const early = await begin({ password });
  assert.equal(early.status, 200, early.body);
  const enrolled = await enrol(person);
  for (const action of ['second-factor/totp', 'second-factor/totp/remove', 'second-factor/recovery-codes']) {
    const proof = action === 'second-factor/totp' ? { password } : {};
    const bare = await post(client, action, proof, enrolled.token);
    assert.ok([400, 401].includes(bare.status), bare.body);
    assertRefused(
      await post(client, action, { code: '000000' }, enrolled.token),
      401,
      'second_factor_invalid',
    );
  }
  // The enrolment that a password proved before there was a factor is void.
  const { enrolment, secret } = early.json() as { enrolment: string; secret: string };
  const late = { enrolment, code: authenticator(secret)() };
  assertRefused(
    await post(client, 'second-factor/totp/confirm', late, enrolled.token),
    400,
    'challenge_invalid',
  );
});

test('does not store a secret before a code confirms it, and confirms it once', async () => {
  const person = await join();
  const begun = await post(client, 'second-factor/totp', { password }, person.token);
  const { enrolment, secret, uri } = begun.json() as { enrolment: string; secret: string; uri: string };
  assert.match(uri, /^otpauth:\/\/totp\//);
  assert.ok(uri.includes(`secret=${secret}`));
  const code = authenticator(secret);
  const confirm = (text: string) =>
    post(client, 'second-factor/totp/confirm', { enrolment, code: text }, person.token);
  assertRefused(await confirm('000000'), 401, 'second_factor_invalid');
  const plain = await post(client, 'login', { email: person.email, password });
  assert.equal(plain.status, 200, plain.body);
  assert.equal((await confirm(code())).status, 200);
  assertRefused(await confirm(code()), 400, 'challenge_invalid');
});

test('ends the other sessions of the account with its first factor', async () => {
  const person = await join();
  const other = await login(client, person.email, password);
  await enrol(person);
  const me = (token: string) => client.ask('GET', `${base}/auth/me`, { headers: bearer(token) });
  assert.equal((await me(person.token)).status, 200);
  assert.equal((await me(other.token)).status, 401);
});

test('replaces recovery codes, so that the earlier ones no longer work', async () => {
  const person = await enrol(await join());
  const renewed = await post(client, 'second-factor/recovery-codes', { code: person.code() }, person.token);
  assert.equal(renewed.status, 200, renewed.body);
  const { recoveryCodes } = renewed.json() as { recoveryCodes: string[] };
  const login = (code: string) => post(client, 'login', { email: person.email, password, code });
  assertRefused(await login(person.recoveryCodes[0] ?? ''), 401, 'second_factor_invalid');
  const typed = (recoveryCodes[0] ?? '').toUpperCase().replaceAll('-', ' ');
  assert.equal((await login(typed)).status, 200);
});

test('lets an administrator alone reset a factor, which ends the sessions of the account and is audited', async () => {
  const [person, other] = [await enrol(await join()), await join()];
  const reset = (headers: Readonly<Record<string, string>>, id = person.userId) =>
    client.ask('POST', `${base}/users/${id}/reset-second-factor`, { headers });
  assert.equal((await reset(bearer(other.token))).status, 403);
  assert.equal((await reset(bearer(person.token))).status, 403);
  assert.equal((await reset(asAdministrator, 'usr_nobody')).status, 404);
  const challenge = await challengeOf(person);
  assert.equal((await reset(asAdministrator)).status, 204);
  assert.equal((await reset(asAdministrator)).status, 204);
  const me = await client.ask('GET', `${base}/auth/me`, { headers: bearer(person.token) });
  assert.equal(me.status, 401);
  const late = await post(client, 'login/second-factor', { challenge, code: person.code() });
  assertRefused(late, 400, 'challenge_invalid');
  await login(client, person.email, password);
  const audit = await client.ask('GET', `${base}/audit?subject=${person.userId}&limit=100`, {
    headers: asAdministrator,
  });
  const { items } = audit.json() as { items: { type: string; actor?: string }[] };
  const types = items.map(({ type }) => type);
  assert.equal(types.filter((type) => type === 'second_factor.reset').length, 1);
  assert.equal(types.filter((type) => type === 'second_factor.added').length, 1);
  assert.ok(!audit.body.includes(person.recoveryCodes[0] ?? 'missing'));
});

test('opens the second factor to people only', async () => {
  const person = await join();
  const { key } = await makeKey(client, bearer(person.token));
  for (const headers of [{ Authorization: `ApiKey ${key}` }, asAdministrator]) {
    const read = await client.ask('GET', `${base}/auth/second-factor`, { headers });
    assertRefused(read, 403, 'forbidden');
    const begun = await client.ask('POST', `${base}/auth/second-factor/totp`, {
      headers,
      json: { password },
    });
    assertRefused(begun, 403, 'forbidden');
  }
  assert.equal((await client.ask('GET', `${base}/auth/second-factor`)).status, 401);
});

test('leaves nothing behind when the account is deleted', async () => {
  const person = await enrol(await join());
  const gone = await client.ask('DELETE', `${base}/users/${person.userId}`, { headers: asAdministrator });
  assert.equal(gone.status, 204, gone.body);
  const answer = await post(client, 'login', { email: person.email, password, code: person.code() });
  assertRefused(answer, 401, 'invalid_credentials');
});

test('limits wrong codes by account and by address, as failed logins', async () => {
  const { client: limited } = await serveAccounts({
    env: { COMITY_TOTP_WINDOW_STEPS_MAX: '10', COMITY_LOGIN_ATTEMPTS: '5' },
  });
  const person = await enrol(await join(limited), limited);
  const challenge = await challengeOf(person, limited);
  const guesses = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      post(limited, 'login/second-factor', { challenge, code: String(index).padStart(6, '0') }),
    ),
  );
  assert.equal(guesses.filter(({ status }) => status === 401).length, 5);
  const refused = guesses.filter(({ status }) => status === 429);
  assert.equal(refused.length, 15);
  assert.ok(Number(refused[0]?.headers['retry-after']) > 0);
  // Neither the right code nor a session of the account changes that.
  const right = await post(limited, 'login/second-factor', { challenge, code: person.code() });
  assertRefused(right, 429, 'rate_limited');
  const removal = await post(limited, 'second-factor/totp/remove', { code: person.code() }, person.token);
  assertRefused(removal, 429, 'rate_limited');
});

for (const mode of ['administrators', 'required'] as const) {
  test(`COMITY_SECOND_FACTOR=${mode}: an account that needs a factor can only add one`, async () => {
    const { client: strict } = await serveAccounts({
      env: { COMITY_TOTP_WINDOW_STEPS_MAX: '10', COMITY_SECOND_FACTOR: mode },
    });
    const [first, plain] = [await join(strict), await join(strict)];
    const at = (path: string, headers: Readonly<Record<string, string>>) =>
      strict.ask('GET', `${base}${path}`, { headers });
    let keyed: Readonly<Record<string, string>> = {};
    if (mode === 'administrators') {
      assert.equal((await at('/notes', bearer(first.token))).status, 200);
      keyed = { Authorization: `ApiKey ${(await makeKey(strict, bearer(first.token))).key}` };
      assert.equal((await at('/notes', keyed)).status, 200);
      await changeUser(strict, first.userId, { roles: ['administrator'] });
      assertRefused(await at('/notes', keyed), 403, 'second_factor_enrolment_required');
    }
    const again = await post(strict, 'login', { email: first.email, password, cookie: true });
    assert.equal(again.status, 200, again.body);
    const limitedCredentials = [
      bearer(first.token),
      { Cookie: cookieOf(again) ?? '' },
      basic(first.email, password),
    ];
    for (const headers of limitedCredentials) {
      for (const path of ['/notes', '/users', '/products', '/keys', '/events']) {
        assertRefused(await at(path, headers), 403, 'second_factor_enrolment_required');
      }
      const key = await strict.ask('POST', `${base}/keys`, { headers, json: { name: 'k', kind: 'secret' } });
      assertRefused(key, 403, 'second_factor_enrolment_required');
      assert.equal((await at('/auth/me', headers)).status, 200);
      const status = (await at('/auth/second-factor', headers)).json();
      assert.deepEqual([status.required, status.enrolled], [true, false]);
    }
    const other = await at('/notes', bearer(plain.token));
    assert.equal(other.status, mode === 'required' ? 403 : 200, other.body);
    assert.equal((await at('/users', asAdministrator)).status, 200);
    const enrolled = await enrol(first, strict);
    assert.equal((await at('/notes', bearer(first.token))).status, 200);
    if (mode === 'administrators') assert.equal((await at('/notes', keyed)).status, 200);
    const removed = await post(strict, 'second-factor/totp/remove', { code: enrolled.code() }, first.token);
    assert.equal(removed.status, 204, removed.body);
    assertRefused(await at('/notes', bearer(first.token)), 403, 'second_factor_enrolment_required');
    const out = await strict.ask('POST', `${base}/auth/logout`, { headers: bearer(first.token) });
    assert.equal(out.status, 204, out.body);
  });
}
