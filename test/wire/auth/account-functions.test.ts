/** Functions that change the application's fields of accounts (§5.7.9), on both stores. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { login, register, serveAccounts, type Tokens } from '../../harness/account-client.ts';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import { adminKey } from '../../harness/exchange.ts';
import type { Expectation } from '../../harness/expected-answer.ts';
import { until } from '../../harness/until.ts';

const config = fileURLToPath(new URL('./fixtures/crew.config.ts', import.meta.url));
const password = 'correct horse battery';

describeOnEachStore('functions', async (engine) => {
  const { client } = await serveAccounts({ config, engine });
  const ada = await register(client, 'ada@crew.example', password);
  const bob = await register(client, 'bob@crew.example', password);
  const post = (path: string, json: unknown, expect: Expectation, as = ada.token) =>
    client.ask('POST', path, { json, as, expect });
  const administered = async (path: string) => (await client.ask('GET', path, { as: adminKey })).json();
  const account = (of: Tokens) => administered(`users/${of.userId}`);
  const changesOf = async (of: Tokens) =>
    (await administered(`audit?type=account.changed&subject=${of.userId}&sort=-id`)).items;

  test('a hook changes fields in the unit of its write, which the account’s token shows at once', async () => {
    await post('tasks', { title: 'one', assigneeId: bob.userId }, 201);
    const me = await client.ask('GET', 'auth/me', { as: bob.token });
    assert.equal(me.json().fields.open, 1);
    const [entry] = await changesOf(bob);
    assert.deepEqual(entry.actor, { kind: 'user', id: ada.userId });
    assert.deepEqual(entry.detail, { members: ['open'] });
    assert.ok(entry.requestId);
    const json = { title: 'two', assigneeId: 'usr_nobody' };
    const dangling = await client.ask('POST', 'tasks', { json, as: ada.token });
    assert.ok(dangling.status >= 400, dangling.body);
  });

  test('many writes at once count each one', async () => {
    const before = Number((await account(bob)).open);
    const many = Array.from({ length: 12 }, (_, at) => ({ title: `many ${at}`, assigneeId: bob.userId }));
    await Promise.all(many.map((json) => post('tasks', json, 201)));
    assert.equal((await account(bob)).open, before + 12);
  });

  test('an action changes fields and the name, by the rules of the collection', async () => {
    await client.ask('PUT', 'teams/red', { json: { name: 'Red' }, as: adminKey, expect: 201 });
    const set = (patch: object, expect: Expectation, id = bob.userId) => post('set', { id, patch }, expect);
    const given = { badge: 'gold', teamId: 'red' };
    await set({ ...given, name: 'Bob' }, { status: 200, json: given });
    const { name, badge, email, roles } = await account(bob);
    assert.deepEqual([name, badge, email, roles], ['Bob', 'gold', 'bob@crew.example', []]);
    for (const [patch, status, code] of [
      [{ badge: 7 }, 422, 'validation_failed'],
      [{ unknown: 1 }, 422, 'validation_failed'],
      [{ open: -1 }, 422, 'validation_failed'],
      [{ teamId: 'blue' }, 422, 'reference_missing'],
      [{ badge: 'forbidden' }, 409, 'no_badge'],
    ] as const) {
      await set(patch, [status, code]);
    }
    await set({}, 404, 'usr_nobody');
  });

  test('create accounts, which are enabled by a reset, and change what belongs to Comity', async () => {
    const made = await post(
      'hire',
      { account: { email: ' Cy@Crew.example', roles: ['smith'], badge: 'new' } },
      200,
    );
    const { id } = made.json();
    const cy = await administered(`users/${id}`);
    assert.match(id, /^usr_[0-9a-z]{26}$/);
    assert.deepEqual(
      [cy.email, cy.roles, cy.badge, cy.open, cy.disabled],
      ['cy@crew.example', ['smith'], 'new', 0, false],
    );
    await client.ask('POST', `users/${id}/password`, { json: { password }, as: adminKey, expect: 204 });
    const { token } = await login(client, 'cy@crew.example', password);
    await client.ask('GET', `users/${id}`, { as: token, expect: 200 });
    await client.ask('PATCH', `users/${id}`, { json: { emailVerified: true }, as: adminKey, expect: 200 });
    await post(
      'set',
      { id, patch: { email: 'CY2@crew.example', roles: ['smith', 'guard'], tenant: 'north' } },
      200,
    );
    const { email, emailVerified, roles, tenant } = await administered(`users/${id}`);
    assert.deepEqual(
      [email, emailVerified, roles, tenant],
      ['cy2@crew.example', false, ['smith', 'guard'], 'north'],
    );
    await client.ask('GET', 'auth/me', { as: token, expect: 200 });
    await post('set', { id, patch: { disabled: true } }, 200);
    await client.ask('GET', 'auth/me', { as: token, expect: 401 });
    await post('set', { id, patch: { disabled: false } }, 200);
    // Its sessions have ended, as by a request.
    await client.ask('GET', 'auth/me', { as: token, expect: 401 });
    const { items } = await administered(`audit?subject=${id}&sort=id&limit=100`);
    const types: string[] = items
      .filter(({ actor }: { actor?: { id?: string } }) => actor?.id === ada.userId)
      .map(({ type }: { type: string }) => type);
    assert.deepEqual(types, [
      'account.registered',
      'account.roles_changed',
      'account.changed',
      'account.disabled',
      'account.enabled',
    ]);
    for (const [account, status, code] of [
      [{ email: 'cy2@crew.example' }, 409, 'unique_taken'],
      [{ email: 'none' }, 422, 'validation_failed'],
      [{ email: 'eve@crew.example', roles: ['administrator'] }, 400, 'field_unpatchable'],
      [{ email: 'eve@crew.example', scopes: ['admin'] }, 400, 'field_unpatchable'],
      [{ email: 'eve@crew.example', badge: 'sneaky' }, 400, 'field_unpatchable'],
      [{ email: 'eve@crew.example', badge: 'forbidden' }, 409, 'no_badge'],
      [{ name: 'nobody' }, 400, 'field_missing'],
    ] as const)
      await post('hire', { account }, [status, code]);
    assert.deepEqual((await administered('users?email=eve@crew.example')).items, []);
  });

  test('make no administrator, and change none, not by a hook of accounts either', async () => {
    const { updatedAt: _, ...before } = await account(bob);
    for (const patch of [{ roles: ['administrator'] }, { scopes: ['admin'] }, { badge: 'sneaky' }])
      await post('set', { id: bob.userId, patch }, [400, 'field_unpatchable']);
    const chief = await register(client, 'chief@crew.example', password);
    await client.ask('PATCH', `users/${chief.userId}`, {
      json: { roles: ['administrator'] },
      as: adminKey,
      expect: 200,
    });
    for (const patch of [
      { email: 'eve@crew.example' },
      { roles: [] },
      { disabled: true },
      { tenant: 'north' },
    ])
      await post('set', { id: chief.userId, patch }, [400, 'field_unpatchable']);
    await post('set', { id: chief.userId, patch: { badge: 'chief' } }, 200);
    const { updatedAt: __, ...after } = await account(bob);
    assert.deepEqual(after, before);
    // A mistake of the function.
    await post('remove', { id: bob.userId }, 500);
    assert.equal((await account(bob)).email, 'bob@crew.example');
  });

  test('subscribers and jobs change them, and the audit trail names them', async () => {
    await post('marks', { userId: bob.userId }, 201);
    await until(async () => (await account(bob)).badge === 'by a subscriber', 'the subscriber has run');
    assert.deepEqual((await changesOf(bob))[0].actor, { kind: 'subscriber', id: 'badge' });
    await client.ask('POST', 'jobs/clear/run', { json: {}, as: adminKey });
    await until(async () => (await account(bob)).badge === undefined, 'the job has run');
    assert.deepEqual((await changesOf(bob))[0].actor, { kind: 'job', id: 'clear' });
    // No event tells of accounts.
    const expect = { status: 200, lacks: ['users.'] };
    await client.ask('GET', 'events?limit=1000', { as: adminKey, expect });
  });
});
