/**
 * Kills during registrations and enrolments of a second factor, on both stores: an account is there with its password, its first session
 * and its entry in the audit trail, or not at all; so is a second factor with its recovery codes.
 */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Secret, TOTP } from 'otpauth';
import {
  type Answer,
  asAdministrator,
  base,
  bearer,
  type Client,
  openClient,
} from '../../harness/account-client.ts';
import { engineNames } from '../../harness/engine-names.ts';
import { emptyDatabase } from '../../harness/postgres-database.ts';
import { roundsOf } from '../../harness/rounds.ts';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const rounds = roundsOf(1, 2);
const lanes = 4;
const password = 'correct horse battery staple';

type Person = {
  readonly email: string;
  /** What was acknowledged. */
  token?: string;
  recoveryCodes?: readonly string[];
  /** The request for the second factor was sent. */
  hasAsked?: boolean;
};

for (const engine of engineNames) {
  describe(`kills on ${engine}`, () => {
    const folder = temporaryFolder();
    let program: ServerProcess | undefined;
    let url: string | undefined;
    let dispose: (() => Promise<void>) | undefined;
    after(async () => {
      await program?.kill();
      await dispose?.();
    });

    async function start(): Promise<{ running: ServerProcess; client: Client }> {
      if (engine === 'PostgreSQL' && url === undefined) {
        const database = await emptyDatabase();
        // A hook that is set within a test would run at its end.
        dispose = () => database.dispose();
        ({ url } = database);
      }
      const running = await spawnServer({
        folder,
        env: {
          COMITY_LOGIN_ATTEMPTS: '0',
          COMITY_RATE_LIMIT_READS: '0',
          COMITY_RATE_LIMIT_WRITES: '0',
          COMITY_PASSWORD_MEMORY_KIBIBYTES: '64',
          COMITY_PASSWORD_PASSES: '1',
          ...(url === undefined ? {} : { COMITY_DATABASE_URL: url }),
        },
      });
      program = running;
      return { running, client: openClient(running.port) };
    }

    for (let round = 1; round <= rounds; round += 1) {
      test(`round ${round}: accounts and second factors are there as a whole or not at all`, async () => {
        const people: Person[] = [];
        const { running, client } = await start();
        const joining = Array.from({ length: lanes }, (_, lane) =>
          joinAll(client, `${round}-${lane}`, people),
        );
        while (people.filter(({ recoveryCodes }) => recoveryCodes !== undefined).length < 2 * lanes)
          await pause(5);
        await pause(Math.random() * 60);
        await running.kill();
        await Promise.all(joining);
        client.close();
        const again = await start();
        for (const person of people) await assertWhole(again.client, person);
        again.client.close();
        await again.running.kill();
      });
    }
  });
}

/** Registers one account after the other, each with a second factor, until the server is gone. */
async function joinAll(client: Client, lane: string, people: Person[]): Promise<void> {
  for (let number = 0; ; number += 1) {
    const person: Person = { email: `p${lane}-${number}@shop.example` };
    people.push(person);
    try {
      const joined = await post(client, 'register', { email: person.email, password });
      person.token = String(joined.json().token);
      const begun = await post(client, 'second-factor/totp', { password }, person.token);
      const { enrolment, secret } = begun.json() as { enrolment: string; secret: string };
      const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate();
      person.hasAsked = true;
      const confirmed = await post(client, 'second-factor/totp/confirm', { enrolment, code }, person.token);
      person.recoveryCodes = confirmed.json().recoveryCodes as string[];
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      return;
    }
  }
}

async function assertWhole(client: Client, person: Person): Promise<void> {
  const { email, token, recoveryCodes } = person;
  const login = await client.ask('POST', `${base}/auth/login`, { json: { email, password } });
  const entries = await entriesOf(client, email);
  if (login.status === 401 && login.json().code === 'invalid_credentials') {
    assert.equal(token, undefined, `${email} was acknowledged`);
    assert.equal(entries, undefined, 'no account is left without its password');
    await post(client, 'register', { email, password });
    return;
  }
  assert.deepEqual(entries?.registered, 1, email);
  const isSecured = login.json().code === 'second_factor_required';
  assert.ok(isSecured || login.status === 200, login.body);
  if (token !== undefined) {
    const me = await client.ask('GET', `${base}/auth/me`, { headers: bearer(token) });
    assert.equal(me.status, 200, 'the first session came with the account');
  }
  assert.equal(entries?.secured, isSecured ? 1 : 0, 'the factor came with its entry');
  if (person.hasAsked !== true) assert.equal(isSecured, false);
  if (recoveryCodes === undefined) return;
  assert.ok(isSecured, `the factor of ${email} was acknowledged`);
  const { challenge } = login.json();
  await post(client, 'login/second-factor', { challenge, code: recoveryCodes[0] });
}

/** Entries of the audit trail about the account; undefined if there is no account. */
async function entriesOf(client: Client, email: string) {
  const headers = asAdministrator;
  const found = await client.ask('GET', `${base}/users?email=${encodeURIComponent(email)}`, { headers });
  const [user] = found.json().items as { id: string }[];
  if (user === undefined) return undefined;
  const trail = await client.ask('GET', `${base}/audit?subject=${user.id}&limit=100`, { headers });
  const types = (trail.json().items as { type: string }[]).map(({ type }) => type);
  const count = (wanted: string) => types.filter((type) => type === wanted).length;
  return { registered: count('account.registered'), secured: count('second_factor.added') };
}

async function post(client: Client, path: string, json: object, token?: string): Promise<Answer> {
  const headers = token === undefined ? {} : { headers: bearer(token) };
  const answer = await client.ask('POST', `${base}/auth/${path}`, { json, ...headers });
  assert.ok(answer.status < 300, `${path}: ${answer.status} ${answer.body}`);
  return answer;
}
