/**
 * Aggregates on the wire (§4.18), on both stores: what they compute, what each caller sees of it, and their bounds.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Type } from 'typebox';
import { resolveConfiguration } from '../../../src/config/configuration.ts';
import { openPostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import { type EngineName, engineNames } from '../../harness/engine-names.ts';
import { databaseWith, type TestDatabase } from '../../harness/postgres-database.ts';
import { openShop, type Shop } from './shop-of-many.ts';

const configuration = resolveConfiguration({
  collections: {
    tickets: {
      schema: Type.Object({
        title: Type.String(),
        priority: Type.Optional(Type.String()),
        hours: Type.Optional(Type.Number()),
        open: Type.Optional(Type.Boolean()),
        cost: Type.Optional(Type.Number()),
      }),
      hidden: { cost: { scope: 'admin' } },
      access: { read: 'owner', create: 'principal', update: 'owner', delete: 'owner' },
    },
    wages: {
      schema: Type.Object({ name: Type.String(), pay: Type.Number() }),
      access: { read: 'public', create: 'principal', update: 'principal', delete: 'principal' },
      hooks: { afterRead: ({ document }) => ({ ...(document as object), pay: 0 }) },
    },
  },
});

const path = '/api/v1/tickets';

async function openTickets(engine: EngineName): Promise<Shop> {
  if (engine === 'SQLite') return openShop({ configuration });
  let database: TestDatabase | undefined;
  const shop = await openShop({
    configuration,
    async openStore(tables) {
      database = await databaseWith(tables);
      return openPostgresStore({ url: database.url, tables });
    },
  });
  const stop = async () => {
    await shop.stop();
    await database?.dispose();
  };
  return { ...shop, stop };
}

for (const engine of engineNames) {
  describe(engine, () => {
    let shop: Shop;

    before(async () => {
      shop = await openTickets(engine);
      const tickets = [
        ['ada', { title: 'a', priority: 'high', hours: 0.1, open: true }],
        ['ada', { title: 'b', priority: 'high', hours: 0.2, open: false }],
        ['ada', { title: 'c', priority: 'low', hours: 5, open: true }],
        ['ada', { title: 'd', open: true }],
        ['bob', { title: 'e', priority: 'secret', hours: 1000, open: true }],
      ] as const;
      for (const [who, json] of tickets) {
        const answer = await shop.as(who, 'POST', path, { json });
        assert.equal(answer.status, 201, answer.body);
      }
      const wage = await shop.as('ada', 'POST', '/api/v1/wages', { json: { name: 'Ada', pay: 918_273 } });
      assert.equal(wage.status, 201);
    });

    after(() => shop.stop());

    const json = (who: string, body: object, headers: Record<string, string> = {}, at = path) =>
      shop.as(who, 'QUERY', at, { json: body, headers });
    const sql = (who: string, body: string) =>
      shop.as(who, 'QUERY', path, { body, headers: { 'Content-Type': 'application/sql' } });

    test('gives one object of results for each group, in JSON and in SQL, byte for byte', async () => {
      const wanted =
        '{"items":[{"priority":null,"count":1,"avg_hours":null},{"priority":"low","count":1,"avg_hours":5},' +
        '{"priority":"high","count":2,"avg_hours":0.15}],"nextCursor":null}';
      const written = await json('ada', {
        groupBy: ['priority'],
        aggregate: { count: true, avg: ['hours'] },
        sort: ['count', 'priority'],
      });
      const selected = await sql(
        'ada',
        'SELECT priority, count(*), avg(hours) FROM tickets GROUP BY priority ORDER BY count(*), priority',
      );
      assert.equal(written.body, wanted);
      assert.equal(selected.body, wanted);
      assert.equal(written.status, 200);
    });

    test('computes without groups, filters by results, and orders by them', async () => {
      const total = await sql('ada', 'SELECT count(*) n, sum(hours) FROM tickets WHERE open = true');
      assert.deepEqual(total.json().items, [{ n: 3, sum_hours: 5.1 }]);
      const none = await sql('ada', "SELECT count(*) n, max(title) FROM tickets WHERE title = 'x'");
      assert.deepEqual(none.json().items, [{ n: 0, max_title: null }]);
      const having = await json('ada', {
        groupBy: ['priority'],
        aggregate: { count: true },
        having: { or: [{ count: { gte: 2 } }, { priority: { like: 'l%' } }] },
        sort: ['-priority'],
      });
      assert.deepEqual(having.json().items, [
        { priority: 'low', count: 1 },
        { priority: 'high', count: 2 },
      ]);
    });

    test('counts only what the caller may read', async () => {
      const asked = { groupBy: ['priority'], aggregate: { max: ['hours'] } };
      const adas = await json('ada', asked);
      assert.doesNotMatch(adas.body, /secret|1000/);
      const bobs = await json('bob', asked);
      assert.deepEqual(bobs.json().items, [{ priority: 'secret', max_hours: 1000 }]);
      assert.notEqual(adas.headers.etag, bobs.headers.etag);
      const everything = await json('root', { aggregate: { count: true } });
      assert.deepEqual(everything.json().items, [{ count: 5 }]);
    });

    test('knows no hidden field, in any part of the query', async () => {
      for (const body of [
        { aggregate: { max: ['cost'] } },
        { groupBy: ['cost'] },
        { groupBy: ['title'], having: { cost: 1 } },
        { aggregate: { count: ['cost'] } },
        { aggregate: { count: true }, sort: ['cost'] },
      ]) {
        const answer = await json('ada', body);
        assert.equal(answer.status, 422, answer.body);
        assert.match(answer.body, /unknown field \\"cost\\"/);
      }
      const hidden = await sql('ada', 'SELECT title FROM tickets GROUP BY title HAVING max(cost) > 1');
      assert.equal(hidden.status, 422);
      assert.equal((await json('root', { aggregate: { max: ['cost'] } })).status, 200);
    });

    test('shows no stored value that afterRead changes, except to an administrator', async () => {
      const wages = '/api/v1/wages';
      for (const body of [{ aggregate: { max: ['pay'] } }, { groupBy: ['pay'] }, { groupBy: ['name'] }]) {
        const answer = await json('ada', body, {}, wages);
        assert.equal(answer.status, 422, answer.body);
        assert.doesNotMatch(answer.body, /918273/);
      }
      const count = { aggregate: { count: true, max: ['createdAt'] } };
      assert.equal((await json('ada', count, {}, wages)).status, 200);
      const all = await json('root', { aggregate: { max: ['pay'] } }, {}, wages);
      assert.deepEqual(all.json().items, [{ max_pay: 918_273 }]);
      assert.equal((await json('ada', { aggregate: { max: ['pay'] } }, {}, wages)).status, 422);
    });

    test('pages through groups by cursor and by page, in both directions', async () => {
      const asked = { groupBy: ['title'], aggregate: { count: true }, sort: ['count'], limit: 2 };
      const first = await json('ada', asked, { Prefer: 'count=exact' });
      assert.equal(first.headers['x-total-count'], '4');
      assert.deepEqual(titles(first), ['a', 'b']);
      const next = /<([^>]+)>; rel="?next"?/.exec(String(first.headers.link))?.[1] ?? '';
      const second = await shop.as('ada', 'GET', next);
      assert.deepEqual(titles(second), ['c', 'd']);
      assert.equal(second.json().nextCursor, null);
      const back = /<([^>]+)>; rel="?prev"?/.exec(String(second.headers.link))?.[1] ?? '';
      assert.deepEqual(titles(await shop.as('ada', 'GET', back)), ['a', 'b']);
      const { nextCursor } = first.json();
      assert.deepEqual(titles(await json('ada', { ...asked, cursor: nextCursor })), ['c', 'd']);
      assert.deepEqual(titles(await json('ada', { ...asked, page: 2 })), ['c', 'd']);
      const foreign = await json('ada', { ...asked, sort: ['-count'], cursor: nextCursor });
      assert.equal(foreign.status, 400, 'a cursor of another query');
    });

    test('is stored, conditional and kept as any QUERY', async () => {
      const asked = { groupBy: ['open'], aggregate: { count: true } };
      const first = await json('ada', asked);
      const location = String(first.headers.location);
      assert.equal((await shop.as('ada', 'GET', location)).body, first.body);
      const result = String(first.headers['content-location']);
      assert.equal((await shop.as('ada', 'GET', result)).body, first.body);
      assert.equal((await shop.as('bob', 'GET', location)).body.includes('"count":3'), false);
      const etag = String(first.headers.etag);
      assert.equal((await json('ada', asked, { 'If-None-Match': etag })).status, 304);
    });
  });
}

function titles(answer: { json(): Record<string, unknown> }): string[] {
  return (answer.json().items as { title: string }[]).map(({ title }) => title);
}
