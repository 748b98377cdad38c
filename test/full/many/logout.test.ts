/**
 * What ends a credential on one process ends it on all at once (§5.1): every request that was sent after the answer, to whichever
 * process, is refused. Each credential was used on every process right before, so that all of them remember it as good.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  type Answer,
  asAdministrator,
  base,
  basic,
  bearer,
  type Client,
  changeUser,
  login,
  makeKey,
  openClient,
  register,
  type Tokens,
} from '../../harness/account-client.ts';
import { emptyDatabase, type TestDatabase } from '../../harness/postgres-database.ts';
import { roundsOf } from '../../harness/rounds.ts';
import { readEvents } from '../../wire/resources/event-reader.ts';
import { type Fleet, startFleet } from './fleet.ts';

const processes = 3;
/** More of all with COMITY_SOAK_ROUNDS=12 npm test -- test/full/many/logout.test.ts */
const soakRounds = roundsOf(1, 1);
/** Each asks `processes` times for each of its credentials. */
const logouts = 42 * soakRounds;
const revocations = 20 * soakRounds;
const disablings = 12 * soakRounds;
/** Rounds that go on beside each other, so that the others are never idle when something ends. */
const lanes = 6;
const password = 'correct horse battery staple';

type Fields = Readonly<Record<string, string>>;

let server: TestDatabase;
let fleet: Fleet;
let clients: readonly Client[];

before(async () => {
  server = await emptyDatabase();
  fleet = await startFleet(server.url, processes, {
    COMITY_PUBLIC_URL: 'https://api.shop.example',
    COMITY_LOGIN_ATTEMPTS: '0',
    COMITY_PASSWORD_MEMORY_KIBIBYTES: '64',
    COMITY_PASSWORD_PASSES: '1',
    COMITY_RATE_LIMIT_READS: '0',
    COMITY_RATE_LIMIT_WRITES: '0',
    // Every second use of a refresh token is a reuse.
    COMITY_REFRESH_REUSE_SECONDS: '0',
  });
  clients = fleet.running.map(({ port }) => openClient(port, 2 * lanes));
});

after(async () => {
  for (const client of clients ?? []) client.close();
  await fleet?.stop();
  await server?.dispose();
});

function at(index: number): Client {
  const client = clients[index % processes];
  if (client === undefined) throw new Error('no such process');
  return client;
}

const cookieFields = ({ cookie }: Tokens): Fields => ({ Cookie: cookie });

function read(client: Client, headers: Fields): Promise<Answer> {
  return client.ask('GET', `${base}/auth/me`, { headers });
}

/** Asks every process, with every credential, all at the same moment. */
function readEverywhere(credentials: readonly Fields[]): Promise<readonly Answer[]> {
  return Promise.all(clients.flatMap((client) => credentials.map((headers) => read(client, headers))));
}

async function goodEverywhere(credentials: readonly Fields[]): Promise<void> {
  for (const answer of await readEverywhere(credentials)) assert.equal(answer.status, 200, answer.body);
}

/** @returns how many requests were refused: all of them */
async function deadEverywhere(credentials: readonly Fields[], what: string): Promise<number> {
  const answers = await readEverywhere(credentials);
  for (const answer of answers) assert.equal(answer.status, 401, `${what}: ${answer.body}`);
  return answers.length;
}

/** The rounds, as many beside each other as there are lanes. @returns the sum of what they return */
async function rounds(count: number, round: (index: number) => Promise<number>): Promise<number> {
  let next = 0;
  let refused = 0;
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      while (next < count) {
        const index = next;
        next += 1;
        const more = await round(index);
        refused += more;
      }
    }),
  );
  return refused;
}

/** An account that no other round uses. */
function newAccount(name: string, index: number): Promise<Tokens> {
  return register(at(index), `${name}-${index}@shop.example`, password);
}

async function expect(status: number, answer: Promise<Answer>): Promise<Answer> {
  const came = await answer;
  assert.equal(came.status, status, came.body);
  return came;
}

