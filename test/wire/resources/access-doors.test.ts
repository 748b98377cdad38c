/**
 * Nothing leaks through a side door (§4.7.1, §5.1): whatever the kind of rule, the list, its count, the three kinds of QUERY, a stored
 * query, bulk deletion and the events show exactly the resources that a read by id gives, on both stores.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { engineNames } from '../../harness/engine-names.ts';
import { readEvents } from './event-reader.ts';
import { openHouse, people } from './house-of-rules.ts';
import type { Shop } from './shop-of-many.ts';

type Thing = {
  readonly collection: string;
  readonly maker: string;
  readonly json: Readonly<Record<string, unknown>>;
  /** Who reads it: said here again, in other words than the rules. */
  readonly readers: readonly string[];
};

const everyone = [undefined, ...people.keys()] as const;
const editors = ['ed', 'root'];

const things: readonly Thing[] = [
  { collection: 'papers', maker: 'ada', json: { title: 'a' }, readers: editors },
  { collection: 'papers', maker: 'ed', json: { title: 'b' }, readers: editors },
  { collection: 'hooks', maker: 'ada', json: { title: 'a' }, readers: ['webb', 'root'] },
  { collection: 'offices', maker: 'nora', json: { title: 'n' }, readers: ['nora', 'nils', 'root'] },
  { collection: 'offices', maker: 'nils', json: { title: 'o' }, readers: ['nora', 'nils', 'root'] },
  { collection: 'offices', maker: 'sven', json: { title: 's' }, readers: ['sven', 'root'] },
  { collection: 'offices', maker: 'root', json: { title: 'of nobody' }, readers: ['root'] },
  { collection: 'posts', maker: 'ada', json: { title: 'draft' }, readers: ['ada', ...editors] },
  {
    collection: 'posts',
    maker: 'bob',
    json: { title: 'draft', published: false },
    readers: ['bob', ...editors],
  },
  {
    collection: 'posts',
    maker: 'bob',
    json: { title: 'east', region: 'east' },
    readers: ['bob', 'nils', ...editors],
  },
  {
    collection: 'posts',
    maker: 'bob',
    json: { title: 'south', place: { city: 'south' } },
    readers: ['bob', 'sven', ...editors],
  },
  {
    collection: 'posts',
    maker: 'ed',
    json: { title: 'out', published: true },
    readers: everyone.map(String),
  },
];

const collections = ['papers', 'hooks', 'offices', 'posts'];

type Listed = { items: { id: string }[] };

