/** `/views` (§5.11): views of lists that a person saves and shares, on both stores. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  asAdministrator,
  bearer,
  type Client,
  changeUser,
  openClient,
  register,
  type Tokens,
} from '../../harness/account-client.ts';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import type { Expectation } from '../../harness/expected-answer.ts';
import type { RunningServer } from '../../harness/running-server.ts';
import { serversOn } from '../../harness/servers-on.ts';

const config = fileURLToPath(new URL('./fixtures/views.config.ts', import.meta.url));
const password = 'correct horse battery';
const viewsMax = 4;

describeOnEachStore('Saved views', (engine) => {
  const start = serversOn(engine, config);
  let program: RunningServer;
  let client: Client;
  let ada: Tokens;
  let bob: Tokens;
  let count = 0;

  before(async () => {
    program = await start({ COMITY_VIEWS_PER_OWNER_MAX: String(viewsMax) });
    client = openClient(program.port);
    [ada, bob] = [await person(), await person()];
  });

  /** An account of its own for a test. */
  async function person(rights: Readonly<Record<string, unknown>> = {}): Promise<Tokens> {
    count += 1;
    const made = await register(client, `person${count}@shop.example`, password);
    if (Object.keys(rights).length > 0) await changeUser(client, made.userId, rights);
    return made;
  }

  const ask = (
    method: string,
    path: string,
    { token }: Pick<Tokens, 'token'>,
    expect: Expectation,
    json?: unknown,
  ) => client.ask(method, path, { headers: bearer(token), json, expect });
  const save = async (who: Pick<Tokens, 'token'>, view: object) =>
    (await ask('POST', 'views', who, 201, { collection: 'tasks', name: 'Open', ...view })).json();
  const namesSeenBy = async (who: Pick<Tokens, 'token'>, query = '') => {
    const { items } = (await ask('GET', `views${query}`, who, 200)).json();
    return items.map(({ name }: { readonly name: string }) => name);
  };

  test('saves a view with its owner and defaults, under an id and an entity tag', async () => {
    const who = await person();
    const made = await ask('POST', 'views', who, 201, { collection: 'tasks', name: 'All' });
    const { id, createdAt, updatedAt, ...members } = made.json();
    assert.match(id, /^view_/);
    assert.equal(made.headers.location, `/api/v1/views/${id}`);
    assert.deepEqual(members, {
      ...{ collection: 'tasks', name: 'All', shared: false, query: '', columns: [] },
      ownerId: who.userId,
    });
    const tag = String(made.headers.etag);
    const headers = { ...bearer(who.token), 'If-Match': tag };
    await client.ask('PATCH', `views/${id}`, {
      ...{
        headers,
        json: { query: 'state=open&place.town=Ulm&sort=-title', columns: ['title', 'createdAt'] },
      },
      expect: 200,
    });
    await client.ask('PATCH', `views/${id}`, { headers, json: { name: 'Late' }, expect: 412 });
    await ask('DELETE', `views/${id}`, who, 204);
    await ask('GET', `views/${id}`, who, 404);
  });

  test('makes one view of a repeated request with an Idempotency-Key', async () => {
    const who = await person();
    const headers = { ...bearer(who.token), 'Idempotency-Key': 'once' };
    const json = { collection: 'tasks', name: 'Mine' };
    const [one, other] = [
      await client.ask('POST', 'views', { headers, json, expect: 201 }),
      await client.ask('POST', 'views', { headers, json, expect: 201 }),
    ];
    assert.equal(one.json().id, other.json().id);
    assert.deepEqual(await namesSeenBy(who, '?shared=false'), ['Mine']);
  });

  test('shows its own views and shared ones to a caller, and no others', async () => {
    await save(ada, { name: 'Mine alone' });
    const { id } = await save(ada, { name: 'For all', shared: true });
    assert.deepEqual(await namesSeenBy(ada), ['Mine alone', 'For all']);
    assert.deepEqual(await namesSeenBy(bob), ['For all']);
    await ask('GET', `views/${id}`, bob, 200);
    await client.ask('GET', 'views', { expect: 401 });
  });

  test('lets the owner and administrators alone change and delete a view', async () => {
    const who = await person();
    const { id } = await save(who, { name: 'Team', shared: true });
    await ask('PATCH', `views/${id}`, bob, 403, { name: 'Taken' });
    await ask('DELETE', `views/${id}`, bob, 403);
    const hidden = await save(who, { name: 'Hidden' });
    await ask('PATCH', `views/${hidden.id}`, bob, 404, { name: 'Taken' });
    const changed = { headers: asAdministrator, json: { name: 'Renamed' }, expect: 200 } as const;
    await client.ask('PATCH', `views/${id}`, changed);
    await client.ask('DELETE', `views/${id}`, { headers: asAdministrator, expect: 204 });
  });

  test('shares a view with callers that may read its collection, and takes it back', async () => {
    const planner = await person({ roles: ['planner'] });
    const other = await person({ roles: ['planner'] });
    const { id } = await save(planner, { collection: 'plans', name: 'Plans', shared: true });
    assert.deepEqual(await namesSeenBy(other, '?collection=plans'), ['Plans']);
    assert.deepEqual(await namesSeenBy(bob, '?collection=plans'), []);
    await ask('GET', `views/${id}`, bob, 404);
    await ask('PATCH', `views/${id}`, planner, 200, { shared: false });
    await ask('GET', `views/${id}`, other, 404);
  });

  test('keeps a shared view within the tenant of its owner', async () => {
    const [one, same, stranger] = [
      await person({ tenant: 'acme' }),
      await person({ tenant: 'acme' }),
      await person({ tenant: 'umbra' }),
    ];
    const { tenant } = await save(one, { name: 'Of acme', shared: true });
    assert.equal(tenant, 'acme');
    assert.deepEqual(await namesSeenBy(same, '?tenant=acme'), ['Of acme']);
    assert.deepEqual(await namesSeenBy(stranger, '?tenant=acme'), []);
    assert.deepEqual(await namesSeenBy(bob, '?tenant=acme'), []);
  });

  test('refuses a view of what the caller may not read, of what the list does not have, and beyond its bounds', async () => {
    const who = await person();
    const refuse = (view: object, status: number, ...pointers: string[]) =>
      ask('POST', 'views', who, { status, pointers }, { collection: 'tasks', name: 'x', ...view });
    await refuse({ collection: 'plans' }, 422, '/collection');
    await refuse({ collection: 'nothing' }, 422, '/collection');
    await refuse({ query: 'colour=red' }, 422, '/query');
    await refuse({ query: 'cursor=abc' }, 422, '/query');
    await refuse({ query: 'state=%' }, 422, '/query');
    for (const query of [
      ...['sort=nope', 'title[zap]=1', 'createdAt[gte]=soon', 'limit=0', 'limit=1001', 'order=up', 'page=2'],
      ...['fields=title', 'place.colour=red', `q=${'x'.repeat(201)}`, 'createdAt[gte]=today[Mars/Olympus]'],
    ])
      await refuse({ query }, 422, '/query');
    const known = await ask('POST', 'views', who, 422, {
      collection: 'tasks',
      name: 'x',
      query: 'sort=nope',
    });
    assert.match(known.json().errors[0].message, /^unknown field "nope"; fields: id, title, state/);
    await refuse({ columns: ['title', 'colour'] }, 422, '/columns/1');
    await refuse({ name: '' }, 422, '/name');
    await refuse({ name: 'n'.repeat(101) }, 422, '/name');
    await refuse({ query: `title=${'x'.repeat(4091)}` }, 422, '/query');
    await refuse({ columns: Array.from({ length: 101 }, (_, index) => `c${index}`) }, 422, '/columns');
    await refuse({ ownerId: bob.userId }, 400, '/ownerId');
    await ask('POST', 'views', who, 400, { name: 'No collection' });
    const { id } = await save(who, { name: 'n'.repeat(100), query: `title=${'x'.repeat(4090)}` });
    await ask('PATCH', `views/${id}`, who, { status: 422, pointers: ['/query'] }, { query: 'colour=red' });
    await ask(
      'PATCH',
      `views/${id}`,
      who,
      { status: 400, pointers: ['/collection'] },
      { collection: 'pages' },
    );
    await client.ask('POST', 'views', { json: { collection: 'pages', name: 'x' }, expect: 401 });
  });

  test('keeps a time relative to the present as it was written', async () => {
    const query = 'createdAt[gte]=today-P7D[Europe/Berlin]&sort=-createdAt';
    assert.equal((await save(await person(), { name: 'Week', query })).query, query);
  });

  test('has a name once for each owner and collection', async () => {
    const who = await person();
    await save(who, { name: 'Today' });
    await ask('POST', 'views', who, [409, 'unique_taken'], { collection: 'tasks', name: 'Today' });
    await save(who, { collection: 'pages', name: 'Today' });
    await save(bob, { name: 'Today' });
  });

  test('keeps as many views as the limit for each owner, however many come at once', async () => {
    const who = await person();
    const answers = await Promise.all(
      Array.from({ length: viewsMax * 2 }, (_, index) =>
        client.ask('POST', 'views', {
          ...{ headers: bearer(who.token), json: { collection: 'tasks', name: `View ${index}` } },
        }),
      ),
    );
    const made = answers.filter(({ status }) => status === 201);
    const refused = answers.filter(({ status }) => status === 409);
    assert.deepEqual([made.length, refused.length], [viewsMax, viewsMax]);
    assert.deepEqual(refused[0]?.json(), {
      error: `the limit of ${viewsMax} saved views is reached (COMITY_VIEWS_PER_OWNER_MAX)`,
      code: 'views_exhausted',
    });
    await ask('DELETE', `views/${made[0]?.json().id}`, who, 204);
    await save(who, { name: 'In its place' });
  });

  test('removes the views of an account with the account', async () => {
    const who = await person();
    const { id } = await save(who, { name: 'Left', shared: true });
    await client.ask('DELETE', `users/${who.userId}`, { headers: asAdministrator, expect: 204 });
    await client.ask('GET', `views/${id}`, { headers: asAdministrator, expect: 404 });
  });
});
