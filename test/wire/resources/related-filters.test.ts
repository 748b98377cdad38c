/** Filters through references on the wire (§4.17), on both stores: what they find, what they must not tell, and what a change of a parent does. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Type } from 'typebox';
import { resolveConfiguration } from '../../../src/config/configuration.ts';
import { allow } from '../../../src/model/access-function.ts';
import { engineNames } from '../../harness/engine-names.ts';
import { openHouse } from './house-of-rules.ts';
import type { Shop } from './shop-of-many.ts';

const Organisation = Type.Object({ name: Type.String(), seats: Type.Optional(Type.Integer()) });
const Customer = Type.Object({
  name: Type.String(),
  score: Type.Optional(Type.Number()),
  tags: Type.Optional(Type.Array(Type.String())),
  address: Type.Optional(Type.Object({ city: Type.String() })),
  organisationId: Type.Optional(Type.String()),
});
const Ticket = Type.Object({ title: Type.String(), customerId: Type.Optional(Type.String()) });
const Comment = Type.Object({ text: Type.String(), ticketId: Type.String() });

const open = { read: 'principal', create: 'principal', update: 'principal', delete: 'principal' } as const;

const configuration = resolveConfiguration({
  collections: {
    organisations: { schema: Organisation, access: open, putCreates: true },
    customers: {
      schema: Customer,
      access: { ...open, read: 'owner' },
      references: { organisationId: { collection: 'organisations' } },
      hidden: { score: { role: 'hr' } },
      putCreates: true,
    },
    tickets: {
      schema: Ticket,
      access: open,
      references: { customerId: { collection: 'customers' } },
      putCreates: true,
    },
    comments: {
      schema: Comment,
      access: {
        ...open,
        read: allow<typeof Comment>((principal, comment) =>
          comment.text.isNot('secret').and(principal.id !== null),
        ),
      },
      references: { ticketId: { collection: 'tickets' } },
      putCreates: true,
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
      await put('root', 'organisations/north', { name: 'North', seats: 3 });
      await put('root', 'organisations/south', { name: 'South' });
      await put('ada', 'customers/ada-1', {
        name: 'Ada One',
        tags: ['vip'],
        address: { city: 'Oslo' },
        organisationId: 'north',
      });
      await put('ada', 'customers/ada-2', { name: 'Ada Two', organisationId: 'south' });
      await put('hana', 'customers/bob-1', { name: 'Bob One', score: 7, organisationId: 'north' });
      for (const [id, customerId] of [
        ['t1', 'ada-1'],
        ['t2', 'ada-2'],
        ['t3', 'bob-1'],
        ['t4', undefined],
      ] as const)
        await put('root', `tickets/${id}`, { title: `Ticket ${id}`, customerId });
      for (const [id, ticketId] of [
        ['c1', 't1'],
        ['c2', 't2'],
        ['c3', 't3'],
        ['c4', 't4'],
        ['c5', 't1'],
      ] as const)
        await put('root', `comments/${id}`, { text: id === 'c5' ? 'secret' : 'hello', ticketId });
    });

    after(() => house.stop());

    async function ids(who: string, path: string): Promise<readonly string[]> {
      const answer = await house.as(who, 'GET', `${base}/${path}`, { headers: { Prefer: 'count=exact' } });
      assert.equal(answer.status, 200, answer.body);
      const items = (answer.json().items as { id: string }[]).map(({ id }) => id);
      assert.equal(answer.headers['x-total-count'], String(items.length));
      return items;
    }

    async function queried(
      who: string,
      collection: string,
      type: string,
      body: string,
    ): Promise<readonly string[]> {
      const headers = { 'Content-Type': type, Prefer: 'count=exact' };
      const answer = await house.as(who, 'QUERY', `${base}/${collection}`, { body, headers });
      assert.equal(answer.status, 200, answer.body);
      const items = (answer.json().items as { id: string }[]).map(({ id }) => id);
      assert.equal(answer.headers['x-total-count'], String(items.length));
      return items;
    }

    test('finds by fields of the resource that a reference names, over one reference and several', async () => {
      for (const [path, found] of [
        ['tickets?customerId.name=Ada%20One', ['t1']],
        ['tickets?customerId.name[in]=Ada%20One,Ada%20Two', ['t1', 't2']],
        ['tickets?customerId.name[like]=%25Two', ['t2']],
        ['tickets?customerId.organisationId=north', ['t1', 't3']],
        ['tickets?customerId.organisationId.seats[gte]=3', ['t1', 't3']],
        ['tickets?customerId.tags=vip', ['t1']],
        ['tickets?customerId.address.city=Oslo', ['t1']],
        ['tickets?customerId.id=ada-2', ['t2']],
        ['tickets?customerId.organisationId=north&title=Ticket%20t3', ['t3']],
        ['comments?ticketId.customerId.organisationId.name=North', ['c1', 'c3', 'c5']],
        ['comments?ticketId.title[gt]=Ticket%20t2', ['c3', 'c4']],
        ['comments?ticketId.title[gt]=Ticket%20t2&sort=-id', ['c4', 'c3']],
      ] as const)
        assert.deepEqual(await ids('root', path), found, path);
    });

    test('answers a form, JSON and SQL alike', async () => {
      const form = 'application/x-www-form-urlencoded';
      assert.deepEqual(await queried('root', 'tickets', form, 'customerId.organisationId=north'), [
        't1',
        't3',
      ]);
      const json = JSON.stringify({
        filter: {
          or: [
            { 'customerId.name': { like: 'Bob%' } },
            { not: { 'customerId.organisationId': { ne: 'south' } } },
          ],
        },
      });
      assert.deepEqual(await queried('root', 'tickets', 'application/json', json), ['t2', 't3']);
      const ofOrganisations = await queried(
        'root',
        'comments',
        'application/json',
        JSON.stringify({ filter: { 'ticketId.customerId.organisationId.name': { null: false } } }),
      );
      assert.ok(ofOrganisations.length > 0);
      for (const [sql, found] of [
        [`SELECT * FROM tickets WHERE "customerId"."organisationId" = 'north'`, ['t1', 't3']],
        [`SELECT * FROM tickets WHERE customerId.organisationId = 'north'`, ['t1', 't3']],
        [`SELECT * FROM tickets WHERE tickets.customerId.name LIKE 'Ada%'`, ['t1', 't2']],
        [`SELECT * FROM tickets WHERE NOT (customerId.name LIKE 'Ada%')`, ['t3']],
        [`SELECT * FROM tickets WHERE customerId.name IS NULL`, ['t4']],
        [
          `SELECT * FROM comments c WHERE c.ticketId.title <> 'Ticket t1' AND ticketId.customerId IS NOT NULL`,
          ['c2', 'c3'],
        ],
        ...[
          'ticketId.customerId.organisationId.name',
          'c.ticketId . "customerId".organisationId.name',
          'comments.ticketid.customerid.organisationid.name',
        ].map((path) => [`SELECT * FROM comments c WHERE ${path} IS NOT NULL`, ofOrganisations] as const),
      ] as const) {
        const [, collection = ''] = /FROM (\w+)/.exec(sql) ?? [];
        assert.deepEqual(await queried('root', collection, 'application/sql', sql), found, sql);
      }
    });

    test('takes a field at the end of nothing for absent', async () => {
      assert.deepEqual(await ids('root', 'tickets?customerId.name[null]=true'), ['t4']);
      assert.deepEqual(await ids('root', 'tickets?customerId.name[null]=false'), ['t1', 't2', 't3']);
      assert.deepEqual(await ids('root', 'tickets?customerId.name[ne]=Ada%20One'), ['t2', 't3', 't4']);
      assert.deepEqual(await ids('root', 'tickets?customerId.tags[ne]=vip'), ['t2', 't3', 't4']);
    });

    test('tells nobody apart a resource that it may not read and one that is not there', async () => {
      // t3 names a customer of another, t4 names none: each comparison finds both of them or neither.
      const operators = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'like', 'in'];
      for (const operator of operators) {
        for (const value of ['Bob One', 'A', 'Z', '%', '']) {
          for (const field of [
            'customerId.name',
            'customerId.organisationId',
            'customerId.id',
            'customerId.organisationId.name',
          ]) {
            const path = `tickets?${field}[${operator}]=${encodeURIComponent(value)}`;
            const found = await ids('ada', path);
            assert.equal(found.includes('t3'), found.includes('t4'), `${path} ${found}`);
          }
        }
      }
      for (const sql of [
        `customerId.name = 'Bob One'`,
        `NOT (customerId.name = 'x')`,
        `customerId.name <> 'x'`,
        `customerId.name IS NULL`,
        `customerId.name IS NOT NULL`,
        `customerId.name NOT IN ('x')`,
        `NOT ('x' = ANY (customerId.tags))`,
      ]) {
        const found = await queried(
          'ada',
          'tickets',
          'application/sql',
          `SELECT id FROM tickets WHERE ${sql}`,
        );
        assert.equal(found.includes('t3'), found.includes('t4'), `${sql} ${found}`);
      }
      assert.deepEqual(await ids('ada', 'tickets?customerId.organisationId=north'), ['t1']);
      assert.deepEqual(await ids('hana', 'tickets?customerId.organisationId=north'), ['t3']);
      assert.deepEqual(await ids('bob', 'comments?ticketId.customerId.name[null]=false'), []);
      assert.deepEqual(await ids('ada', 'comments?ticketId.customerId.name=Ada%20One'), ['c1']);
    });

    test('keeps the results of one caller from another that asks the same text again and again', async () => {
      for (let turn = 0; turn < 3; turn += 1) {
        for (const [who, found] of [
          ['ada', ['t1', 't2']],
          ['hana', ['t3']],
          ['bob', []],
          ['root', ['t1', 't2', 't3']],
        ] as const)
          assert.deepEqual(await ids(who, 'tickets?customerId.name[null]=false&limit=9'), found);
      }
    });

    test('refuses the name of a hidden field like one that does not exist', async () => {
      for (let turn = 0; turn < 3; turn += 1) {
        const refused = async (who: string, name: string) => {
          const answer = await house.as(who, 'GET', `${base}/tickets?${name}[gt]=1`);
          assert.equal(answer.status, 400, answer.body);
          return answer.body.replaceAll(name, 'NAME');
        };
        assert.deepEqual(await ids('root', 'tickets?customerId.score[gt]=1'), ['t3']);
        assert.deepEqual(await ids('hana', 'tickets?customerId.score[gt]=1'), ['t3']);
        assert.equal(await refused('ada', 'customerId.score'), await refused('ada', 'customerId.nothing'));
        const further = await house.as('ada', 'GET', `${base}/comments?ticketId.customerId.score[gt]=1`);
        assert.equal(further.status, 400, further.body);
        assert.doesNotMatch(further.body.replace('ticketId.customerId.score', ''), /score/);
      }
    });

    test('refuses paths that lead nowhere, too far, too often, or to an order', async () => {
      const refused = async (collection: string, query: string, message: RegExp) => {
        const answer = await house.as('root', 'GET', `${base}/${collection}?${query}`);
        assert.equal(answer.status, 400, `${query} ${answer.body}`);
        assert.match(answer.body, message);
      };
      await refused('tickets', 'title.name=a', /unknown field \\"title\.name\\"; fields: .*title/);
      await refused('tickets', 'customerId.nothing=a', /fields of customers: .*organisationId/);
      await refused('tickets', 'customerId.=a', /unknown field/);
      await refused('tickets', 'customerId..name=a', /unknown field/);
      await refused(
        'tickets',
        `customerId.${'organisationId.'.repeat(5000)}name=a`.slice(0, 6000),
        /unknown field/,
      );
      await refused('tickets', 'customerId.organisationId.id.name=a', /unknown field/);
      await refused('tickets', 'customerId.address=a', /can be selected, not compared/);
      await refused('tickets', 'customerId.name[has]=a', /unknown operator/);
      await refused('tickets', 'sort=customerId.name', /unknown field/);
      await refused('tickets', 'fields=customerId.name', /unknown field/);
      const many = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'like', 'in', 'null']
        .map((operator) => `customerId.name[${operator}]=${operator === 'null' ? 'true' : 'a'}`)
        .join('&');
      await refused('tickets', many, /at most 8 references/);
      const json = JSON.stringify({ filter: { 'customerId.nothing': 1 } });
      const headers = { 'Content-Type': 'application/json' };
      const query = await house.as('root', 'QUERY', `${base}/tickets`, { body: json, headers });
      assert.equal(query.status, 422);
      assert.deepEqual(
        (query.json().errors as { pointer: string }[])[0]?.pointer,
        '/filter/customerId.nothing',
      );
    });

    test('shows a change of the other resource in the list, in its tag and in a stored query', async () => {
      const path = `${base}/tickets?customerId.name=Ada%20Two`;
      const json = JSON.stringify({ filter: { 'customerId.name': 'Ada Two' } });
      const headers = { 'Content-Type': 'application/json' };
      const stored = await house.as('ada', 'QUERY', `${base}/tickets`, { body: json, headers });
      const location = String(stored.headers.location);
      let tag = '';
      for (let turn = 0; turn < 3; turn += 1) {
        const answer = await house.as('ada', 'GET', path);
        assert.equal((answer.json().items as unknown[]).length, 1);
        tag = String(answer.headers.etag);
        const again = await house.as('ada', 'GET', path, { headers: { 'If-None-Match': tag } });
        assert.equal(again.status, 304);
        assert.equal(((await house.as('ada', 'GET', location)).json().items as unknown[]).length, 1);
      }
      const renamed = await house.as('ada', 'PATCH', `${base}/customers/ada-2`, {
        json: { name: 'Ada Deux' },
      });
      assert.equal(renamed.status, 200, renamed.body);
      const changed = await house.as('ada', 'GET', path, { headers: { 'If-None-Match': tag } });
      assert.equal(changed.status, 200);
      assert.notEqual(changed.headers.etag, tag);
      assert.deepEqual(changed.json().items, []);
      assert.deepEqual((await house.as('ada', 'GET', location)).json().items, []);
    });
  });
}