for (const engine of engineNames) {
  describe(engine, () => {
    let house: Shop;
    const made: (Thing & { readonly id: string })[] = [];

    before(async () => {
      house = await openHouse(engine);
      for (const thing of things) {
        const answer = await house.as(thing.maker, 'POST', `/api/v1/${thing.collection}`, {
          json: thing.json,
        });
        assert.equal(answer.status, 201, `${thing.maker} ${thing.collection}: ${answer.body}`);
        made.push({ ...thing, id: String(answer.json().id) });
      }
    });

    after(() => house.stop());

    const idsOf = (collection: string, who: string | undefined) =>
      made
        .filter((thing) => thing.collection === collection && thing.readers.includes(String(who)))
        .map(({ id }) => id)
        .sort();
    const closed = (collection: string, who: string | undefined) => idsOf(collection, who).length === 0;
    const listed = (answer: { json(): unknown }) =>
      (answer.json() as Listed).items.map(({ id }) => id).sort();

    test('a read by id gives what the rule permits and 404 or 401 and 403 otherwise', async () => {
      for (const who of everyone) {
        for (const { collection, id, readers } of made) {
          const { status } = await house.as(who, 'GET', `/api/v1/${collection}/${id}`);
          const may = readers.includes(String(who));
          const refusals = who === undefined ? [401, 404] : [403, 404];
          assert.ok(may ? status === 200 : refusals.includes(status), `${who} ${collection}: ${status}`);
        }
      }
    });

    test('lists, counts and every kind of QUERY show exactly these, also a stored one in other hands', async () => {
      let shown = 0;
      for (const collection of collections) {
        const path = `/api/v1/${collection}`;
        const bodies = {
          'application/json': '{"limit": 100}',
          'application/x-www-form-urlencoded': 'limit=100',
          'application/sql': `SELECT * FROM ${collection} LIMIT 100`,
        };
        const stored: string[] = [];
        for (const [type, body] of Object.entries(bodies)) {
          const answer = await house.as('root', 'QUERY', path, { body, headers: { 'Content-Type': type } });
          assert.deepEqual(listed(answer), idsOf(collection, 'root'));
          stored.push(String(answer.headers.location));
        }
        for (const who of everyone) {
          const headers = { Prefer: 'count=exact' };
          const list = await house.as(who, 'GET', path, { headers });
          if (list.status !== 200) {
            assert.ok(closed(collection, who), `${who} ${collection}: ${list.status}`);
            assert.equal(list.status, who === undefined ? 401 : 403);
            for (const location of stored) {
              assert.equal((await house.as(who, 'GET', location)).status, list.status);
            }
            continue;
          }
          const wanted = idsOf(collection, who);
          assert.deepEqual(listed(list), wanted, `${who} ${collection}`);
          assert.equal(list.headers['x-total-count'], String(wanted.length));
          for (const [type, body] of Object.entries(bodies)) {
            const answer = await house.as(who, 'QUERY', path, {
              body,
              headers: { ...headers, 'Content-Type': type },
            });
            assert.deepEqual(listed(answer), wanted, `${who} ${type} ${collection}`);
            assert.equal(answer.headers['x-total-count'], String(wanted.length));
          }
          for (const location of stored) {
            assert.deepEqual(listed(await house.as(who, 'GET', location)), wanted, `${who} ${location}`);
          }
          shown += wanted.length;
        }
      }
      assert.ok(shown > 20);
    });

    test('the log of events, one event and the stream show what happened to these alone', async () => {
      for (const who of everyone) {
        const wanted = made
          .filter(({ readers }) => readers.includes(String(who)))
          .map(({ id }) => id)
          .sort();
        const list = await house.as(who, 'GET', '/api/v1/events?limit=100');
        const events = (list.json() as { items: { id: string; data: { object: { id: string } } }[] }).items;
        assert.deepEqual(events.map(({ data }) => data.object.id).sort(), wanted, String(who));
        const all = (await house.as('root', 'GET', '/api/v1/events?limit=100')).json() as {
          items: { id: string }[];
        };
        const mine = new Set(events.map(({ id }) => id));
        for (const { id } of all.items) {
          const { status } = await house.as(who, 'GET', `/api/v1/events/${id}`);
          assert.equal(status, mine.has(id) ? 200 : 404);
        }
        const options = who === undefined ? { anonymous: true } : { bearer: who };
        const reader = await readEvents(house.port, { ...options, path: '/api/v1/events?after=' });
        await reader.until(
          ({ comments, events: came }) => came.length >= wanted.length && comments.length > 0,
        );
        reader.close();
        assert.deepEqual(
          reader.events
            .map(({ data }) => (JSON.parse(data) as { data: { object: { id: string } } }).data.object.id)
            .sort(),
          wanted,
        );
      }
    });

    test('a bulk deletion counts and takes what the caller may delete, as if nothing else were there', async () => {
      const posts = made.filter(({ collection }) => collection === 'posts');
      const ids = posts.map(({ id }) => id);
      const none = await house.as('sven', 'POST', '/api/v1/posts/bulk-delete', { json: { ids } });
      assert.deepEqual(none.json(), { deleted: 0 }, 'what one may read but not delete is not counted');
      const own = await house.as('ada', 'POST', '/api/v1/posts/bulk-delete', { json: { ids } });
      assert.deepEqual(own.json(), { deleted: 1 });
      const offices = made.filter(({ collection }) => collection === 'offices').map(({ id }) => id);
      const other = await house.as('sven', 'POST', '/api/v1/offices/bulk-delete', { json: { ids: offices } });
      assert.deepEqual(other.json(), { deleted: 1 });
      const papers = await house.as('ada', 'POST', '/api/v1/papers/bulk-delete', { json: { ids } });
      assert.equal(papers.status, 403);
    });

    test('a function over what is proposed decides who creates what, by POST and by PUT', async () => {
      const post = (who: string | undefined, json: object) =>
        house.as(who, 'POST', '/api/v1/posts', { json });
      assert.equal((await post('bob', { title: 'x', published: true })).status, 403);
      assert.equal((await post('bob', { title: 'x' })).status, 201);
      assert.equal((await post('ed', { title: 'x', published: true })).status, 201);
      assert.equal((await post(undefined, { title: 'x' })).status, 401);
      const put = (id: string, json: object) => house.as('bob', 'PUT', `/api/v1/posts/${id}`, { json });
      assert.equal((await put('mine', { title: 'x', published: true })).status, 403);
      assert.equal((await house.as('root', 'GET', '/api/v1/posts/mine')).status, 404, 'nothing was made');
      assert.equal((await put('mine', { title: 'x' })).status, 201);
      assert.equal(
        (await put('mine', { title: 'y', published: true })).status,
        200,
        'update has a rule of its own',
      );
    });

    test('a function decides who changes what', async () => {
      const { id } = made.find(({ json }) => json.title === 'out') ?? assert.fail();
      const patch = (who: string | undefined) =>
        house.as(who, 'PATCH', `/api/v1/posts/${id}`, { json: { title: 'new' } });
      assert.equal((await patch('bob')).status, 403, 'seen and not his');
      assert.equal((await patch(undefined)).status, 401);
      assert.equal((await patch('ed')).status, 200);
      assert.equal((await patch('root')).status, 200);
    });

    test('the tenant of a resource is that of who makes it, and stays', async () => {
      const create = (who: string, json: object) => house.as(who, 'POST', '/api/v1/offices', { json });
      assert.equal((await create('ada', { title: 'x' })).status, 403, 'without a tenant');
      const office = await create('nora', { title: 'x' });
      assert.equal(office.json().tenantId, 'north');
      const foreign = await create('nora', { title: 'x', tenantId: 'south' });
      assert.equal(foreign.status, 400);
      assert.equal(foreign.json().code, 'field_unpatchable');
      assert.equal((await create('root', { title: 'x', tenantId: 'south' })).json().tenantId, 'south');
      const path = `/api/v1/offices/${office.json().id}`;
      const put = await house.as('nils', 'PUT', path, { json: { title: 'y' } });
      assert.equal(put.status, 200);
      assert.equal(put.json().tenantId, 'north');
      const moved = await house.as('nils', 'PATCH', path, { json: { tenantId: 'south' } });
      assert.equal(moved.status, 400);
      for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
        const json = method === 'GET' || method === 'DELETE' ? {} : { json: { title: 'z' } };
        assert.equal((await house.as('sven', method, path, json)).status, 404, method);
      }
    });

    test('a reference to what the caller may not see is one to nothing, and does not hold it', async () => {
      const offices = '/api/v1/offices';
      const office = String((await house.as('nora', 'POST', offices, { json: { title: 'x' } })).json().id);
      const desk = (who: string, officeId: string) =>
        house.as(who, 'POST', '/api/v1/desks', { json: { title: 'd', officeId } });
      const [foreign, absent] = [await desk('sven', office), await desk('sven', 'none')];
      assert.deepEqual([foreign.status, foreign.body], [422, absent.body]);
      const own = String((await house.as('sven', 'POST', offices, { json: { title: 'y' } })).json().id);
      const made = await desk('sven', own);
      assert.equal(made.status, 201);
      const path = `/api/v1/desks/${made.json().id}`;
      for (const [method, json] of [
        ['PATCH', { officeId: office }],
        ['PUT', { title: 'd', officeId: office }],
      ] as const) {
        assert.equal((await house.as('sven', method, path, { json })).body, absent.body, method);
      }
      assert.equal((await house.as('nora', 'DELETE', `${offices}/${office}`)).status, 204);
      // One that stood before the caller lost sight of it stands.
      assert.equal((await house.as('root', 'PATCH', `${offices}/${own}`, { json: {} })).status, 200);
      assert.equal((await house.as('sven', 'PATCH', path, { json: { title: 'e' } })).status, 200);
    });

    test('a PUT at the id of a deleted document takes the references that a creation may take', async () => {
      const offices = '/api/v1/offices';
      const office = String((await house.as('nora', 'POST', offices, { json: { title: 'x' } })).json().id);
      const path = '/api/v1/loans/lent';
      const put = (officeId: string) => house.as('sven', 'PUT', path, { json: { title: 'l', officeId } });
      const absent = await put('none');
      const given = { json: { title: 'l', officeId: office, owner: 'sven', id: 'lent' } };
      const imported = { json: { items: [given.json], import: true } };
      assert.equal((await house.as('root', 'POST', '/api/v1/loans/bulk', imported)).status, 200);
      assert.equal((await house.as('sven', 'DELETE', path)).status, 204);
      const again = await put(office);
      assert.deepEqual([again.status, again.body], [422, absent.body]);
      assert.equal(
        (await house.as('nora', 'DELETE', `${offices}/${office}`)).status,
        204,
        'nothing holds it',
      );
    });

    for (const [who, collection, status] of [
      ['bob', 'loans', 404],
      [undefined, 'loans', 401],
      ['bob', 'notices', 403],
      [undefined, 'notices', 401],
    ] as const) {
      test(`a PUT of ${who ?? 'nobody'} at another's deleted document of ${collection} is ${status}, and its owner restores it`, async () => {
        const path = `/api/v1/${collection}/for-${who}`;
        const json = { title: 'mine' };
        assert.equal((await house.as('ada', 'PUT', path, { json })).status, 201);
        const remove = () => house.as('ada', 'DELETE', path);
        assert.equal((await remove()).status, 204);
        const put = () => house.as(who, 'PUT', path, { json: { title: 'taken' } });
        assert.equal((await put()).status, status);
        assert.equal((await house.as('ada', 'POST', `${path}/restore`)).status, 200);
        const read = await house.as('ada', 'GET', path);
        assert.equal(read.json().title, 'mine');
        await remove();
        for (const maker of ['ada', 'root'])
          assert.equal((await house.as(maker, 'PUT', path, { json })).status, maker === 'ada' ? 201 : 200);
      });
    }

    test('neither a PUT nor an import gives the id of a deleted document to another tenant', async () => {
      const path = '/api/v1/leases/let';
      const put = (who: string, json: object) => house.as(who, 'PUT', path, { json });
      assert.equal((await put('nora', { title: 'l' })).status, 201);
      assert.equal((await house.as('nora', 'DELETE', path)).status, 204);
      const isRefused = (status: number, body: string) => {
        assert.equal(status, 400, body);
        assert.match(body, /field_unpatchable.*\/tenantId/);
      };
      for (const [who, json] of [
        ['root', { title: 'l', tenantId: 'south' }],
        ['root', { title: 'l' }],
        ['sven', { title: 'l' }],
        ['ada', { title: 'l' }],
      ] as const) {
        const answer = await put(who, json);
        isRefused(answer.status, answer.body);
      }
      for (const atomic of [true, false])
        for (const existing of ['refuse', 'skip', 'update']) {
          const items = [{ id: 'let', title: 'l', tenantId: 'south' }];
          const json = { items, atomic, import: { existing } };
          const answer = await house.as('root', 'POST', '/api/v1/leases/bulk', { json });
          const [result] = JSON.parse(answer.body).items ?? [];
          isRefused(result?.status ?? answer.status, answer.body);
        }
      assert.equal((await house.as('nora', 'POST', `${path}/restore`)).status, 200);
      assert.equal((await house.as('nora', 'DELETE', path)).status, 204);
      assert.equal((await put('root', { title: 'again', tenantId: 'north' })).status, 201);
      assert.equal((await house.as('nora', 'GET', path)).json().title, 'again');
    });

    test('an import moves no document to another tenant, and repeats what a creation fixes', async () => {
      const office = { id: 'fixed', title: 'x', tenantId: 'north' };
      const bring = async (item: object, atomic: boolean) => {
        const json = { items: [item], atomic, import: { existing: 'update' } };
        const { status, body } = await house.as('root', 'POST', '/api/v1/offices/bulk', { json });
        const [result] = JSON.parse(body).items ?? [];
        return { status: result?.status ?? status, body };
      };
      assert.equal((await bring(office, true)).status, 201);
      for (const atomic of [true, false])
        for (const moved of [
          { ...office, tenantId: 'south' },
          { id: 'fixed', title: 'x' },
        ]) {
          const { status, body } = await bring(moved, atomic);
          assert.equal(status, 400, body);
          assert.match(body, /field_unpatchable.*\/tenantId/);
        }
      assert.equal((await bring({ ...office, title: 'y' }, true)).status, 200);
      const read = await house.as('nora', 'GET', '/api/v1/offices/fixed');
      assert.deepEqual([read.json().title, read.json().tenantId], ['y', 'north']);
    });

    test('the dependants that stand in the way are counted as far as the caller sees them', async () => {
      const office = String(
        (await house.as('nora', 'POST', '/api/v1/offices', { json: { title: 'busy' } })).json().id,
      );
      const desk = (who: string, json: object) =>
        house.as(who, 'POST', '/api/v1/desks', { json: { title: 'd', ...json } });
      for (const who of ['nora', 'nils', 'nils'])
        assert.equal((await desk(who, { officeId: office })).status, 201);
      const remove = async (who: string) => {
        const answer = await house.as(who, 'DELETE', `/api/v1/offices/${office}`);
        assert.equal(answer.status, 409);
        const { error, deskCount } = answer.json();
        return [error, deskCount];
      };
      assert.deepEqual(await remove('nora'), ['in use by 1 resource of desks', 1]);
      assert.deepEqual(await remove('nils'), ['in use by 2 resources of desks', 2]);
      assert.deepEqual(await remove('root'), ['in use by 3 resources of desks', 3]);
      const bulk = await house.as('nora', 'POST', '/api/v1/offices/bulk-delete', { json: { ids: [office] } });
      assert.deepEqual([bulk.status, bulk.json().deskCount], [409, 1]);
      const spare = String(
        (await house.as('nora', 'POST', '/api/v1/offices', { json: { title: 'spare' } })).json().id,
      );
      const hidden = await desk('root', { officeId: office, backupId: spare });
      assert.equal(hidden.status, 201);
      const unseen = await house.as('nora', 'DELETE', `/api/v1/offices/${spare}`);
      assert.deepEqual([unseen.status, unseen.json().error, unseen.json().deskCount], [409, 'in use', 0]);
    });
  });
}
