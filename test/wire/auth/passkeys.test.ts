/** Passkeys of the running program (§5.8), with an authenticator in software that makes every mistake on request. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Answer,
  asAdministrator,
  base,
  bearer,
  cookieOf,
  register,
  serveAccounts,
  type Tokens,
  tokensOf,
} from '../../harness/account-client.ts';
import { type Ceremony, createPasskey, type SoftwarePasskey } from './fixtures/software-authenticator.ts';

const password = 'correct horse';
const origin = 'https://app.shop.example';
const rpId = 'shop.example';
const { client } = await serveAccounts({
  env: {
    COMITY_PASSKEY_ORIGINS: `${origin},https://www.shop.example`,
    COMITY_PASSKEY_RELYING_PARTY_ID: rpId,
    COMITY_PASSKEYS_PER_ACCOUNT_MAX: '3',
    COMITY_LOGIN_ATTEMPTS: '0',
  },
});

let people = 0;
type Person = Tokens & { readonly email: string };

async function join(): Promise<Person> {
  people += 1;
  const email = `keys${people}@shop.example`;
  return { ...(await register(client, email, password)), email };
}

function post(path: string, json: unknown, token?: string): Promise<Answer> {
  const headers = token === undefined ? {} : bearer(token);
  return client.ask('POST', `${base}/auth/${path}`, { json, headers });
}

function assertRefused(answer: Answer, status: number, code: string): void {
  assert.equal(answer.status, status, answer.body);
  assert.equal(answer.json().code, code);
}

type Begun = { readonly challenge: string; readonly ceremony: Ceremony; readonly options: Options };
type Options = {
  readonly challenge: string;
  readonly user?: { readonly id: string };
  readonly rp?: { readonly id: string };
  readonly allowCredentials?: readonly { readonly id: string }[];
  readonly userVerification?: string;
};

async function begin(path: string, json: unknown, token?: string): Promise<Begun> {
  const answer = await post(path, json, token);
  assert.equal(answer.status, 200, answer.body);
  const { challenge, options } = answer.json() as { challenge: string; options: Options };
  return { challenge, options, ceremony: { origin, rpId, challenge: options.challenge } };
}

type Holder = Person & {
  readonly passkey: SoftwarePasskey;
  readonly passkeyId: string;
  readonly recoveryCodes: readonly string[];
  readonly userHandle: string;
};

async function enrol(person: Person): Promise<Holder> {
  const begun = await begin('passkeys/options', { password }, person.token);
  const passkey = createPasskey();
  const response = passkey.register(begun.ceremony);
  const added = await post(
    'passkeys',
    { challenge: begun.challenge, name: 'Laptop', response },
    person.token,
  );
  assert.equal(added.status, 200, added.body);
  const { passkey: shown, recoveryCodes } = added.json() as {
    passkey: { id: string };
    recoveryCodes: string[];
  };
  assert.equal(recoveryCodes.length, 10);
  const userHandle = begun.options.user?.id ?? '';
  return { ...person, passkey, passkeyId: shown.id, recoveryCodes, userHandle };
}

async function logIn(holder: Holder, fault: Partial<Ceremony> = {}, cookie = false): Promise<Answer> {
  const { challenge, ceremony } = await begin('login/passkey/options', {});
  const response = holder.passkey.use({ ...ceremony, userHandle: holder.userHandle, ...fault });
  return post('login/passkey', { challenge, response, cookie });
}

async function stepOf(holder: Holder): Promise<string> {
  const answer = await post('login', { email: holder.email, password });
  assertRefused(answer, 401, 'second_factor_required');
  assert.deepEqual(answer.json().methods, ['passkey', 'recovery_code']);
  return String(answer.json().challenge);
}

test('logs in by a discoverable passkey alone, with tokens and a cookie', async () => {
  const holder = await enrol(await join());
  const { options } = await begin('login/passkey/options', {});
  assert.equal(options.userVerification, 'required');
  assert.equal(options.allowCredentials, undefined);
  const answer = await logIn(holder, {}, true);
  assert.equal(answer.status, 200, answer.body);
  const tokens = tokensOf(answer);
  assert.equal(tokens.userId, holder.userId);
  for (const headers of [bearer(tokens.token), { Cookie: cookieOf(answer) ?? '' }]) {
    assert.equal((await client.ask('GET', `${base}/auth/me`, { headers })).status, 200);
  }
});

test('takes a passkey as the second step of a login by password', async () => {
  const holder = await enrol(await join());
  const step = await stepOf(holder);
  const { challenge, ceremony, options } = await begin('login/passkey/options', { challenge: step });
  assert.deepEqual(
    options.allowCredentials?.map(({ id }) => id),
    [holder.passkey.id],
  );
  const response = holder.passkey.use({ ...ceremony, userVerified: false });
  const answer = await post('login/passkey', { challenge, response });
  assert.equal(answer.status, 200, answer.body);
  // The login is over: neither its own challenge nor that of the passkey works again.
  const code = holder.recoveryCodes[0];
  assertRefused(await post('login/second-factor', { challenge: step, code }), 400, 'challenge_invalid');
  assertRefused(await post('login/passkey', { challenge, response }), 400, 'challenge_invalid');
});

for (const [what, fault] of [
  ['another origin', { origin: 'https://evil.example' }],
  ['another relying party', { rpId: 'evil.example' }],
  ['another challenge', { challenge: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' }],
  ['no verification of its user', { userVerified: false }],
  ['another ceremony', { type: 'webauthn.create' }],
  ['a sign counter that did not grow', { counter: 0 }],
  ['the handle of nobody', { userHandle: Buffer.from('usr_nobody').toString('base64url') }],
] as const) {
  test(`refuses a passkey with ${what}`, async () => {
    const holder = await enrol(await join());
    assert.equal((await logIn(holder)).status, 200);
    assertRefused(await logIn(holder, fault), 401, 'passkey_invalid');
    assert.equal((await logIn(holder, { counter: 9 })).status, 200);
  });
}

test('refuses a passkey with the signature or the account of another', async () => {
  const [ada, eve] = [await enrol(await join()), await enrol(await join())];
  assertRefused(await logIn({ ...eve, userHandle: ada.userHandle }), 401, 'passkey_invalid');
  const step = await stepOf(ada);
  const { challenge, ceremony } = await begin('login/passkey/options', { challenge: step });
  const response = eve.passkey.use({ ...ceremony, userHandle: ada.userHandle });
  assertRefused(await post('login/passkey', { challenge, response }), 401, 'passkey_invalid');
  type Used = { readonly response: Record<string, unknown> };
  const forged = ada.passkey.use(ceremony) as Used;
  forged.response.signature = (eve.passkey.use(ceremony) as Used).response.signature;
  assertRefused(await post('login/passkey', { challenge, response: forged }), 401, 'passkey_invalid');
});

test('opens one session for one response of a passkey, however many send it at once', async () => {
  const holder = await enrol(await join());
  const { challenge, ceremony } = await begin('login/passkey/options', {});
  const response = holder.passkey.use({ ...ceremony, userHandle: holder.userHandle });
  const answers = await Promise.all(
    Array.from({ length: 30 }, () => post('login/passkey', { challenge, response })),
  );
  assert.equal(answers.filter(({ status }) => status === 200).length, 1);
  assert.equal(answers.filter(({ status }) => status === 400).length, 29);
});

test('registers a passkey once, for the account and the purpose of its challenge', async () => {
  const [person, other] = [await join(), await join()];
  const begun = await begin('passkeys/options', { password }, person.token);
  assert.equal(begun.options.rp?.id, rpId);
  const passkey = createPasskey();
  const response = passkey.register(begun.ceremony);
  const add = (token: string, challenge = begun.challenge) =>
    post('passkeys', { challenge, response }, token);
  assertRefused(await add(other.token), 400, 'challenge_invalid');
  assertRefused(await add(person.token, `${begun.challenge}A`), 400, 'challenge_invalid');
  const answers = await Promise.all(Array.from({ length: 10 }, () => add(person.token)));
  assert.equal(answers.filter(({ status }) => status === 200).length, 1);
  const listed = await client.ask('GET', `${base}/auth/passkeys`, { headers: bearer(person.token) });
  const { items } = listed.json() as { items: Record<string, unknown>[] };
  assert.equal(items.length, 1);
  assert.deepEqual(Object.keys(items[0] ?? {}), [
    ...['id', 'name', 'transports', 'backedUp', 'createdAt', 'lastUsedAt'],
  ]);
});

for (const [what, broken] of [
  ['no CBOR', Buffer.from('hello')],
  ['nesting without end', Buffer.alloc(12_000, 0x81)],
  ['a length without content', Buffer.from([0xbb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])],
  ['nothing', Buffer.alloc(0)],
] as const) {
  test(`refuses an attestation object of ${what}`, async () => {
    const person = await join();
    const { challenge, ceremony } = await begin('passkeys/options', { password }, person.token);
    const made = createPasskey().register(ceremony) as { response: Record<string, unknown> };
    made.response.attestationObject = broken.toString('base64url');
    assertRefused(
      await post('passkeys', { challenge, response: made }, person.token),
      401,
      'passkey_invalid',
    );
  });
}

test('refuses attestation by certificates, and what is longer than it may be', async () => {
  const person = await join();
  const { challenge, ceremony } = await begin('passkeys/options', { password }, person.token);
  const certificates = { format: 'packed', statement: new Map([['x5c', [Buffer.alloc(100)]]]) };
  for (const format of ['packed', 'tpm', 'apple', 'android-key', 'android-safetynet', 'fido-u2f', 'mine']) {
    const response = createPasskey().register(ceremony, { ...certificates, format });
    assertRefused(await post('passkeys', { challenge, response }, person.token), 401, 'passkey_invalid');
  }
  const long = createPasskey().register(ceremony) as { response: Record<string, unknown> };
  long.response.attestationObject = 'A'.repeat(16_385);
  assertRefused(
    await post('passkeys', { challenge, response: long }, person.token),
    422,
    'validation_failed',
  );
});

test('keeps several passkeys with names, which their owner renames and removes by a proof', async () => {
  const holder = await enrol(await join());
  const prove = async () => {
    const { challenge, ceremony } = await begin('second-factor/passkey-options', {}, holder.token);
    return { passkey: { challenge, response: holder.passkey.use({ ...ceremony, userVerified: false }) } };
  };
  for (const name of ['Phone', 'Key']) {
    const begun = await begin('passkeys/options', await prove(), holder.token);
    const response = createPasskey().register(begun.ceremony);
    const added = await post('passkeys', { challenge: begun.challenge, name, response }, holder.token);
    assert.equal(added.status, 200, added.body);
    assert.equal(added.json().recoveryCodes, undefined);
  }
  const begun = await begin('passkeys/options', { code: holder.recoveryCodes[0] }, holder.token);
  const response = createPasskey().register(begun.ceremony);
  const full = await post('passkeys', { challenge: begun.challenge, response }, holder.token);
  assertRefused(full, 409, 'passkeys_exhausted');
  const path = `passkeys/${holder.passkeyId}`;
  const renamed = await post(`${path}/rename`, { name: 'Old laptop' }, holder.token);
  assert.equal(renamed.json().name, 'Old laptop', renamed.body);
  assertRefused(await post(`${path}/remove`, {}, holder.token), 401, 'second_factor_required');
  const proof = await prove();
  const removed = await post(`${path}/remove`, proof, holder.token);
  assert.equal(removed.status, 204, removed.body);
  assertRefused(await post(`${path}/remove`, proof, holder.token), 400, 'challenge_invalid');
  assertRefused(await logIn(holder), 401, 'passkey_invalid');
  const listed = await client.ask('GET', `${base}/auth/passkeys`, { headers: bearer(holder.token) });
  const { items } = listed.json() as { items: { name: string }[] };
  assert.deepEqual(
    items.map(({ name }) => name),
    ['Phone', 'Key'],
  );
});

test('ends the passkeys of an account that is disabled, reset or deleted', async () => {
  const holder = await enrol(await join());
  const path = `${base}/users/${holder.userId}`;
  const admin = { headers: asAdministrator };
  await client.ask('PATCH', path, { ...admin, json: { disabled: true } });
  assertRefused(await logIn(holder), 401, 'passkey_invalid');
  await client.ask('PATCH', path, { ...admin, json: { disabled: false } });
  assert.equal((await logIn(holder)).status, 200);
  const reset = await client.ask('POST', `${path}/reset-second-factor`, admin);
  assert.equal(reset.status, 204, reset.body);
  assertRefused(await logIn(holder), 401, 'passkey_invalid');
});
