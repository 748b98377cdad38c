/** Accounts with fields of an application (§5.7), on both stores: what they show, who changes them, and what follows at once. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  type Answer,
  asAdministrator,
  base,
  bearer,
  type Client,
  changeUser,
  login,
  makeKey,
  openClient,
  register,
  type Tokens,
  tokensOf,
} from '../../harness/account-client.ts';
import { engineNames } from '../../harness/engine-names.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';

const config = fileURLToPath(new URL('./fixtures/agency.config.ts', import.meta.url));
const password = 'correct horse battery';
type Headers = Readonly<Record<string, string>>;

for (const engine of engineNames) {
  describe(`accounts with fields on ${engine}`, () => {
    let server: RunningServer;
    let client: Client;
    let agent: Tokens;
    let customer: Tokens;
    let stranger: Tokens;
    let manager: Tokens;

    before(async () => {
      const database = engine === 'SQLite' ? undefined : await databaseOfProgram(config);
      const env = {
        COMITY_LOGIN_ATTEMPTS: '0',
        ...(database === undefined ? {} : { COMITY_DATABASE_URL: database.url }),
      };
      server = await startServer({ config, env });
      client = openClient(server.port);
      for (const id of ['lighthouse', 'harbour'])
        assert.equal((await send('PUT', `/organisations/${id}`, asAdministrator, { name: id })).status, 201);
      agent = await register(client, 'sam@lighthouse.example', password);
      customer = await register(client, 'ada@lighthouse.example', password);
      stranger = await register(client, 'eve@harbour.example', password);
      manager = await register(client, 'max@lighthouse.example', password);
      await changeUser(client, agent.userId, { role: 'agent' });
      await changeUser(client, stranger.userId, { organisationId: 'harbour' });
      await changeUser(client, manager.userId, { roles: ['manager', 'agent'], role: 'lead' });
      if (database !== undefined) after(() => database.dispose());
    });

    after(async () => {
      client.close();
      await server.stop();
    });

    function send(method: string, path: string, headers: Headers, json?: unknown): Promise<Answer> {
      return client.ask(method, `${base}${path}`, { headers, ...(json === undefined ? {} : { json }) });
    }

    const patch = (id: string, by: Headers, json: unknown): Promise<Answer> =>
      send('PATCH', `/users/${id}`, by, json);
    const codeOf = (answer: Answer): readonly unknown[] => [answer.status, answer.json().code];
    const pointersOf = (answer: Answer): readonly unknown[] =>
      (answer.json().errors as readonly { pointer: string }[]).map(({ pointer }) => pointer);
    const idsOf = (answer: Answer): readonly unknown[] =>
      (answer.json().items as readonly { id: string }[]).map(({ id }) => id).sort();
    let emails = 0;
    const newcomer = (): Promise<Tokens> => {
      emails += 1;
      return register(client, `n${emails}@lighthouse.example`, password);
    };

    test('shows the fields in /users and, beside what Comity says of the caller, in /auth/me', async () => {
      const { json } = await send('GET', `/users/${customer.userId}`, asAdministrator);
      const { id: _, createdAt: _c, updatedAt: _u, ...account } = json();
      assert.deepEqual(account, {
        email: 'ada@lighthouse.example',
        emailVerified: false,
        roles: [],
        scopes: ['read', 'write'],
        disabled: false,
        organisationId: 'lighthouse',
        role: 'customer',
        locale: 'en',
      });
      const me = await send('GET', '/auth/me', bearer(customer.token));
      assert.deepEqual(me.json().fields, { organisationId: 'lighthouse', role: 'customer', locale: 'en' });
      assert.deepEqual((await send('GET', '/auth/me', asAdministrator)).json().fields, undefined);
      const again = await login(client, 'ada@lighthouse.example', password);
      assert.equal(again.userId, customer.userId);
    });

    test('lets an account set the fields that the rules give it, at its registration and later, and no others', async () => {
      const content = { email: 'kim@harbour.example', password };
      const given = { ...content, phone: '+44 20 7946 0000', locale: 'de' };
      const registered = await send('POST', '/auth/register', {}, given);
      assert.equal(registered.status, 201, registered.body);
      assert.deepEqual(Object.keys(registered.json().user as object), ['id', 'email']);
      const kim = tokensOf(registered);
      const shown = (await send('GET', `/users/${kim.userId}`, bearer(kim.token))).json();
      assert.deepEqual([shown.phone, shown.locale, shown.role], ['+44 20 7946 0000', 'de', 'customer']);
      assert.equal((await patch(kim.userId, bearer(kim.token), { phone: '1', locale: 'fr' })).status, 200);
      for (const field of [{ organisationId: 'lighthouse' }, { role: 'agent' }, { roles: ['manager'] }]) {
        const refused = await patch(kim.userId, bearer(kim.token), field);
        assert.deepEqual(codeOf(refused), [400, 'field_unpatchable'], refused.body);
        const path = `/${Object.keys(field)[0]}`;
        assert.deepEqual(pointersOf(refused), [path]);
        const document = await send('GET', `/users/${kim.userId}`, bearer(kim.token));
        const replaced = await send('PUT', `/users/${kim.userId}`, bearer(kim.token), {
          ...document.json(),
          ...field,
        });
        assert.equal(replaced.status, 400, replaced.body);
        const operations = [{ op: 'add', path, value: Object.values(field)[0] }];
        const patched = await client.ask('PATCH', `${base}/users/${kim.userId}`, {
          headers: { ...bearer(kim.token), 'Content-Type': 'application/json-patch+json' },
          body: JSON.stringify(operations),
        });
        assert.equal(patched.status, 400, patched.body);
      }
      const hidden = await patch(kim.userId, bearer(kim.token), { rating: 5 });
      assert.equal(hidden.status, 422, hidden.body);
    });

    test('refuses a registration that sets what a rule reserves, or what does not fit, and makes no account', async () => {
      for (const [field, status] of [
        [{ role: 'agent' }, 422],
        [{ organisationId: 'lighthouse' }, 422],
        [{ rating: 5 }, 422],
        [{ roles: ['administrator'] }, 422],
        [{ tenant: 'lighthouse' }, 422],
        [{ scopes: ['admin'] }, 422],
        [{ emailVerified: true }, 422],
        [{ id: 'usr_1' }, 422],
        [{ locale: 'English' }, 422],
        [{ phone: 7 }, 422],
        [{ phone: null }, 422],
        [{ name: 'Nobody' }, 422],
      ] as const) {
        const json = { email: 'mallory@harbour.example', password, ...field };
        const refused = await send('POST', '/auth/register', {}, json);
        assert.equal(refused.status, status, `${JSON.stringify(field)} ${refused.body}`);
        assert.deepEqual(pointersOf(refused), [`/${Object.keys(field)[0]}`]);
      }
      const listed = await send('GET', '/users?email=mallory@harbour.example', asAdministrator);
      assert.deepEqual(listed.json().items, []);
    });

    test('runs beforeWrite for registrations, for accounts that are made, and for their changes', async () => {
      const shown = (await send('GET', `/users/${customer.userId}`, asAdministrator)).json();
      assert.equal(shown.organisationId, 'lighthouse');
      const json = { email: 'made@lighthouse.example' };
      const made = await send('POST', '/users', asAdministrator, json);
      assert.deepEqual([made.status, made.json().organisationId], [201, 'lighthouse'], made.body);
      const refused = await patch(String(made.json().id), asAdministrator, { name: 'Nobody' });
      assert.deepEqual(codeOf(refused), [422, 'name_taken']);
    });

    test('shows accounts by the rules: an agent those of the own organisation, others their own', async () => {
      const listed = await send('GET', '/users?limit=1000', bearer(agent.token));
      const items = listed.json().items as readonly Record<string, unknown>[];
      assert.ok(items.length >= 3, listed.body);
      for (const { organisationId } of items) assert.equal(organisationId, 'lighthouse');
      assert.deepEqual(idsOf(await send('GET', '/users', bearer(stranger.token))), [stranger.userId]);
      assert.equal((await send('GET', `/users/${stranger.userId}`, bearer(agent.token))).status, 404);
      assert.equal((await send('GET', `/users/${customer.userId}`, bearer(agent.token))).status, 200);
      assert.equal((await send('GET', '/users', {})).status, 401);
      const query = { filter: { organisationId: 'lighthouse', role: 'agent' }, sort: ['-organisationId'] };
      assert.deepEqual(idsOf(await send('QUERY', '/users', bearer(agent.token), query)), [agent.userId]);
      const found = await send('GET', '/users?q=ada@light&fields=id,role', bearer(agent.token));
      assert.deepEqual(found.json().items, [{ id: customer.userId, role: 'customer' }]);
      const counted = await client.ask('GET', `${base}/users?limit=1`, {
        headers: { ...bearer(agent.token), Prefer: 'count=exact' },
      });
      assert.equal(counted.headers['x-total-count'], String(items.length));
    });

    test('lets nobody find by a filter, an order, a search or a query what is hidden', async () => {
      await changeUser(client, customer.userId, { rating: 9 });
      const paths = ['rating=9', 'rating[gt]=1', 'sort=rating', 'sort=-phone', 'phone=1', 'fields=rating'];
      for (const query of paths) {
        const refused = await send('GET', `/users?${query}`, bearer(agent.token));
        assert.equal(refused.status, 400, `${query} ${refused.body}`);
      }
      for (const filter of [{ rating: 9 }, { not: { rating: null } }, { or: [{ phone: '1' }] }]) {
        const refused = await send('QUERY', '/users', bearer(agent.token), { filter });
        assert.equal(refused.status, 422, refused.body);
      }
      const sql = await client.ask('QUERY', `${base}/users`, {
        headers: { ...bearer(agent.token), 'Content-Type': 'application/sql' },
        body: 'SELECT id FROM users WHERE rating > 1',
      });
      assert.equal(sql.status, 422, sql.body);
      const seen = (await send('GET', `/users/${customer.userId}`, bearer(agent.token))).json();
      assert.deepEqual([seen.rating, seen.phone], [undefined, undefined]);
      const me = await send('GET', '/auth/me', bearer(customer.token));
      assert.equal((me.json().fields as { rating?: number }).rating, undefined);
      const asAdmin = await send('GET', '/users?rating[gt]=8', asAdministrator);
      assert.deepEqual(idsOf(asAdmin), [customer.userId]);
    });

    test('takes references to accounts: 422 for one that is missing or not to be seen, 409 for a deletion', async () => {
      const ada = await newcomer();
      const create = (assigneeId: string) =>
        send('POST', '/tickets', bearer(agent.token), { title: 'Lamp', assigneeId });
      for (const id of ['usr_none', stranger.userId]) {
        const refused = await create(id);
        assert.deepEqual(
          [...codeOf(refused), ...pointersOf(refused)],
          [422, 'reference_missing', '/assigneeId'],
        );
      }
      const made = await create(ada.userId);
      assert.equal(made.status, 201, made.body);
      const inUse = await send('DELETE', `/users/${ada.userId}`, bearer(ada.token));
      assert.deepEqual([...codeOf(inUse), inUse.json().ticketCount], [409, 'dependants_exist', 1]);
      assert.equal((await send('GET', '/auth/me', bearer(ada.token))).status, 200);
      const organisation = await send('DELETE', '/organisations/harbour', asAdministrator);
      assert.deepEqual(codeOf(organisation), [409, 'dependants_exist']);
      assert.ok(Number(organisation.json().userCount) >= 1, organisation.body);
      const dangling = await patch(ada.userId, asAdministrator, { organisationId: 'nowhere' });
      assert.deepEqual(
        [...codeOf(dangling), ...pointersOf(dangling)],
        [422, 'reference_missing', '/organisationId'],
      );
      assert.equal((await send('DELETE', `/tickets/${made.json().id}`, asAdministrator)).status, 204);
      assert.equal((await send('DELETE', `/users/${ada.userId}`, bearer(ada.token))).status, 204);
    });

    test('keeps the fields and references of an account when Comity rewrites it', async () => {
      const ada = await newcomer();
      await changeUser(client, ada.userId, { emailVerified: true, rating: 3 });
      const shown = (await send('GET', `/users/${ada.userId}`, asAdministrator)).json();
      assert.deepEqual([shown.organisationId, shown.rating, shown.emailVerified], ['lighthouse', 3, true]);
    });

    test('puts the fields on the principal of rules and hooks, and needs no new login when they change', async () => {
      const ada = await newcomer();
      const key = await makeKey(client, bearer(ada.token));
      const create = (headers: Headers) => send('POST', '/tickets', headers, { title: 'Door' });
      for (const credential of [bearer(ada.token), bearer(key.key)]) {
        assert.equal((await create(credential)).status, 403);
      }
      await changeUser(client, ada.userId, { role: 'agent' });
      for (const credential of [bearer(ada.token), bearer(key.key)]) {
        const made = await create(credential);
        assert.deepEqual([made.status, made.json().organisationId], [201, 'lighthouse'], made.body);
        assert.equal((await send('GET', `/tickets/${made.json().id}`, credential)).status, 200);
        assert.equal((await send('GET', `/tickets/${made.json().id}`, bearer(stranger.token))).status, 404);
      }
      await changeUser(client, ada.userId, { organisationId: 'harbour' });
      for (const credential of [bearer(ada.token), bearer(key.key)]) {
        assert.equal((await create(credential)).json().organisationId, 'harbour');
        const listed = await send('GET', '/tickets', credential);
        for (const { organisationId } of listed.json().items as { organisationId: string }[])
          assert.equal(organisationId, 'harbour');
      }
      await changeUser(client, ada.userId, { role: 'customer' });
      for (const credential of [bearer(ada.token), bearer(key.key)])
        assert.equal((await create(credential)).status, 403);
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
        const changed = await patch(ada.userId, by, json);
        assert.equal(changed.status, 200, `${JSON.stringify(json)} ${changed.body}`);
      }
      const set = await send('POST', `/users/${ada.userId}/password`, by, {
        password: 'another horse battery',
      });
      assert.equal(set.status, 204, set.body);
      await login(client, 'renamed@lighthouse.example', 'another horse battery');
      const made = await send('POST', '/users', by, {
        email: 'hired@lighthouse.example',
        organisationId: 'lighthouse',
        role: 'agent',
      });
      assert.equal(made.status, 201, made.body);
      const other = { email: 'spy@harbour.example', organisationId: 'harbour' };
      assert.deepEqual(codeOf(await send('POST', '/users', by, other)), [403, 'forbidden']);
      const seen = await send('GET', '/users?limit=1000', by);
      assert.ok(idsOf(seen).includes(ada.userId));
      assert.ok(!idsOf(seen).includes(stranger.userId));
      assert.equal((await send('DELETE', `/users/${ada.userId}`, by)).status, 204);
      const audit = await send(
        'GET',
        `/audit?subject=${ada.userId}&actor.id=${manager.userId}`,
        asAdministrator,
      );
      const types = (audit.json().items as { type: string }[]).map(({ type }) => type);
      assert.ok(types.includes('account.roles_changed') && types.includes('account.deleted'), types.join());
    });

    test('lets an administering account neither give nor touch more than it has', async () => {
      const ada = await newcomer();
      const chief = await newcomer();
      const by = bearer(manager.token);
      await changeUser(client, chief.userId, { roles: ['chief'] });
      for (const json of [
        { roles: ['chief'] },
        { roles: ['administrator'] },
        { scopes: ['read', 'write', 'admin'] },
        { scopes: ['webhooks'] },
        { tenant: 'lighthouse' },
      ]) {
        const refused = await patch(ada.userId, by, json);
        assert.deepEqual(codeOf(refused), [403, 'forbidden'], `${JSON.stringify(json)} ${refused.body}`);
        const self = await patch(manager.userId, by, json);
        assert.deepEqual(codeOf(self), [403, 'forbidden'], `${JSON.stringify(json)} ${self.body}`);
      }
      assert.equal((await patch(ada.userId, by, { emailVerified: true })).status, 400);
      for (const id of [ada.userId, manager.userId]) {
        const moved = await patch(id, by, { organisationId: 'harbour' });
        assert.deepEqual(codeOf(moved), [403, 'forbidden'], moved.body);
      }
      for (const json of [
        { disabled: true },
        { email: 'x@lighthouse.example' },
        { roles: [] },
        { name: 'X' },
      ]) {
        const refused = await patch(chief.userId, by, json);
        assert.equal(refused.status, 403, refused.body);
      }
      const json = { password: 'another horse battery' };
      assert.equal((await send('POST', `/users/${chief.userId}/password`, by, json)).status, 403);
      assert.equal((await send('POST', `/users/${stranger.userId}/password`, by, json)).status, 404);
      assert.equal((await send('DELETE', `/users/${chief.userId}`, by)).status, 403);
      assert.equal((await patch(stranger.userId, by, { name: 'X' })).status, 404);
      const bulk = await send('POST', '/users/bulk-delete', by, { ids: [chief.userId, stranger.userId] });
      assert.equal(bulk.status, 403, bulk.body);
      const own = await send('POST', `/users/${agent.userId}/password`, bearer(agent.token), json);
      assert.equal(own.status, 403, own.body);
      const escalated = await send('POST', '/users', by, {
        email: 'z@harbour.example',
        roles: ['administrator'],
      });
      assert.equal(escalated.status, 403, escalated.body);
    });

    test('refuses an account that is longer than accounts may be', async () => {
      const ada = await newcomer();
      const refused = await patch(ada.userId, bearer(ada.token), { phone: '1'.repeat(70_000) });
      assert.deepEqual(codeOf(refused), [413, 'content_too_large']);
      const within = await patch(ada.userId, bearer(ada.token), { phone: '1'.repeat(60_000) });
      assert.equal(within.status, 422);
    });

    test('answers conditional requests for accounts like those for other documents', async () => {
      const path = `${base}/users/${customer.userId}`;
      const headers = bearer(customer.token);
      const first = await client.ask('GET', path, { headers });
      const etag = String(first.headers.etag);
      const same = await client.ask('GET', path, { headers: { ...headers, 'If-None-Match': etag } });
      assert.equal(same.status, 304);
      await changeUser(client, customer.userId, { role: 'lead' });
      const stale = await client.ask('PATCH', path, {
        headers: { ...headers, 'If-Match': etag },
        json: { name: 'A' },
      });
      assert.equal(stale.status, 412);
    });
  });
}
