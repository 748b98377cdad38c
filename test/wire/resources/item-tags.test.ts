/**
 * Entity tags of items (§4.2.6): `fields=...,etag` in lists, in each QUERY, in what they include and in events has the text of the ETag
 * field that a GET of the resource by the same caller would have, on both stores.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Type } from 'typebox';
import { resolveConfiguration } from '../../../src/config/configuration.ts';
import { engineNames } from '../../harness/engine-names.ts';
import type { Answer } from '../../harness/exchange.ts';
import { readEvents } from './event-reader.ts';
import { openHouse } from './house-of-rules.ts';
import type { Shop } from './shop-of-many.ts';

const open = { read: 'public', create: 'principal', update: 'principal', delete: 'principal' } as const;
const Page = Type.Object({
  title: Type.String(),
  rate: Type.Optional(Type.Number()),
  folderId: Type.Optional(Type.String()),
});

const shouted = (document: { readonly title: string }) => ({ ...document, title: `${document.title}!` });

const configuration = resolveConfiguration({
  collections: {
    folders: { schema: Type.Object({ title: Type.String() }), access: open, putCreates: true },
    pages: {
      schema: Page,
      access: open,
      putCreates: true,
      references: { folderId: { collection: 'folders' } },
      search: ['title'],
      indexes: [['rate']],
    },
    // A representation that depends on the caller, by document.
    pools: { schema: Page, access: open, putCreates: true, hidden: { rate: 'owner' } },
    // The same by a function.
    shouts: {
      schema: Page,
      access: open,
      putCreates: true,
      hooks: {
        afterRead: ({ document, principal }) => (principal.id === 'ada' ? document : shouted(document)),
      },
    },
    // Its own field takes the name.
    cars: { schema: Type.Object({ etag: Type.String() }), access: open, putCreates: true },
    loans: {
      schema: Type.Object({ title: Type.String(), carId: Type.String() }),
      access: { ...open, read: 'owner' },
      putCreates: true,
      softDelete: true,
      references: { carId: { collection: 'cars' } },
    },
  },
});

const base = '/api/v1';
type Item = Readonly<Record<string, unknown>> & { readonly id: string };

for (const engine of engineNames) {
  describe(engine, () => {
    let house: Shop;

    before(async () => {
      house = await openHouse(engine, { configuration });
      const docs: readonly (readonly [who: string, path: string, json: object])[] = [
        ['ada', 'folders/a', { title: 'A' }],
        ['bob', 'folders/b', { title: 'B' }],
        ...Array.from({ length: 7 }, (_, at) => {
          const json = {
            title: `Page lamp ${'lamp '.repeat(at)}`,
            rate: at % 3,
            folderId: at < 3 ? 'a' : 'b',
          };
          return [at % 2 === 0 ? 'ada' : 'bob', `pages/p${at}`, json] as const;
        }),
        ['ada', 'pools/q1', { title: 'One', rate: 3 }],
        ['bob', 'pools/q2', { title: 'Two', rate: 4 }],
        ['bob', 'pools/q3', { title: 'Three' }],
        ['ada', 'shouts/s1', { title: 'One' }],
        ['ada', 'cars/c1', { etag: 'red' }],
        ['ada', 'loans/l1', { title: 'One', carId: 'c1' }],
      ];
      for (const [who, path, json] of docs) await put(who, path, json);
      await put('ada', 'pages/p3', { title: 'Page lamp', rate: 9, folderId: 'b' });
    });

    after(() => house.stop());

    async function put(who: string, path: string, json: object): Promise<Answer> {
      const answer = await house.as(who, 'PUT', `${base}/${path}`, { json });
      assert.ok(answer.status < 300, answer.body);
      return answer;
    }

    const get = (who: string | undefined, path: string) => house.as(who, 'GET', `${base}/${path}`);

    async function tagOf(who: string | undefined, path: string): Promise<string> {
      const answer = await get(who, path);
      assert.equal(answer.status, 200, answer.body);
      return String(answer.headers.etag);
    }

    async function items(who: string | undefined, path: string): Promise<readonly Item[]> {
      const answer = await get(who, path);
      assert.equal(answer.status, 200, answer.body);
      return answer.json().items as Item[];
    }

    const query = (who: string | undefined, path: string, type: string, body: string) =>
      house.as(who, 'QUERY', `${base}/${path}`, { body, headers: { 'Content-Type': type } });

    async function areTagged(who: string | undefined, path: string, found: readonly Item[]): Promise<void> {
      assert.ok(found.length > 0);
      for (const { id, etag } of found) assert.equal(etag, await tagOf(who, `${path}/${id}`), `${who} ${id}`);
    }

    for (const who of ['ada', 'bob', 'root', undefined]) {
      test(`an item has the tag that a GET of it by ${who ?? 'nobody'} has`, async () => {
        for (const path of ['pages', 'pools', 'shouts'])
          for (const fields of ['*,etag', 'id,etag', 'etag,title,id'])
            await areTagged(who, path, await items(who, `${path}?fields=${fields}`));
      });
    }

    test('whichever way the page is read', async () => {
      const fields = 'fields=id,etag&limit=2';
      for (const way of [
        ...['', 'sort=title', 'sort=-rate', 'sort=-updatedAt', 'rate=1', 'rate[gte]=1&sort=-id', 'page=2'],
        ...['folderId=b', 'folderId.title=B', 'folderId.title=B&sort=-title', 'title[like]=%25lamp%25'],
        ...['q=lamp', 'q=lamp&sort=-rank', 'q=lamp&sort=rank&page=2', 'q=lamp&sort=title'],
      ]) {
        const first = await get('bob', `pages?${fields}&${way}`);
        assert.equal(first.status, 200, `${way} ${first.body}`);
        await areTagged('bob', 'pages', first.json().items as Item[]);
        const { nextCursor } = first.json();
        if (nextCursor === null || way.includes('page')) continue;
        const next = await get('bob', `pages?${fields}&${way}&cursor=${String(nextCursor)}`);
        await areTagged('bob', 'pages', next.json().items as Item[]);
        const previous = /<([^>]*)>; rel="prev"/.exec(String(next.headers.link))?.[1];
        const back = await house.as('bob', 'GET', String(previous));
        assert.deepEqual(back.json().items, first.json().items, way);
      }
      const owned = await items('root', 'pages?fields=owner,id,etag&sort=title');
      assert.deepEqual(Object.keys(owned[0] ?? {}), ['id', 'owner', 'etag']);
      await areTagged('root', 'pages', owned);
      const ranked = await items('root', 'pages?fields=owner&q=lamp&sort=-rank&limit=2');
      assert.ok(ranked.every(({ owner }) => owner === 'ada' || owner === 'bob'));
    });

    test('a QUERY in each language, and the query that it stores', async () => {
      for (const path of ['pages', 'pools'])
        for (const [type, body] of [
          ['application/json', JSON.stringify({ fields: ['id', 'etag'], sort: ['-title'] })],
          ['application/json', JSON.stringify({ fields: ['*', 'etag'] })],
          ['application/sql', `SELECT id, etag FROM ${path} WHERE title LIKE '%e%'`],
          ['application/sql', `SELECT *, p.ETAG FROM ${path} p ORDER BY title`],
          ['application/x-www-form-urlencoded', 'fields=id,etag&limit=2'],
        ] as const) {
          const answer = await query('ada', path, type, body);
          assert.equal(answer.status, 200, answer.body);
          await areTagged('ada', path, answer.json().items as Item[]);
          const stored = await house.as('ada', 'GET', String(answer.headers.location));
          assert.equal(stored.body, answer.body);
          const other = await house.as('bob', 'GET', String(answer.headers.location));
          await areTagged('bob', path, other.json().items as Item[]);
        }
    });

    test('If-Match takes it, and not after a change', async () => {
      for (const path of ['pages/p1', 'pools/q2', 'shouts/s1']) {
        const [collection = '', id = ''] = path.split('/');
        for (const who of ['ada', 'bob']) {
          const read = async () => {
            const found = await items(who, `${collection}?id=${id}&fields=etag`);
            return String((found[0] as unknown as { readonly etag: unknown }).etag);
          };
          const etag = await read();
          const change = (title: string) =>
            house.as(who, 'PATCH', `${base}/${path}`, {
              json: { title },
              headers: { 'Content-Type': 'application/merge-patch+json', 'If-Match': etag },
            });
          assert.equal((await change(`By ${who}`)).status, 200);
          assert.equal((await change('Again')).status, 412);
          assert.notEqual(await read(), etag);
        }
      }
    });

    test('the tag of the list stays its own, and changes with each item', async () => {
      const path = 'pages?fields=id,etag&limit=3';
      const before = await get('ada', path);
      const again = await house.as('ada', 'GET', `${base}/${path}`, {
        headers: { 'If-None-Match': String(before.headers.etag) },
      });
      assert.equal(again.status, 304);
      await put('bob', 'pages/p1', { title: 'Changed', folderId: 'a' });
      const after = await house.as('ada', 'GET', `${base}/${path}`, {
        headers: { 'If-None-Match': String(before.headers.etag) },
      });
      assert.equal(after.status, 200);
      await areTagged('ada', 'pages', after.json().items as Item[]);
      // A cursor belongs to one selection.
      const cursor = String(after.json().nextCursor);
      assert.equal((await get('ada', `pages?fields=id&limit=3&cursor=${cursor}`)).status, 400);
    });

    test('a single resource takes the name as well, and keeps its tag', async () => {
      for (const [path, who] of [
        ['pages/p0', 'bob'],
        ['pools/q1', 'ada'],
        ['pools/q1', 'bob'],
      ] as const) {
        const answer = await get(who, `${path}?fields=id,etag`);
        const etag = await tagOf(who, path);
        assert.deepEqual(answer.json(), { id: path.slice(-2), etag });
        assert.equal(answer.headers.etag, etag);
      }
    });

    test('what is included has its tags if the items have', async () => {
      for (const path of [
        'pages?fields=id,etag,folderId&expand=folderId',
        'pages/p0?fields=etag&expand=folderId',
      ]) {
        const answer = await get('bob', path);
        const { included } = answer.json() as {
          readonly included: { readonly folders: Record<string, Item> };
        };
        await areTagged('bob', 'folders', Object.values(included.folders));
      }
      const without = await get('bob', 'pages?expand=folderId');
      assert.ok(!without.body.includes('"etag"'));
      const loan = await get('ada', 'loans?fields=id,etag&expand=carId');
      const { included } = loan.json() as { readonly included: { readonly cars: Record<string, Item> } };
      assert.equal(included.cars.c1?.etag, 'red');
      assert.equal(included.cars.c1?.$etag, await tagOf('ada', 'cars/c1'));
    });

    test('a collection with a field of that name keeps it; the tag is then named with a dollar sign', async () => {
      assert.deepEqual(await items('bob', 'cars?etag=red&fields=etag'), [{ etag: 'red' }]);
      const etag = await tagOf('bob', 'cars/c1');
      assert.deepEqual(await items('bob', 'cars?fields=etag,$etag'), [{ etag: 'red', $etag: etag }]);
      const sql = await query('bob', 'cars', 'application/sql', 'SELECT etag, "$etag" FROM cars');
      assert.deepEqual(sql.json().items, [{ etag: 'red', $etag: etag }]);
      assert.equal((await get('bob', 'pages?fields=$etag')).status, 400);
    });

    test('it is no field beside: filters, orders and groups do not know it', async () => {
      for (const way of ['etag=1', 'etag[ne]=1', 'sort=etag', 'fields=folderId.etag', 'fields=ETag'])
        assert.equal((await get('bob', `pages?${way}`)).status, 400, way);
      for (const [type, body] of [
        ['application/json', '{"filter":{"etag":"1"}}'],
        ['application/json', '{"groupBy":["etag"],"aggregate":{"count":true}}'],
        ['application/sql', "SELECT id FROM pages WHERE etag = '1'"],
        ['application/sql', 'SELECT id FROM pages ORDER BY etag'],
        ['application/sql', 'SELECT etag, count(*) FROM pages GROUP BY etag'],
      ] as const)
        assert.equal((await query('bob', 'pages', type, body)).status, 422, body);
    });

    describe('events', () => {
      type Event = { readonly type: string; readonly data: { readonly object: Item } };
      const path = 'events?fields=type,data,etag';
      const changes: { readonly type: string; readonly id: string; etag: unknown }[] = [];
      let place = '';

      before(async () => {
        place = String((await get('root', 'pages?limit=1')).headers['comity-position']);
        const changed = async (who: string, of: string, json: object) => {
          const { status } = await put(who, of, json);
          const [collection = '', id = ''] = of.split('/');
          const type = `${collection}.${status === 201 ? 'created' : 'updated'}`;
          changes.push({ type, id, etag: await tagOf(who, of) });
        };
        await changed('ada', 'pages/e1', { title: 'New' });
        await changed('ada', 'pages/e1', { title: 'Newer' });
        await changed('ada', 'pools/e2', { title: 'New', rate: 1 });
        await changed('ada', 'shouts/e3', { title: 'New' });
        await changed('ada', 'loans/e4', { title: 'New', carId: 'c1' });
        await changed('ada', 'cars/e5', { etag: 'blue' });
        for (const gone of ['pages/e1', 'loans/e4'])
          assert.ok((await house.as('ada', 'DELETE', `${base}/${gone}`)).status < 300);
      });

      const contents = (events: readonly Event[]) =>
        events.map(({ type, data }) => ({ type, id: data.object.id, etag: tagIn(type, data.object) }));
      const tagIn = (type: string, object: Item) => (type.startsWith('cars.') ? object.$etag : object.etag);

      const wanted = () => [
        ...changes.map(({ type, id, etag }) => ({ type, id, etag })),
        { type: 'pages.deleted', id: 'e1', etag: undefined },
        { type: 'loans.deleted', id: 'e4', etag: undefined },
      ];

      test('the content of an event has the tag of its commit, in the list, the feed and the stream', async () => {
        const feed = await items('ada', `${path}&after=${place}`);
        assert.deepEqual(contents(feed as never), wanted());
        const log = await items('ada', `${path}&limit=8&sort=-id`);
        const byType = (one: { readonly type: string }, other: { readonly type: string }) =>
          one.type < other.type ? -1 : 1;
        assert.deepEqual(contents(log as never).sort(byType), wanted().sort(byType));
        const stream = await readEvents(house.port, {
          path: `${base}/${path.replace('type,', '')}&after=${place}`,
          bearer: 'ada',
        });
        await stream.until(({ events }) => events.length >= wanted().length);
        stream.close();
        const told = stream.events.map(({ event, data }) => ({ ...JSON.parse(data), type: event }));
        assert.ok(stream.events.every(({ data }) => Object.keys(JSON.parse(data)).join() === 'data'));
        assert.deepEqual(contents(told), wanted());
      });

      test('as the reader sees the resource, alone or beside a selection', async () => {
        for (const who of ['bob', 'root'])
          for (const way of [`after=${place}`, 'limit=8&sort=-id']) {
            const found = (await items(who, `${path}&${way}`)) as unknown as readonly Event[];
            for (const named of ['pools/e2', 'shouts/e3', 'cars/e5']) {
              const event = found.find(({ data }) => data.object.id === named.slice(-2));
              assert.ok(event !== undefined);
              assert.equal(tagIn(event.type, event.data.object), await tagOf(who, named), `${who} ${named}`);
            }
          }
        const alone = await items('ada', `events?fields=etag&after=${place}&type=pages.created`);
        assert.deepEqual(alone, [{ data: { object: { etag: changes[0]?.etag } } }]);
        const within = await items(
          'ada',
          `events?fields=data.object.id,etag&type=pages.created&after=${place}`,
        );
        assert.deepEqual(within, [{ data: { object: { id: 'e1', etag: changes[0]?.etag } } }]);
        const plain = await get('ada', `events?fields=type,data&after=${place}&type=pages.created`);
        assert.ok(!plain.body.includes('etag'));
      });
    });
  });
}
