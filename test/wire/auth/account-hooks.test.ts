/** The hook of accounts (§5.7.6), on both stores: one unit with the account, and nothing of it where one fails. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { defineConfig, Type } from 'comity';
import { createTestComity } from 'comity/testing';
import {
  type Answer,
  asAdministrator,
  base,
  bearer,
  type Client,
  openClient,
  tokensOf,
} from '../../harness/account-client.ts';
import { engineNames } from '../../harness/engine-names.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';

const config = fileURLToPath(new URL('./fixtures/guild.config.ts', import.meta.url));
const password = 'correct horse battery';

for (const engine of engineNames) {
  describe(`the hook of accounts on ${engine}`, () => {
    let server: RunningServer;
    let client: Client;

    before(async () => {
      const database = engine === 'SQLite' ? undefined : await databaseOfProgram(config);
      const env = {
        COMITY_LOGIN_ATTEMPTS: '0',
        ...(database === undefined ? {} : { COMITY_DATABASE_URL: database.url }),
      };
      server = await startServer({ config, env });
      client = openClient(server.port);
      if (database !== undefined) after(() => database.dispose());
    });

    after(async () => {
      client.close();
      await server.stop();
    });

    const join = (email: string, fields: object): Promise<Answer> =>
      client.ask('POST', `${base}/auth/register`, { json: { email, password, ...fields } });
    const list = async (path: string): Promise<readonly Record<string, unknown>[]> =>
      (await client.ask('GET', `${base}/${path}`, { headers: asAdministrator })).json().items as [];

    test('writes an account and what its hook writes in one unit, also what refers to the account', async () => {
      const joined = await join('ada@guild.example', { nick: 'founder ada' });
      assert.equal(joined.status, 201, joined.body);
      const { token, userId } = tokensOf(joined);
      const me = await client.ask('GET', `${base}/auth/me`, { headers: bearer(token) });
      const { guildId, ...fields } = me.json().fields as Record<string, unknown>;
      assert.deepEqual(fields, { nick: 'founder ada', level: 1 });
      assert.deepEqual(
        (await list('guilds')).map(({ id, name }) => [id, name]),
        [[guildId, 'founder ada']],
      );
      const [profile, ...others] = await list(`profiles?userId=${userId}`);
      assert.deepEqual([profile?.nick, others], ['founder ada', []]);
      const types = (await list('events?limit=100')).map(({ type }) => type);
      assert.deepEqual(
        types.filter((type) => String(type).startsWith('users')),
        [],
      );
      assert.ok(types.includes('profiles.created') && types.includes('guilds.created'), types.join());
    });

    test('makes nothing where the hook refuses, fails, or leaves an account that is not whole', async () => {
      for (const [nick, status, code] of [
        ['refused', 409, 'no_such_nick'],
        ['broken', 500, 'internal'],
        ['levelless', 500, 'internal'],
      ] as const) {
        const refused = await join('eve@guild.example', { nick });
        assert.deepEqual([refused.status, refused.json().code], [status, code], refused.body);
      }
      assert.deepEqual(await list('users?email=eve@guild.example'), []);
      assert.deepEqual(await list('profiles?nick=broken'), []);
      const unnamed = await join('eve@guild.example', {});
      assert.deepEqual([unnamed.status, unnamed.json().code], [400, 'field_missing'], unnamed.body);
      const late = await join('eve@guild.example', { nick: 'eve' });
      assert.equal(late.status, 201, late.body);
    });

    test('makes one account of a unique field that many register at once, with one profile', async () => {
      const all = await Promise.all(
        Array.from({ length: 12 }, (_, at) => join(`n${at}@guild.example`, { nick: 'founder of all' })),
      );
      const statuses = all.map(({ status }) => status).sort();
      assert.deepEqual(statuses, [201, ...Array.from({ length: 11 }, () => 409)]);
      for (const answer of all) {
        if (answer.status === 409)
          assert.deepEqual((answer.json().errors as { pointer: string }[])[0]?.pointer, '/nick', answer.body);
      }
      assert.equal((await list('profiles?nick=founder+of+all')).length, 1);
      assert.equal((await list('guilds?name=founder+of+all')).length, 1);
    });

    test('makes one account of an address that many register at once', async () => {
      const all = await Promise.all(
        Array.from({ length: 8 }, (_, at) => join('one@guild.example', { nick: `many ${at}` })),
      );
      assert.deepEqual(all.map(({ status }) => status).sort(), [
        201,
        ...Array.from({ length: 7 }, () => 409),
      ]);
      assert.equal((await list('profiles?nick[gte]=many&nick[lt]=manz')).length, 1);
    });

    test('takes references between accounts at a registration, and refuses those that lead nowhere', async () => {
      const sponsor = tokensOf(await join('old@guild.example', { nick: 'old' }));
      const joined = await join('new@guild.example', { nick: 'new', sponsorId: sponsor.userId });
      assert.equal(joined.status, 201, joined.body);
      const lost = await join('lost@guild.example', { nick: 'lost', sponsorId: 'usr_none' });
      assert.deepEqual([lost.status, lost.json().code], [422, 'reference_missing'], lost.body);
      const path = `${base}/users/${sponsor.userId}`;
      const removed = await client.ask('DELETE', path, { headers: bearer(sponsor.token) });
      assert.deepEqual([removed.status, removed.json().code], [409, 'dependants_exist'], removed.body);
    });

    test('runs for accounts that administrators make, and removes accounts with their hook in place', async () => {
      const made = await client.ask('POST', `${base}/users`, {
        json: { email: 'made@guild.example', nick: 'made', level: 3 },
        headers: asAdministrator,
      });
      assert.deepEqual([made.status, made.json().level], [201, 1], made.body);
      const [profile] = await list(`profiles?userId=${made.json().id}`);
      const remove = (path: string) => client.ask('DELETE', `${base}/${path}`, { headers: asAdministrator });
      assert.equal((await remove(`users/${made.json().id}`)).status, 409);
      assert.equal((await remove(`profiles/${profile?.id}`)).status, 204);
      assert.equal((await remove(`users/${made.json().id}`)).status, 204);
      const audit = await list(`audit?subject=${made.json().id}`);
      assert.deepEqual(audit.map(({ type }) => type).sort(), ['account.deleted', 'account.registered']);
    });
  });
}

test('makes no account without a required field that the hook, which did not look, has not set', async () => {
  const accounts = {
    fields: Type.Object({ level: Type.Integer() }),
    hooks: { beforeWrite: () => undefined },
  };
  const comity = await createTestComity(defineConfig({ collections: {}, accounts }));
  after(() => comity.close());
  const registered = await comity.fetch('/api/v1/auth/register', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ email: 'ada@guild.example', password }),
  });
  const { code, errors } = (await registered.json()) as { code: string; errors: { pointer: string }[] };
  assert.deepEqual([registered.status, code, errors[0]?.pointer], [400, 'field_missing', '/level']);
  const administrator = { id: 'administrator', scopes: ['admin', 'read'] };
  assert.deepEqual(await comity.as(administrator).resources.users.list(), []);
});
