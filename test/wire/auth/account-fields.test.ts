/** Accounts with fields of an application (§5.7), on both stores: what they show, who changes them, and what follows at once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  asAdministrator,
  base,
  bearer,
  changeUser,
  login,
  makeKey,
  register,
  serveAccounts,
  type Tokens,
  tokensOf,
} from '../../harness/account-client.ts';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import type { Expectation } from '../../harness/expected-answer.ts';
import { valuesOf } from '../../harness/values-of.ts';

const config = fileURLToPath(new URL('./fixtures/agency.config.ts', import.meta.url));
const password = 'correct horse battery';
type Headers = Readonly<Record<string, string>>;

describeOnEachStore('accounts with fields', async (engine) => {
  const env = { COMITY_LOGIN_ATTEMPTS: '0' };
  const { program: server, client } = await serveAccounts({ config, engine, env });
  const send = (method: string, path: string, headers: Headers, expect: Expectation, json?: unknown) =>
    client.ask(method, path, { headers, json, expect });
  const get = (path: string, headers: Headers, expect: Expectation = 200) =>
    send('GET', path, headers, expect);
  const patch = (id: string, by: Headers, json: unknown, expect: Expectation) =>
    send('PATCH', `users/${id}`, by, expect, json);
  const remove = (path: string, by: Headers, expect: Expectation) => send('DELETE', path, by, expect);
  const shownTo = async (by: Headers, id: string) => (await get(`users/${id}`, by)).json();
  let emails = 0;
  const newcomer = (): Promise<Tokens> => {
    emails += 1;
    return register(client, `n${emails}@lighthouse.example`, password);
  };

  for (const id of ['lighthouse', 'harbour']) {
    await send('PUT', `organisations/${id}`, asAdministrator, 201, { name: id });
  }
  const agent = await register(client, 'sam@lighthouse.example', password);
  const customer = await register(client, 'ada@lighthouse.example', password);
  const stranger = await register(client, 'eve@harbour.example', password);
  const manager = await register(client, 'max@lighthouse.example', password);
  await changeUser(client, agent.userId, { role: 'agent' });
  await changeUser(client, stranger.userId, { organisationId: 'harbour' });
  await changeUser(client, manager.userId, { roles: ['manager', 'agent'], role: 'lead' });

  test('shows the fields in /users and, beside what Comity says of the caller, in /auth/me', async () => {
    const {
      id: _,
      createdAt: _c,
      updatedAt: _u,
      ...account
    } = await shownTo(asAdministrator, customer.userId);
    const fields = { organisationId: 'lighthouse', role: 'customer', locale: 'en' };
    assert.deepEqual(account, {
      email: 'ada@lighthouse.example',
      emailVerified: false,
      roles: [],
      scopes: ['read', 'write'],
      disabled: false,
      ...fields,
    });
    await get('auth/me', bearer(customer.token), { status: 200, members: { fields } });
    await get('auth/me', asAdministrator, { status: 200, members: { fields: undefined } });
    const again = await login(client, 'ada@lighthouse.example', password);
    assert.equal(again.userId, customer.userId);
  });

  test('lets an account set the fields that the rules give it, at its registration and later, and no others', async () => {
    const given = { phone: '+44 20 7946 0000', locale: 'de' };
    const json = { email: 'kim@harbour.example', password, ...given };
    const registered = await client.ask('POST', 'auth/register', { json, expect: 201 });
    assert.deepEqual(Object.keys(registered.json().user), ['id', 'email']);
    const kim = tokensOf(registered);
    const by = bearer(kim.token);
    const path = `users/${kim.userId}`;
    await get(path, by, { status: 200, members: { ...given, role: 'customer' } });
    await patch(kim.userId, by, { phone: '1', locale: 'fr' }, 200);
    for (const field of [{ organisationId: 'lighthouse' }, { role: 'agent' }, { roles: ['manager'] }]) {
      const pointer = `/${Object.keys(field)[0]}`;
      await patch(kim.userId, by, field, [400, 'field_unpatchable', pointer]);
      await send('PUT', path, by, 400, { ...(await shownTo(by, kim.userId)), ...field });
      const operations = [{ op: 'add', path: pointer, value: Object.values(field)[0] }];
      await client.ask('PATCH', path, {
        headers: { ...by, 'Content-Type': 'application/json-patch+json' },
        body: JSON.stringify(operations),
        expect: 400,
      });
    }
    await patch(kim.userId, by, { rating: 5 }, 422);
  });

  test('refuses a registration that sets what a rule reserves, or what does not fit, and makes no account', async () => {
    for (const field of [
      { role: 'agent' },
      { organisationId: 'lighthouse' },
      { rating: 5 },
      { roles: ['administrator'] },
      { tenant: 'lighthouse' },
      { scopes: ['admin'] },
      { emailVerified: true },
      { id: 'usr_1' },
      { locale: 'English' },
      { phone: 7 },
      { phone: null },
      { name: 'Nobody' },
    ]) {
      const json = { email: 'mallory@harbour.example', password, ...field };
      const expect = { status: 422, pointers: [`/${Object.keys(field)[0]}`] };
      await client.ask('POST', 'auth/register', { json, expect });
    }
    await get('users?email=mallory@harbour.example', asAdministrator, { status: 200, ids: [] });
  });

  test('runs beforeWrite for registrations, for accounts that are made, and for their changes', async () => {
    const members = { organisationId: 'lighthouse' };
    await get(`users/${customer.userId}`, asAdministrator, { status: 200, members });
    const json = { email: 'made@lighthouse.example' };
    const made = await send('POST', 'users', asAdministrator, { status: 201, members }, json);
    await patch(made.json().id, asAdministrator, { name: 'Nobody' }, [422, 'name_taken']);
  });

  test('shows accounts by the rules: an agent those of the own organisation, others their own', async () => {
    const by = bearer(agent.token);
    const { items } = (await get('users?limit=1000', by)).json();
    assert.ok(items.length >= 3);
    for (const { organisationId } of items) assert.equal(organisationId, 'lighthouse');
    await get('users', bearer(stranger.token), { status: 200, ids: [stranger.userId] });
    await get(`users/${stranger.userId}`, by, 404);
    await get(`users/${customer.userId}`, by, 200);
    await get('users', {}, 401);
    const query = { filter: { organisationId: 'lighthouse', role: 'agent' }, sort: ['-organisationId'] };
    await send('QUERY', 'users', by, { status: 200, ids: [agent.userId] }, query);
    const found = [{ id: customer.userId, role: 'customer' }];
    await get('users?q=ada@light&fields=id,role', by, { status: 200, members: { items: found } });
    const fields = { 'x-total-count': String(items.length) };
    await get('users?limit=1', { ...by, Prefer: 'count=exact' }, { status: 200, fields });
  });

  test('lets nobody find by a filter, an order, a search or a query what is hidden', async () => {
    await changeUser(client, customer.userId, { rating: 9 });
    const by = bearer(agent.token);
    for (const query of [
      'rating=9',
      'rating[gt]=1',
      'sort=rating',
      'sort=-phone',
      'phone=1',
      'fields=rating',
    ])
      await get(`users?${query}`, by, 400);
    for (const filter of [{ rating: 9 }, { not: { rating: null } }, { or: [{ phone: '1' }] }])
      await send('QUERY', 'users', by, 422, { filter });
    await client.ask('QUERY', 'users', {
      headers: { ...by, 'Content-Type': 'application/sql' },
      body: 'SELECT id FROM users WHERE rating > 1',
      expect: 422,
    });
    const members = { rating: undefined, phone: undefined };
    await get(`users/${customer.userId}`, by, { status: 200, members });
    assert.equal((await get('auth/me', bearer(customer.token))).json().fields.rating, undefined);
    await get('users?rating[gt]=8', asAdministrator, { status: 200, ids: [customer.userId] });
  });

  test('takes references to accounts: 422 for one that is missing or not to be seen, 409 for a deletion', async () => {
    const ada = await newcomer();
    const create = (assigneeId: string, expect: Expectation) =>
      send('POST', 'tickets', bearer(agent.token), expect, { title: 'Lamp', assigneeId });
    for (const id of ['usr_none', stranger.userId])
      await create(id, [422, 'reference_missing', '/assigneeId']);
    const made = await create(ada.userId, 201);
    const inUse = { status: 409, code: 'dependants_exist' };
    await remove(`users/${ada.userId}`, bearer(ada.token), { ...inUse, members: { ticketCount: 1 } });
    await get('auth/me', bearer(ada.token), 200);
    const organisation = await remove('organisations/harbour', asAdministrator, inUse);
    assert.ok(Number(organisation.json().userCount) >= 1, organisation.body);
    const dangling: Expectation = [422, 'reference_missing', '/organisationId'];
    await patch(ada.userId, asAdministrator, { organisationId: 'nowhere' }, dangling);
    await remove(`tickets/${made.json().id}`, asAdministrator, 204);
    await remove(`users/${ada.userId}`, bearer(ada.token), 204);
  });

  test('keeps the fields and references of an account when Comity rewrites it', async () => {
    const ada = await newcomer();
    const changes = { emailVerified: true, rating: 3 };
    await changeUser(client, ada.userId, changes);
    const members = { organisationId: 'lighthouse', ...changes };
    await get(`users/${ada.userId}`, asAdministrator, { status: 200, members });
  });

  test('puts the fields on the principal of rules and hooks, and needs no new login when they change', async () => {
    const ada = await newcomer();
    const key = await makeKey(client, bearer(ada.token));
    const create = (headers: Headers, expect: Expectation) =>
      send('POST', 'tickets', headers, expect, { title: 'Door' });
    const credentials = [bearer(ada.token), bearer(key.key)];
    for (const credential of credentials) await create(credential, 403);
    await changeUser(client, ada.userId, { role: 'agent' });
    for (const credential of credentials) {
      const made = await create(credential, { status: 201, members: { organisationId: 'lighthouse' } });
      await get(`tickets/${made.json().id}`, credential, 200);
      await get(`tickets/${made.json().id}`, bearer(stranger.token), 404);
    }
    await changeUser(client, ada.userId, { organisationId: 'harbour' });
    for (const credential of credentials) {
      await create(credential, { status: 201, members: { organisationId: 'harbour' } });
      for (const { organisationId } of (await get('tickets', credential)).json().items)
        assert.equal(organisationId, 'harbour');
    }
    await changeUser(client, ada.userId, { role: 'customer' });
    for (const credential of credentials) await create(credential, 403);
  });

  test('cuts a stream of events when the fields of its caller change', async () => {
    const ada = await newcomer();
    const stream = await fetch(`${server.url}${base}/events`, {
      headers: { ...bearer(ada.token), Accept: 'text/event-stream' },
    });
    assert.equal(stream.status, 200);
    const ended = stream.text();
    await changeUser(client, ada.userId, { organisationId: 'harbour' });
    await ended;
  });

  test('lets an account administer those that match, within its own rights', async () => {
    const ada = await newcomer();
    const by = bearer(manager.token);
    for (const json of [
      { name: 'Ada' },
      { role: 'agent' },
      { roles: ['agent'] },
      { scopes: ['read'] },
      { disabled: true },
      { disabled: false, scopes: ['read', 'write'], roles: [] },
      { email: 'renamed@lighthouse.example' },
    ]) {
      await patch(ada.userId, by, json, 200);
    }
    const other = { password: 'another horse battery' };
    await send('POST', `users/${ada.userId}/password`, by, 204, other);
    await login(client, 'renamed@lighthouse.example', other.password);
    const hired = { email: 'hired@lighthouse.example', organisationId: 'lighthouse', role: 'agent' };
    await send('POST', 'users', by, 201, hired);
    const spy = { email: 'spy@harbour.example', organisationId: 'harbour' };
    await send('POST', 'users', by, [403, 'forbidden'], spy);
    const seen = valuesOf((await get('users?limit=1000', by)).json().items, 'id');
    assert.ok(seen.includes(ada.userId));
    assert.ok(!seen.includes(stranger.userId));
    await remove(`users/${ada.userId}`, by, 204);
    const audit = await get(`audit?subject=${ada.userId}&actor.id=${manager.userId}`, asAdministrator);
    const types = valuesOf(audit.json().items, 'type');
    assert.ok(types.includes('account.roles_changed') && types.includes('account.deleted'), types.join());
  });

  test('lets an administering account neither give nor touch more than it has', async () => {
    const ada = await newcomer();
    const chief = await newcomer();
    const by = bearer(manager.token);
    const refusal: Expectation = [403, 'forbidden'];
    await changeUser(client, chief.userId, { roles: ['chief'] });
    for (const json of [
      { roles: ['chief'] },
      { roles: ['administrator'] },
      { scopes: ['read', 'write', 'admin'] },
      { scopes: ['webhooks'] },
      { tenant: 'lighthouse' },
      { organisationId: 'harbour' },
    ]) {
      for (const id of [ada.userId, manager.userId]) await patch(id, by, json, refusal);
    }
    await patch(ada.userId, by, { emailVerified: true }, 400);
    for (const json of [{ disabled: true }, { email: 'x@lighthouse.example' }, { roles: [] }, { name: 'X' }])
      await patch(chief.userId, by, json, 403);
    const json = { password: 'another horse battery' };
    await send('POST', `users/${chief.userId}/password`, by, 403, json);
    await send('POST', `users/${stranger.userId}/password`, by, 404, json);
    await remove(`users/${chief.userId}`, by, 403);
    await patch(stranger.userId, by, { name: 'X' }, 404);
    await send('POST', 'users/bulk-delete', by, 403, { ids: [chief.userId, stranger.userId] });
    await send('POST', `users/${agent.userId}/password`, bearer(agent.token), 403, json);
    const escalated = { email: 'z@harbour.example', roles: ['administrator'] };
    await send('POST', 'users', by, 403, escalated);
  });

  test('refuses an account that is longer than accounts may be', async () => {
    const ada = await newcomer();
    const by = bearer(ada.token);
    await patch(ada.userId, by, { phone: '1'.repeat(70_000) }, [413, 'content_too_large']);
    await patch(ada.userId, by, { phone: '1'.repeat(60_000) }, 422);
  });

  test('answers conditional requests for accounts like those for other documents', async () => {
    const path = `users/${customer.userId}`;
    const headers = bearer(customer.token);
    const etag = String((await get(path, headers)).headers.etag);
    await get(path, { ...headers, 'If-None-Match': etag }, 304);
    await changeUser(client, customer.userId, { role: 'lead' });
    await send('PATCH', path, { ...headers, 'If-Match': etag }, 412, { name: 'A' });
  });
});