describe('at once on every process', () => {
  it('logout ends token, cookie and refresh token', async (context) => {
    for (let lane = 0; lane < lanes; lane += 1) await newAccount('lane', lane);
    const checks = await rounds(logouts, async (index) => {
      const tokens = await login(at(index), `lane-${index % lanes}@shop.example`, password, true);
      const credentials = [bearer(tokens.token), cookieFields(tokens)];
      await goodEverywhere(credentials);
      const headers = index % 2 === 0 ? bearer(tokens.token) : cookieFields(tokens);
      await expect(204, at(index + 1).ask('POST', `${base}/auth/logout`, { headers }));
      const refused = await deadEverywhere(credentials, `logout ${index}`);
      const json = { refreshToken: tokens.refreshToken };
      await expect(401, at(index + 2).ask('POST', `${base}/auth/refresh`, { json }));
      return refused;
    });
    assert.equal(checks, logouts * processes * 2);
    context.diagnostic(`${checks} requests after ${logouts} logouts, none answered`);
  });

  it('a revoked key is dead, and one that was rotated away', async (context) => {
    const owners = await Promise.all(Array.from({ length: lanes }, (_, lane) => newAccount('owner', lane)));
    const checks = await rounds(revocations, async (index) => {
      const headers = bearer(owners[index % lanes]?.token ?? '');
      const { id, key } = await makeKey(at(index), headers);
      await goodEverywhere([{ 'X-API-Key': key }]);
      const json = {};
      const rotated = await expect(
        200,
        at(index + 1).ask('POST', `${base}/keys/${id}/rotate`, { json, headers }),
      );
      const rotatedAway = await deadEverywhere([{ 'X-API-Key': key }, bearer(key)], `rotation ${index}`);
      const successor = String(rotated.json().key);
      await goodEverywhere([{ 'X-API-Key': successor }]);
      await expect(204, at(index + 2).ask('DELETE', `${base}/keys/${id}`, { headers }));
      const revoked = [{ 'X-API-Key': successor }, basic(successor, '')];
      return rotatedAway + (await deadEverywhere(revoked, `revocation ${index}`));
    });
    assert.equal(checks, revocations * processes * 4);
    context.diagnostic(`${checks} requests after ${2 * revocations} revocations, none answered`);
  });

  it('a disabled account can do nothing by any credential, and enabled again it can', async (context) => {
    const checks = await rounds(disablings, async (index) => {
      const email = `disabled-${index}@shop.example`;
      const tokens = await register(at(index), email, password);
      const withCookie = await login(at(index), email, password, true);
      const { key } = await makeKey(at(index), bearer(tokens.token));
      const lasting = [{ 'X-API-Key': key }, basic(email, password)];
      const all = [...lasting, bearer(tokens.token), cookieFields(withCookie)];
      await goodEverywhere(all);
      await changeUser(at(index + 1), tokens.userId, { disabled: true });
      const refused = await deadEverywhere(all, `disabling ${index}`);
      await changeUser(at(index + 2), tokens.userId, { disabled: false });
      await goodEverywhere(lasting);
      return refused;
    });
    assert.equal(checks, disablings * processes * 4);
    context.diagnostic(`${checks} requests after ${disablings} disablings, none answered`);
  });

  it('a deleted account is nobody', async () => {
    await rounds(disablings / 3, async (index) => {
      const email = `deleted-${index}@shop.example`;
      const tokens = await register(at(index), email, password);
      const { key } = await makeKey(at(index), bearer(tokens.token));
      const all = [bearer(tokens.token), { 'X-API-Key': key }, basic(email, password)];
      await goodEverywhere(all);
      const path = `${base}/users/${tokens.userId}`;
      await expect(204, at(index + 1).ask('DELETE', path, { headers: asAdministrator }));
      return deadEverywhere(all, `deletion ${index}`);
    });
  });

  it('a changed password ends the old one and every other session, and the new one counts', async () => {
    await rounds(disablings, async (index) => {
      const email = `changed-${index}@shop.example`;
      const own = await register(at(index), email, password);
      const other = await login(at(index), email, password, true);
      const ending = [basic(email, password), bearer(other.token), cookieFields(other)];
      await goodEverywhere([...ending, bearer(own.token)]);
      const newPassword = `${password} ${index}`;
      const json = { currentPassword: password, newPassword };
      const asked = { json, headers: bearer(own.token) };
      await expect(204, at(index + 1).ask('POST', `${base}/auth/password`, asked));
      const refused = await deadEverywhere(ending, `change ${index}`);
      await goodEverywhere([basic(email, newPassword), bearer(own.token)]);
      return refused;
    });
  });

  it('a scope that was taken away is gone', async () => {
    const tokens = await newAccount('scoped', 0);
    const write = (client: Client) =>
      client.ask('POST', `${base}/notes`, { json: { text: 'x' }, headers: bearer(tokens.token) });
    for (let round = 0; round < 50; round += 1) {
      for (const client of clients) await expect(201, write(client));
      await changeUser(at(round), tokens.userId, { scopes: ['read'] });
      for (const answer of await Promise.all(clients.map(write))) assert.equal(answer.status, 403);
      await changeUser(at(round), tokens.userId, { scopes: ['read', 'write'] });
    }
  });
});

describe('an address', () => {
  it('becomes one account, however many register it at once', async () => {
    for (let round = 0; round < 20; round += 1) {
      const json = { email: `wanted-${round}@shop.example`, password };
      const register = (client: Client) => client.ask('POST', `${base}/auth/register`, { json });
      const answers = await Promise.all([...clients, ...clients].map(register));
      const statuses = answers.map(({ status }) => status).sort();
      assert.deepEqual(statuses, [201, ...new Array(2 * processes - 1).fill(409)]);
    }
  });
});

