/** The hook of accounts (§5.7.6), on both stores: one unit with the account, and nothing of it where one fails. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { defineConfig, Type } from 'comity';
import { createTestComity } from 'comity/testing';
import { serveAccounts, tokensOf } from '../../harness/account-client.ts';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import { adminKey } from '../../harness/exchange.ts';
import type { Expectation } from '../../harness/expected-answer.ts';
import { valuesOf } from '../../harness/values-of.ts';

const config = fileURLToPath(new URL('./fixtures/guild.config.ts', import.meta.url));
const password = 'correct horse battery';

describeOnEachStore('the hook of accounts', async (engine) => {
  const { client } = await serveAccounts({ config, engine, env: { COMITY_LOGIN_ATTEMPTS: '0' } });
  const join = (email: string, fields: object, expect: Expectation) =>
    client.ask('POST', 'auth/register', { json: { email, password, ...fields }, expect });
  const joinAtOnce = (many: readonly { email: string; nick: string }[]) =>
    Promise.all(many.map((each) => client.ask('POST', 'auth/register', { json: { password, ...each } })));
  const list = async (path: string): Promise<Record<string, unknown>[]> =>
    (await client.ask('GET', path, { as: adminKey })).json().items;

  test('writes an account and what its hook writes in one unit, also what refers to the account', async () => {
    const { token, userId } = tokensOf(await join('ada@guild.example', { nick: 'founder ada' }, 201));
    const { guildId, ...fields } = (await client.ask('GET', 'auth/me', { as: token })).json().fields;
    assert.deepEqual(fields, { nick: 'founder ada', level: 1 });
    assert.deepEqual(valuesOf(await list('guilds'), 'id', 'name'), [[guildId, 'founder ada']]);
    assert.deepEqual(valuesOf(await list(`profiles?userId=${userId}`), 'nick'), ['founder ada']);
    const types = valuesOf(await list('events?limit=100'), 'type');
    assert.ok(!types.some((type) => String(type).startsWith('users')));
    assert.ok(types.includes('profiles.created') && types.includes('guilds.created'), types.join());
  });

  test('makes nothing where the hook refuses, fails, or leaves an account that is not whole', async () => {
    for (const [nick, status, code] of [
      ['refused', 409, 'no_such_nick'],
      ['broken', 500, 'internal'],
      ['levelless', 500, 'internal'],
    ] as const) {
      await join('eve@guild.example', { nick }, [status, code]);
    }
    assert.deepEqual(await list('users?email=eve@guild.example'), []);
    assert.deepEqual(await list('profiles?nick=broken'), []);
    await join('eve@guild.example', {}, [400, 'field_missing']);
    await join('eve@guild.example', { nick: 'eve' }, 201);
  });

  test('makes one account of a unique field that many register at once, with one profile', async () => {
    const nick = 'founder of all';
    const all = await joinAtOnce(
      Array.from({ length: 12 }, (_, at) => ({ email: `n${at}@guild.example`, nick })),
    );
    const refused = all.filter(({ status }) => status !== 201);
    assert.deepEqual(
      valuesOf(refused, 'status'),
      Array.from({ length: 11 }, () => 409),
    );
    for (const answer of refused) assert.equal(answer.json().errors[0].pointer, '/nick', answer.body);
    assert.equal((await list('profiles?nick=founder+of+all')).length, 1);
    assert.equal((await list('guilds?name=founder+of+all')).length, 1);
  });

  test('makes one account of an address that many register at once', async () => {
    const all = await joinAtOnce(
      Array.from({ length: 8 }, (_, at) => ({ email: 'one@guild.example', nick: `many ${at}` })),
    );
    assert.deepEqual(valuesOf(all, 'status').sort(), [201, ...Array.from({ length: 7 }, () => 409)]);
    assert.equal((await list('profiles?nick[gte]=many&nick[lt]=manz')).length, 1);
  });

  test('takes references between accounts at a registration, and refuses those that lead nowhere', async () => {
    const sponsor = tokensOf(await join('old@guild.example', { nick: 'old' }, 201));
    await join('new@guild.example', { nick: 'new', sponsorId: sponsor.userId }, 201);
    const lost = { nick: 'lost', sponsorId: 'usr_none' };
    await join('lost@guild.example', lost, [422, 'reference_missing']);
    const expect: Expectation = [409, 'dependants_exist'];
    await client.ask('DELETE', `users/${sponsor.userId}`, { as: sponsor.token, expect });
  });

  test('runs for accounts that administrators make, and removes accounts with their hook in place', async () => {
    const json = { email: 'made@guild.example', nick: 'made', level: 3 };
    const expect = { status: 201, members: { level: 1 } };
    const { id } = (await client.ask('POST', 'users', { json, as: adminKey, expect })).json();
    const [profile] = await list(`profiles?userId=${id}`);
    const remove = (path: string, status: number) =>
      client.ask('DELETE', path, { as: adminKey, expect: status });
    await remove(`users/${id}`, 409);
    await remove(`profiles/${profile?.id}`, 204);
    await remove(`users/${id}`, 204);
    const types = valuesOf(await list(`audit?subject=${id}`), 'type');
    assert.deepEqual(types.sort(), ['account.deleted', 'account.registered']);
  });
});

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
