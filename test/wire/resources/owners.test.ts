/** Who owns a resource (§5.1.8), on both stores: administrators see it and find by it, and nobody else learns of it. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Type } from 'typebox';
import { resolveConfiguration } from '../../../src/config/configuration.ts';
import { engineNames } from '../../harness/engine-names.ts';
import type { Answer } from '../../harness/exchange.ts';
import { openHouse } from './house-of-rules.ts';
import type { Shop } from './shop-of-many.ts';

const open = { read: 'public', create: 'public', update: 'principal', delete: 'principal' } as const;
const Page = Type.Object({ title: Type.String(), folderId: Type.Optional(Type.String()) });

const shouted = (document: { readonly title: string }) => ({ ...document, title: `${document.title}!` });

const configuration = resolveConfiguration({
  collections: {
    folders: { schema: Type.Object({ title: Type.String() }), access: open, putCreates: true },
    pages: {
      schema: Page,
      access: open,
      putCreates: true,
      references: { folderId: { collection: 'folders' } },
      hooks: { beforeWrite: () => undefined },
    },
    // Its own field takes the name.
    cars: { schema: Type.Object({ owner: Type.String() }), access: open, putCreates: true },
    pools: {
      schema: Type.Object({ title: Type.String(), rate: Type.Optional(Type.Number()) }),
      access: open,
      putCreates: true,
      hidden: { rate: 'owner' },
      hooks: { afterRead: ({ document }) => shouted(document) },
    },
  },
});

const base = '/api/v1';

for (const engine of engineNames) {
  describe(engine, () => {
    let house: Shop;

    before(async () => {
      house = await openHouse(engine, { configuration });
      const put = async (who: string, path: string, json: object) => {
        const answer = await house.as(who, 'PUT', `${base}/${path}`, { json });
        assert.equal(answer.status, 201, answer.body);
      };
      await put('ada', 'folders/a', { title: 'A' });
      await put('bob', 'folders/b', { title: 'B' });
      for (let at = 0; at < 7; at += 1)
        await put(at % 2 === 0 ? 'ada' : 'bob', `pages/p${at}`, {
          title: `Page ${6 - at}`,
          folderId: at < 3 ? 'a' : 'b',
        });
      const imported = { items: [{ id: 'free', title: 'Free', owner: null }], import: true };
      assert.equal((await house.as('root', 'POST', `${base}/pages/bulk`, { json: imported })).status, 200);
      await put('ada', 'cars/c1', { owner: 'Mrs. Smith' });
      await put('ada', 'pools/q1', { title: 'One', rate: 3 });
      await put('bob', 'pools/q2', { title: 'Two', rate: 4 });
    });

    after(() => house.stop());

    const list = (who: string, path: string) => house.as(who, 'GET', `${base}/${path}`);

    async function items(who: string, path: string): Promise<readonly Record<string, unknown>[]> {
      const answer = await list(who, path);
      assert.equal(answer.status, 200, answer.body);
      return answer.json().items as Record<string, unknown>[];
    }

    async function queried(type: string, body: string): Promise<Answer> {
      return house.as('root', 'QUERY', `${base}/pages`, { body, headers: { 'Content-Type': type } });
    }

    const ids = (found: readonly Record<string, unknown>[]) => found.map(({ id }) => id);

    test('an administrator finds by the owner, in a list and in each QUERY, page by page', async () => {
      assert.deepEqual(ids(await items('root', 'pages?owner=ada')), ['p0', 'p2', 'p4', 'p6']);
      assert.deepEqual(ids(await items('root', 'pages?owner[ne]=ada')), ['free', 'p1', 'p3', 'p5']);
      assert.deepEqual(ids(await items('root', 'pages?owner[null]=true')), ['free']);
      assert.deepEqual(ids(await items('root', 'pages?owner[in]=bob,eve&sort=title')), ['p5', 'p3', 'p1']);
      assert.deepEqual(await items('root', 'pages?owner=eve'), []);
      const first = await list('root', 'pages?owner=ada&limit=3&sort=-id');
      assert.deepEqual(ids(first.json().items as Record<string, unknown>[]), ['p6', 'p4', 'p2']);
      const cursor = String(first.json().nextCursor);
      assert.deepEqual(ids(await items('root', `pages?owner=ada&limit=3&sort=-id&cursor=${cursor}`)), ['p0']);
      for (const [type, body] of [
        ['application/json', JSON.stringify({ filter: { owner: 'bob' }, fields: ['id', 'owner'] })],
        ['application/sql', "SELECT id, owner FROM pages WHERE owner = 'bob'"],
        ['application/x-www-form-urlencoded', 'owner=bob&fields=id,owner'],
      ] as const) {
        const answer = await queried(type, body);
        assert.equal(answer.status, 200, answer.body);
        assert.deepEqual(
          answer.json().items,
          ['p1', 'p3', 'p5'].map((id) => ({ id, owner: 'bob' })),
          type,
        );
        const stored = await house.as('root', 'GET', String(answer.headers.location));
        assert.equal(stored.body, answer.body);
        // The stored query of an administrator is to others a query for a field that does not exist.
        const other = await house.as('ada', 'GET', String(answer.headers.location));
        assert.ok(other.status >= 400 && !other.body.includes('p1'), other.body);
      }
    });

    test('an administrator sees the owner where the fields of a request name it, and the tag stays', async () => {
      const plain = await list('root', 'pages/p1');
      assert.ok(!('owner' in plain.json()));
      const whole = await list('root', 'pages/p1?fields=*,owner');
      assert.equal(whole.body, `${plain.body.slice(0, -1)},"owner":"bob"}`);
      assert.equal(whole.headers.etag, plain.headers.etag);
      assert.equal((await list('ada', 'pages/p1')).body, plain.body);
      assert.equal((await list('root', 'pages/p1?fields=owner')).body, '{"owner":"bob"}');
      assert.equal((await list('root', 'pages/free?fields=owner,id')).body, '{"id":"free","owner":null}');
      assert.deepEqual(await items('root', 'pages?fields=owner&limit=3'), [
        { owner: null },
        { owner: 'ada' },
        { owner: 'bob' },
      ]);
      // By an order that no index serves, backwards, and with what is included.
      const sorted = await items('root', 'pages?fields=title,owner&sort=-title&limit=2&folderId=a');
      assert.deepEqual(sorted, [
        { title: 'Page 6', owner: 'ada' },
        { title: 'Page 5', owner: 'bob' },
      ]);
      const expanded = await list('root', 'pages?fields=id,owner&id=p0&expand=folderId');
      assert.equal(expanded.status, 200, expanded.body);
      assert.deepEqual(expanded.json().items, [{ id: 'p0', owner: 'ada' }]);
      const included = await list('root', 'pages/p0?fields=id,owner&expand=folderId');
      assert.deepEqual(Object.keys(included.json()), ['id', 'owner', 'included']);
      const selected = await queried('application/sql', 'SELECT *, owner FROM pages LIMIT 1');
      assert.deepEqual(Object.keys((selected.json().items as object[])[0] ?? {}).at(-1), 'owner');
    });

    test('an administrator counts by owner, and finds by the owner of what a reference names', async () => {
      const grouped = await queried(
        'application/json',
        JSON.stringify({ groupBy: ['owner'], aggregate: { count: true }, having: { count: { gt: 1 } } }),
      );
      assert.deepEqual(grouped.json().items, [
        { owner: 'ada', count: 4 },
        { owner: 'bob', count: 3 },
      ]);
      const sql = 'SELECT owner, count(*) FROM pages GROUP BY owner ORDER BY owner DESC LIMIT 1';
      assert.deepEqual((await queried('application/sql', sql)).json().items, [{ owner: 'bob', count: 3 }]);
      assert.deepEqual(ids(await items('root', 'pages?folderId.owner=ada')), ['p0', 'p1', 'p2']);
    });

    test('to everyone else it is a field that does not exist, in every part of a request', async () => {
      for (const who of ['ada', 'webb']) {
        for (const name of ['owner', 'folderId.owner']) {
          const nonsense = name.replace('owner', 'ownex');
          for (const query of ['X=ada', 'X[null]=true', 'sort=X', 'fields=X', 'fields=*,X']) {
            const asked = await list(who, `pages?${query.replace('X', name)}`);
            const other = await list(who, `pages?${query.replace('X', nonsense)}`);
            assert.equal(asked.status, 400, `${who} ${query}`);
            assert.equal(asked.body.replaceAll(name, nonsense), other.body);
          }
        }
        for (const [type, body] of [
          ['application/json', '{"filter":{"owner":"ada"}}'],
          ['application/json', '{"groupBy":["owner"],"aggregate":{"count":true}}'],
          ['application/json', '{"aggregate":{"min":["owner"]}}'],
          ['application/sql', "SELECT id FROM pages WHERE owner = 'ada'"],
          ['application/sql', 'SELECT owner, count(*) FROM pages GROUP BY owner'],
        ] as const) {
          const headers = { 'Content-Type': type };
          const ask = (of: string) => house.as(who, 'QUERY', `${base}/pages`, { body: of, headers });
          // The text of an administrator, compiled, is not that of others.
          assert.equal((await queried(type, body)).status, 200);
          const asked = await ask(body);
          assert.equal(asked.status, 422, asked.body);
          assert.equal(
            asked.body.replaceAll('owner', 'ownex'),
            (await ask(body.replaceAll('owner', 'ownex'))).body,
          );
        }
        assert.equal((await list(who, 'pages/p1?fields=owner')).status, 400);
        assert.equal((await list(who, 'pages/p1?fields=*')).body, (await list(who, 'pages/p1')).body);
      }
    });

    test('no order goes by owner, for an administrator either', async () => {
      const answer = await list('root', 'pages?sort=owner');
      assert.equal(answer.status, 400);
      assert.match(answer.body, /cannot sort by \\"owner\\"; sortable fields: id, /);
    });

    test('a collection with a field of that name keeps it; the owner is then named with a dollar sign', async () => {
      assert.deepEqual(await items('ada', 'cars?owner=Mrs.%20Smith&fields=owner'), [{ owner: 'Mrs. Smith' }]);
      assert.deepEqual(await items('root', 'cars?$owner=ada&fields=owner,$owner'), [
        { owner: 'Mrs. Smith', $owner: 'ada' },
      ]);
      assert.equal((await list('ada', 'cars?$owner=ada')).status, 400);
    });

    test('goes with hidden fields and with afterRead', async () => {
      const [one, two] = await items('root', 'pools?fields=*,owner');
      assert.deepEqual([one?.title, one?.rate, one?.owner], ['One!', 3, 'ada']);
      assert.deepEqual([two?.title, two?.rate, two?.owner], ['Two!', 4, 'bob']);
      assert.deepEqual(await items('root', 'pools?owner=bob&fields=title,owner'), [
        { title: 'Two!', owner: 'bob' },
      ]);
      assert.equal((await list('ada', 'pools?owner=ada')).status, 400);
    });

    test('an export has each owner once, whatever its fields are', async () => {
      const all = await items('root', 'pages/bulk?owner=bob');
      assert.deepEqual(
        all.map(({ id, owner }) => [id, owner]),
        ['p1', 'p3', 'p5'].map((id) => [id, 'bob']),
      );
      const answer = await list('root', 'pages/bulk?fields=*,owner&limit=1');
      assert.equal(answer.body.match(/"owner"/g)?.length, 1);
    });
  });
}