describe('an open event stream', () => {
  it('ends on every process when what it was opened with ends', async () => {
    for (let round = 0; round < 10; round += 1) {
      const tokens = await newAccount('streaming', round);
      const { id, key } = await makeKey(at(round), bearer(tokens.token));
      const open = (credential: string) =>
        Promise.all(fleet.running.map(({ port }) => readEvents(port, { bearer: credential })));
      const [byKey, byToken] = [await open(key), await open(tokens.token)];
      const opened = [...byKey, ...byToken];
      await Promise.all(opened.map((reader) => reader.until(({ comments }) => comments.length > 0)));
      const headers = bearer(tokens.token);
      await expect(204, at(round).ask('DELETE', `${base}/keys/${id}`, { headers }));
      assert.deepEqual(await Promise.all(byKey.map(({ ended }) => ended)), new Array(processes).fill(true));
      await expect(204, at(round + 1).ask('POST', `${base}/auth/logout`, { headers }));
      assert.deepEqual(await Promise.all(byToken.map(({ ended }) => ended)), new Array(processes).fill(true));
    }
  });
});

describe('a refresh token', () => {
  it('works once on whichever process; a second use ends its session everywhere', async () => {
    await rounds(revocations / 3, async (index) => {
      const first = await newAccount('refreshed', index);
      const json = { refreshToken: first.refreshToken };
      const answer = await expect(200, at(index + 1).ask('POST', `${base}/auth/refresh`, { json }));
      const next = answer.json() as { token: string; refreshToken: string };
      await goodEverywhere([bearer(next.token)]);
      await expect(401, at(index + 2).ask('POST', `${base}/auth/refresh`, { json }));
      const refused = await deadEverywhere([bearer(next.token), bearer(first.token)], `reuse ${index}`);
      const successor = { json: { refreshToken: next.refreshToken } };
      await expect(401, at(index).ask('POST', `${base}/auth/refresh`, successor));
      return refused;
    });
  });

  it('raced on all processes gives out at most one successor, and then ends', async () => {
    await rounds(revocations / 3, async (index) => {
      const first = await newAccount('raced', index);
      const json = { refreshToken: first.refreshToken };
      const answers = await Promise.all(
        clients.map((client) => client.ask('POST', `${base}/auth/refresh`, { json })),
      );
      const statuses = answers.map(({ status }) => status).sort();
      assert.deepEqual(statuses, [200, 401, 401]);
      const winner = answers.find(({ status }) => status === 200)?.json() as { token: string };
      return deadEverywhere([bearer(winner.token), bearer(first.token)], `race ${index}`);
    });
  });
});

it('nothing failed inside meanwhile', () => {
  const failures = fleet.running.flatMap(({ stderr }) =>
    stderr()
      .split('\n')
      .filter((line) => /"level":"(error|fatal)"/.test(line)),
  );
  assert.deepEqual(failures, []);
  assert.deepEqual(fleet.deaths, []);
});

describe('the login limit', () => {
  it('is one for all processes: five wrong passwords in all, and then 429 everywhere', async () => {
    const own = await emptyDatabase();
    // A day, so that hardly a run of this test begins in one window and ends in the next.
    const limited = await startFleet(own.url, processes, { COMITY_LOGIN_WINDOW_SECONDS: '86400' });
    const asking = limited.running.map(({ port }) => openClient(port));
    try {
      const [first] = asking;
      assert.ok(first !== undefined);
      const email = 'limited@shop.example';
      const { token } = await register(first, email, password);
      // These processes were told of no public URL, and each listens elsewhere.
      for (const client of asking) await expect(200, read(client, bearer(token)));
      // Good logins count for nothing.
      for (const client of [...asking, ...asking, ...asking]) await login(client, email, password);
      const attempt = (client: Client, typed: string) =>
        client.ask('POST', `${base}/auth/login`, { json: { email, password: typed } });
      const wrong = await Promise.all(
        Array.from({ length: 12 }, (_, index) =>
          attempt(asking[index % processes] ?? first, 'wrong password'),
        ),
      );
      const statuses = wrong.map(({ status }) => status).sort();
      assert.deepEqual(statuses, [...new Array(5).fill(401), ...new Array(7).fill(429)]);
      for (const client of asking) {
        const refused = await attempt(client, password);
        assert.equal(refused.status, 429, 'the right password is not tried either');
        assert.equal(refused.headers['ratelimit-policy'], '"login";q=5;w=86400');
        assert.ok(Number(refused.headers['retry-after']) > 0);
        const byBasic = await read(client, basic(email, password));
        assert.equal(byBasic.status, 429, 'Basic is the same login');
        const another = { json: { email: 'other@shop.example', password } };
        assert.equal(
          (await client.ask('POST', `${base}/auth/login`, another)).status,
          429,
          'the address is used up',
        );
      }
    } finally {
      for (const client of asking) client.close();
      await limited.stop();
      await own.dispose();
    }
  });
});
