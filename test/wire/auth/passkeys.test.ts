/** Passkeys of the running program (§5.8), with an authenticator in software that makes every mistake on request. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  bearer,
  cookieOf,
  openClient,
  register,
  serveAccounts,
  type Tokens,
  tokensOf,
} from '../../harness/account-client.ts';
import { adminKey } from '../../harness/exchange.ts';
import type { Expectation } from '../../harness/expected-answer.ts';
import { startServer } from '../../harness/running-server.ts';
import { valuesOf } from '../../harness/values-of.ts';
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

const invalid: Expectation = [401, 'passkey_invalid'];
const spent: Expectation = [400, 'challenge_invalid'];

let people = 0;
type Person = Tokens & { readonly email: string };

async function join(): Promise<Person> {
  people += 1;
  const email = `keys${people}@shop.example`;
  return { ...(await register(client, email, password)), email };
}

const post = (path: string, json: unknown, expect: Expectation, token?: string) =>
  client.ask('POST', `auth/${path}`, { json, as: token, expect });

async function begin(path: string, json: unknown, token?: string) {
  const { challenge, options } = (await post(path, json, 200, token)).json();
  const ceremony: Ceremony = { origin, rpId, challenge: options.challenge };
  return { challenge, options, ceremony };
}

type Holder = Person & {
  readonly passkey: SoftwarePasskey;
  readonly passkeyId: string;
  readonly recoveryCodes: readonly string[];
  readonly userHandle: string;
};

async function enrol(person: Person): Promise<Holder> {
  const { challenge, ceremony, options } = await begin('passkeys/options', { password }, person.token);
  const passkey = createPasskey();
  const json = { challenge, name: 'Laptop', response: passkey.register(ceremony) };
  const { passkey: shown, recoveryCodes } = (await post('passkeys', json, 200, person.token)).json();
  assert.equal(recoveryCodes.length, 10);
  return { ...person, passkey, passkeyId: shown.id, recoveryCodes, userHandle: options.user?.id ?? '' };
}

async function logIn(holder: Holder, expect: Expectation, fault: Partial<Ceremony> = {}, cookie = false) {
  const { challenge, ceremony } = await begin('login/passkey/options', {});
  const response = holder.passkey.use({ ...ceremony, userHandle: holder.userHandle, ...fault });
  return post('login/passkey', { challenge, response, cookie }, expect);
}

async function stepOf({ email }: Holder): Promise<string> {
  const members = { methods: ['passkey', 'recovery_code'] };
  const expected = { status: 401, code: 'second_factor_required', members };
  return String((await post('login', { email, password }, expected)).json().challenge);
}

test('logs in by a discoverable passkey alone, with tokens and a cookie', async () => {
  const holder = await enrol(await join());
  const { options } = await begin('login/passkey/options', {});
  assert.equal(options.userVerification, 'required');
  assert.equal(options.allowCredentials, undefined);
  const answer = await logIn(holder, 200, {}, true);
  const tokens = tokensOf(answer);
  assert.equal(tokens.userId, holder.userId);
  for (const headers of [bearer(tokens.token), { Cookie: cookieOf(answer) ?? '' }]) {
    await client.ask('GET', 'auth/me', { headers, expect: 200 });
  }
});

test('takes a passkey as the second step of a login by password', async () => {
  const holder = await enrol(await join());
  const step = await stepOf(holder);
  const { challenge, ceremony, options } = await begin('login/passkey/options', { challenge: step });
  assert.deepEqual(valuesOf(options.allowCredentials, 'id'), [holder.passkey.id]);
  const response = holder.passkey.use({ ...ceremony, userVerified: false });
  await post('login/passkey', { challenge, response }, 200);
  // The login is over: neither its own challenge nor that of the passkey works again.
  await post('login/second-factor', { challenge: step, code: holder.recoveryCodes[0] }, spent);
  await post('login/passkey', { challenge, response }, spent);
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
    await logIn(holder, 200);
    await logIn(holder, invalid, fault);
    await logIn(holder, 200, { counter: 9 });
  });
}

test('refuses a passkey with the signature or the account of another', async () => {
  const [ada, eve] = [await enrol(await join()), await enrol(await join())];
  await logIn({ ...eve, userHandle: ada.userHandle }, invalid);
  const step = await stepOf(ada);
  const { challenge, ceremony } = await begin('login/passkey/options', { challenge: step });
  const response = eve.passkey.use({ ...ceremony, userHandle: ada.userHandle });
  await post('login/passkey', { challenge, response }, invalid);
  type Used = { readonly response: Record<string, unknown> };
  const forged = ada.passkey.use(ceremony) as Used;
  forged.response.signature = (eve.passkey.use(ceremony) as Used).response.signature;
  await post('login/passkey', { challenge, response: forged }, invalid);
});

test('opens one session for one response of a passkey, however many send it at once', async () => {
  const holder = await enrol(await join());
  const { challenge, ceremony } = await begin('login/passkey/options', {});
  const response = holder.passkey.use({ ...ceremony, userHandle: holder.userHandle });
  const json = { challenge, response };
  const asked = Array.from({ length: 30 }, () => client.ask('POST', 'auth/login/passkey', { json }));
  const answers = await Promise.all(asked);
  assert.equal(answers.filter(({ status }) => status === 200).length, 1);
  assert.equal(answers.filter(({ status }) => status === 400).length, 29);
});

test('registers a passkey once, for the account and the purpose of its challenge', async () => {
  const [person, other] = [await join(), await join()];
  const begun = await begin('passkeys/options', { password }, person.token);
  assert.equal(begun.options.rp?.id, rpId);
  const json = { challenge: begun.challenge, response: createPasskey().register(begun.ceremony) };
  await post('passkeys', json, spent, other.token);
  await post('passkeys', { ...json, challenge: `${begun.challenge}A` }, spent, person.token);
  const asked = Array.from({ length: 10 }, () =>
    client.ask('POST', 'auth/passkeys', { json, as: person.token }),
  );
  assert.equal((await Promise.all(asked)).filter(({ status }) => status === 200).length, 1);
  const { items } = (await client.ask('GET', 'auth/passkeys', { as: person.token })).json();
  assert.equal(items.length, 1);
  assert.deepEqual(Object.keys(items[0]), [
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
    const response = createPasskey().register(ceremony) as { response: Record<string, unknown> };
    response.response.attestationObject = broken.toString('base64url');
    await post('passkeys', { challenge, response }, invalid, person.token);
  });
}

test('refuses attestation by certificates, and what is longer than it may be', async () => {
  const person = await join();
  const { challenge, ceremony } = await begin('passkeys/options', { password }, person.token);
  const certificates = { format: 'packed', statement: new Map([['x5c', [Buffer.alloc(100)]]]) };
  for (const format of ['packed', 'tpm', 'apple', 'android-key', 'android-safetynet', 'fido-u2f', 'mine']) {
    const response = createPasskey().register(ceremony, { ...certificates, format });
    await post('passkeys', { challenge, response }, invalid, person.token);
  }
  const long = createPasskey().register(ceremony) as { response: Record<string, unknown> };
  long.response.attestationObject = 'A'.repeat(16_385);
  await post('passkeys', { challenge, response: long }, [422, 'validation_failed'], person.token);
});

test('keeps several passkeys with names, which their owner renames and removes by a proof', async () => {
  const holder = await enrol(await join());
  const { token } = holder;
  const prove = async () => {
    const { challenge, ceremony } = await begin('second-factor/passkey-options', {}, token);
    return { passkey: { challenge, response: holder.passkey.use({ ...ceremony, userVerified: false }) } };
  };
  const add = async (proof: object, name: string | undefined, expect: Expectation) => {
    const { challenge, ceremony } = await begin('passkeys/options', proof, token);
    const response = createPasskey().register(ceremony);
    await post('passkeys', { challenge, name, response }, expect, token);
  };
  for (const name of ['Phone', 'Key']) {
    await add(await prove(), name, { status: 200, members: { recoveryCodes: undefined } });
  }
  await add({ code: holder.recoveryCodes[0] }, undefined, [409, 'passkeys_exhausted']);
  const path = `passkeys/${holder.passkeyId}`;
  const name = 'Old laptop';
  await post(`${path}/rename`, { name }, { status: 200, members: { name } }, token);
  await post(`${path}/remove`, {}, [401, 'second_factor_required'], token);
  const proof = await prove();
  await post(`${path}/remove`, proof, 204, token);
  await post(`${path}/remove`, proof, spent, token);
  await logIn(holder, invalid);
  const { items } = (await client.ask('GET', 'auth/passkeys', { as: token })).json();
  assert.deepEqual(valuesOf(items, 'name'), ['Phone', 'Key']);
});

test('ends the passkeys of an account that is disabled, reset or deleted', async () => {
  const holder = await enrol(await join());
  const path = `users/${holder.userId}`;
  await client.ask('PATCH', path, { as: adminKey, json: { disabled: true }, expect: 200 });
  await logIn(holder, invalid);
  await client.ask('PATCH', path, { as: adminKey, json: { disabled: false }, expect: 200 });
  await logIn(holder, 200);
  await client.ask('POST', `${path}/reset-second-factor`, { as: adminKey, expect: 204 });
  await logIn(holder, invalid);
});

test('registers an account with a passkey in place of a password, where that is on', async (context) => {
  const program = await startServer({
    env: {
      ...{ COMITY_PASSKEY_ORIGINS: origin, COMITY_PASSKEY_RELYING_PARTY_ID: rpId },
      ...{ COMITY_PASSKEY_REGISTRATION: 'on', COMITY_LOGIN_ATTEMPTS: '0' },
    },
  });
  context.after(() => program.stop());
  const other = openClient(program.port);
  context.after(() => other.close());
  const send = (path: string, json: unknown, expect: Expectation) =>
    other.ask('POST', `auth/${path}`, { json, expect });
  const optionsFor = async (email: string) => {
    const { challenge, options } = (await send('register/passkey-options', { email }, 200)).json();
    return { challenge, options, ceremony: { origin, rpId, challenge: options.challenge } };
  };
  const email = 'pia@shop.example';
  const { challenge, options, ceremony } = await optionsFor(email);
  assert.equal(options.authenticatorSelection.userVerification, 'required');
  const passkey = createPasskey();
  const response = passkey.register(ceremony);
  await send('register', { email }, [400, 'field_missing']);
  await send('register', { email, password, passkey: { challenge, response } }, [422, 'validation_failed']);
  const unverified = passkey.register({ ...ceremony, userVerified: false });
  await send('register', { email, passkey: { challenge, response: unverified } }, invalid);
  const made = await send('register', { email, passkey: { challenge, response, name: 'Phone' } }, 201);
  const { user, recoveryCodes } = made.json();
  assert.equal(recoveryCodes.length, 10);
  const again = { email: 'pia2@shop.example', passkey: { challenge, response } };
  await send('register', again, spent);
  const taken = await optionsFor(email);
  const second = createPasskey().register(taken.ceremony);
  await send('register', { email, passkey: { challenge: taken.challenge, response: second } }, [
    409,
    'unique_taken',
  ]);
  await send('login', { email, password }, 401);
  const begun = (await send('login/passkey/options', {}, 200)).json();
  const used = passkey.use({ ...ceremony, challenge: begun.options.challenge, userHandle: options.user.id });
  const entered = await send('login/passkey', { challenge: begun.challenge, response: used }, 200);
  assert.equal(tokensOf(entered).userId, user.id);
  // Both of a person who tries it twice at once: one account.
  const raced = await optionsFor('quin@shop.example');
  const json = {
    email: 'quin@shop.example',
    passkey: { challenge: raced.challenge, response: createPasskey().register(raced.ceremony) },
  };
  const answers = await Promise.all(
    Array.from({ length: 6 }, () => other.ask('POST', 'auth/register', { json })),
  );
  assert.equal(answers.filter(({ status }) => status === 201).length, 1);
  assert.deepEqual(new Set(answers.map(({ status }) => status)).has(500), false);
  await client.ask('POST', 'auth/register/passkey-options', { json: { email }, expect: 404 });
  const off = { email, passkey: { challenge, response } };
  await client.ask('POST', 'auth/register', { json: off, expect: 400 });
});
