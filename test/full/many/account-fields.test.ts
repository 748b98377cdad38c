/**
 * Fields of accounts in two processes on one database (§5.7.5): what one process has changed holds for the next request at the other, for
 * a token, a cookie, a key and a password that the other has remembered.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  asAdministrator,
  base,
  basic,
  bearer,
  type Client,
  login,
  makeKey,
  openClient,
  register,
} from '../../harness/account-client.ts';
import { emptyDatabase, type TestDatabase } from '../../harness/postgres-database.ts';
import { roundsOf } from '../../harness/rounds.ts';
import { type Fleet, startFleet } from './fleet.ts';

const config = fileURLToPath(new URL('../../wire/auth/fixtures/agency.config.ts', import.meta.url));
const password = 'correct horse battery';
const rounds = roundsOf(10, 50);

let database: TestDatabase;
let fleet: Fleet;
let clients: readonly Client[];

before(async () => {
  database = await emptyDatabase();
  const env = { COMITY_LOGIN_ATTEMPTS: '0', COMITY_RATE_LIMIT_WRITES: '0', COMITY_RATE_LIMIT_READS: '0' };
  fleet = await startFleet(database.url, 2, env, config);
  clients = fleet.running.map(({ port }) => openClient(port));
});

after(async () => {
  for (const client of clients ?? []) client.close();
  await fleet?.stop();
  await database?.dispose();
});

test('a field that one process changes holds for the next request at the other, by every credential', async () => {
  const [one, other] = clients as readonly [Client, Client];
  for (const id of ['lighthouse', 'harbour']) {
    const made = await one.ask('PUT', `${base}/organisations/${id}`, {
      json: { name: id },
      headers: asAdministrator,
    });
    assert.equal(made.status, 201, made.body);
  }
  const ada = await register(one, 'ada@lighthouse.example', password);
  const { cookie } = await login(other, 'ada@lighthouse.example', password, true);
  const { key } = await makeKey(one, bearer(ada.token));
  const credentials = [
    bearer(ada.token),
    bearer(key),
    { Cookie: cookie },
    basic('ada@lighthouse.example', password),
  ];
  const fieldOf = async (client: Client, headers: Readonly<Record<string, string>>): Promise<unknown> =>
    ((await client.ask('GET', `${base}/auth/me`, { headers })).json().fields as { organisationId: string })
      .organisationId;
  const listOf = async (
    client: Client,
    headers: Readonly<Record<string, string>>,
  ): Promise<readonly unknown[]> => {
    const { items } = (await client.ask('GET', `${base}/tickets?limit=1000`, { headers })).json();
    return [...new Set((items as { organisationId: string }[]).map(({ organisationId }) => organisationId))];
  };
  for (const organisationId of ['lighthouse', 'harbour']) {
    const json = { title: 'Lamp', organisationId };
    const made = await one.ask('POST', `${base}/tickets`, { json, headers: asAdministrator });
    assert.equal(made.status, 201, made.body);
  }
  for (let round = 0; round < rounds; round += 1) {
    const organisationId = round % 2 === 0 ? 'harbour' : 'lighthouse';
    const [writer, reader] = round % 4 < 2 ? [one, other] : [other, one];
    const changed = await writer.ask('PATCH', `${base}/users/${ada.userId}`, {
      json: { organisationId },
      headers: asAdministrator,
    });
    assert.equal(changed.status, 200, changed.body);
    const seen = await Promise.all(
      credentials.flatMap((headers) => [fieldOf(reader, headers), fieldOf(writer, headers)]),
    );
    assert.deepEqual([...new Set(seen)], [organisationId], `round ${round}`);
    const lists = await Promise.all(credentials.map((headers) => listOf(reader, headers)));
    for (const list of lists) assert.deepEqual(list, [organisationId], `round ${round}`);
  }
});
