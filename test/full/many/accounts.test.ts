/**
 * Accounts over two processes on one database: a token needs no new login when fields, roles or `disabled` change on the other process, and
 * what is used once (a code, a recovery code, a challenge of a passkey) is used once on both together.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Secret, TOTP } from 'otpauth';
import {
  type Answer,
  asAdministrator,
  base,
  bearer,
  type Client,
  openClient,
  register,
  type Tokens,
} from '../../harness/account-client.ts';
import { emptyDatabase, type TestDatabase } from '../../harness/postgres-database.ts';
import { roundsOf } from '../../harness/rounds.ts';
import { createPasskey } from '../../wire/auth/fixtures/software-authenticator.ts';
import { type Fleet, startFleet } from './fleet.ts';

const config = fileURLToPath(new URL('../../wire/auth/fixtures/agency.config.ts', import.meta.url));
const password = 'correct horse battery staple';
const origin = 'https://app.shop.example';
const rounds = 6 * roundsOf(1, 2);

let server: TestDatabase;
let fleet: Fleet;
let here: Client;
let there: Client;
let people = 0;

before(async () => {
  server = await emptyDatabase();
  const env = {
    COMITY_LOGIN_ATTEMPTS: '0',
    COMITY_TOTP_WINDOW_STEPS_MAX: '10',
    COMITY_PASSKEY_ORIGINS: origin,
    COMITY_PASSKEY_RELYING_PARTY_ID: 'shop.example',
  };
  fleet = await startFleet(server.url, 2, env, config);
  const [one, other] = fleet.running.map(({ port }) => openClient(port));
  assert.ok(one !== undefined && other !== undefined);
  [here, there] = [one, other];
});

after(async () => {
  for (const client of [here, there]) client?.close();
  await fleet?.stop();
  await server?.dispose();
});

async function join(): Promise<Tokens & { readonly email: string }> {
  people += 1;
  const email = `person${people}@shop.example`;
  return { ...(await register(here, email, password)), email };
}

async function post(at: Client, path: string, json: object, token?: string): Promise<Answer> {
  const headers = token === undefined ? {} : { headers: bearer(token) };
  return at.ask('POST', `${base}/auth/${path}`, { json, ...headers });
}

async function change(at: Client, id: string, json: object): Promise<void> {
  const answer = await at.ask('PATCH', `${base}/users/${id}`, { json, headers: asAdministrator });
  assert.equal(answer.status, 200, answer.body);
}

test('a token that both processes know has the new fields, roles and rights right after the change on one of them', async () => {
  const { token, userId } = await join();
  const me = (at: Client) => at.ask('GET', `${base}/auth/me`, { headers: bearer(token) });
  for (let round = 0; round < rounds; round += 1) {
    const [one, other] = round % 2 === 0 ? [here, there] : [there, here];
    await Promise.all([me(here), me(there)]);
    await change(one, userId, { role: round % 2 === 0 ? 'agent' : 'lead', roles: [`round-${round}`] });
    const { fields, roles } = (await me(other)).json() as { fields: { role: string }; roles: string[] };
    assert.deepEqual([fields.role, roles], [round % 2 === 0 ? 'agent' : 'lead', [`round-${round}`]]);
  }
  assert.equal((await there.ask('GET', `${base}/audit`, { headers: bearer(token) })).status, 403);
  await change(here, userId, { roles: ['administrator'] });
  assert.equal((await there.ask('GET', `${base}/audit`, { headers: bearer(token) })).status, 200);
  await change(here, userId, { disabled: true });
  assert.equal((await me(there)).status, 401);
});

test('a code and a recovery code that both processes get at once are good on one of them', async () => {
  const { token, email } = await join();
  const begun = (await post(here, 'second-factor/totp', { password }, token)).json();
  const totp = new TOTP({ secret: Secret.fromBase32(String(begun.secret)) });
  let step = Math.floor(Date.now() / 30_000) - 9;
  const next = () => totp.generate({ timestamp: step++ * 30_000 });
  const added = await post(
    there,
    'second-factor/totp/confirm',
    { enrolment: begun.enrolment, code: next() },
    token,
  );
  assert.equal(added.status, 200, added.body);
  const { recoveryCodes } = added.json() as { recoveryCodes: string[] };
  const codes = [...Array.from({ length: 6 }, next), ...recoveryCodes.slice(0, 4)];
  for (const code of codes) {
    const login = (at: Client) => post(at, 'login', { email, password, code });
    const answers = await Promise.all([login(here), login(there), login(here), login(there)]);
    const statuses = answers.map(({ status }) => status).sort();
    assert.deepEqual(statuses, [200, 401, 401, 401], code);
    assert.equal((await login(there)).status, 401, 'and never again');
  }
});

test('a passkey that was added on one process logs in on the other, with each challenge once', async () => {
  const { token } = await join();
  const offered = (await post(here, 'passkeys/options', { password }, token)).json() as {
    challenge: string;
    options: { challenge: string; user: { id: string } };
  };
  const passkey = createPasskey();
  const ceremony = { origin, rpId: 'shop.example' };
  const response = passkey.register({ ...ceremony, challenge: offered.options.challenge });
  const added = await post(
    there,
    'passkeys',
    { challenge: offered.challenge, name: 'Laptop', response },
    token,
  );
  assert.equal(added.status, 200, added.body);
  for (let round = 0; round < rounds; round += 1) {
    const begun = (await post(here, 'login/passkey/options', {})).json() as {
      challenge: string;
      options: { challenge: string };
    };
    const { challenge } = begun.options;
    const used = passkey.use({ ...ceremony, challenge, userHandle: offered.options.user.id });
    const login = (at: Client) => post(at, 'login/passkey', { challenge: begun.challenge, response: used });
    const answers = await Promise.all([login(there), login(here), login(there), login(here)]);
    const good = answers.filter(({ status }) => status === 200);
    assert.equal(good.length, 1, answers.map(({ body }) => body).join('\n'));
    for (const { status } of answers)
      assert.ok(status === 200 || (status >= 400 && status < 500), String(status));
  }
});
