/** `expand` and `counts` on the wire (§4.16), on both stores. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Type } from 'typebox';
import { resolveConfiguration } from '../../../src/config/configuration.ts';
import { engineNames } from '../../harness/engine-names.ts';
import type { Answer, RequestOptions } from '../../harness/exchange.ts';
import { openHouse } from './house-of-rules.ts';
import type { Shop } from './shop-of-many.ts';

const id = Type.Optional(Type.String());
const own = { read: { anyOf: ['owner', { role: 'editor' }] }, create: 'principal' } as const;

const configuration = resolveConfiguration({
  collections: {
    organisations: {
      schema: Type.Object({ name: Type.String(), secret: id }),
      access: { read: 'public' },
      hidden: { secret: { role: 'hr' } },
    },
    customers: {
      schema: Type.Object({ name: Type.String(), organisationId: id, bossId: id }),
      access: { ...own, update: 'principal', delete: 'principal' },
      references: { organisationId: { collection: 'organisations' }, bossId: { collection: 'customers' } },
      hidden: { bossId: { role: 'hr' } },
      softDelete: true,
    },
    tickets: {
      schema: Type.Object({ subject: Type.String(), customerId: id, parentId: id, shadowId: id }),
      access: { read: 'principal', update: 'principal', delete: 'principal' },
      references: {
        customerId: { collection: 'customers', countAs: 'ticketCount' },
        parentId: { collection: 'tickets', countAs: 'childCount' },
        shadowId: { collection: 'customers' },
      },
      hidden: { shadowId: { role: 'hr' } },
      hooks: { afterRead: ({ document }) => ({ ...(document as object), shown: true }) },
    },
    comments: {
      schema: Type.Object({ text: Type.String(), ticketId: id, hiddenTicketId: id }),
      access: own,
      references: {
        ticketId: { collection: 'tickets' },
        hiddenTicketId: { collection: 'tickets', countAs: 'hiddenCount' },
      },
      hidden: { hiddenTicketId: { role: 'hr' } },
    },
  },
});

const settings = { expandPathsMax: 4, expandDocumentsMax: 5, expandBytesMax: 2048, expandDepthMax: 3 };

type Included = Record<string, Record<string, Record<string, unknown>>>;

for (const engine of engineNames) {
  describe(engine, () => {
    let house: Shop;
    let organisation: string;
    let adas: string;
    let bobs: string;
    let ticket: string;
    let others: string;

    before(async () => {
      house = await openHouse(engine, { configuration, settings });
      organisation = await make('hana', 'organisations', { name: 'Acme', secret: 'whispered' });
      adas = await make('ada', 'customers', { name: 'Ada', organisationId: organisation });
      bobs = await make('bob', 'customers', { name: 'Bob', organisationId: organisation });
      ticket = await make('ada', 'tickets', { subject: 'one', customerId: adas });
      others = await make('bob', 'tickets', { subject: 'two', customerId: bobs });
    });

    after(() => house.stop());

    async function make(who: string, collection: string, json: object): Promise<string> {
      const answer = await house.as(who, 'POST', `/api/v1/${collection}`, { json });
      assert.equal(answer.status, 201, answer.body);
      return String(answer.json().id);
    }

    const get = (who: string, target: string, options: RequestOptions = {}) =>
      house.as(who, 'GET', `/api/v1/${target}`, options);
    const query = (who: string, type: string, body: string, options: RequestOptions = {}) =>
      house.as(who, 'QUERY', '/api/v1/tickets', {
        body,
        ...options,
        headers: { 'Content-Type': type, ...options.headers },
      });

    function includedIn(answer: Answer): Included {
      assert.equal(answer.status, 200, answer.body);
      return answer.json().included as Included;
    }

    /** Ids by collection. */
    const idsIn = (answer: Answer) =>
      Object.fromEntries(
        Object.entries(includedIn(answer)).map(([name, found]) => [name, Object.keys(found)]),
      );

    test('a read includes the documents that its paths lead to, as a read of each returns them', async () => {
      const answer = await get('ada', `tickets/${ticket}?expand=customerId.organisationId`);
      assert.deepEqual(includedIn(answer), {
        customers: { [adas]: (await get('ada', `customers/${adas}`)).json() },
        organisations: { [organisation]: (await get('ada', `organisations/${organisation}`)).json() },
      });
      const { included, ...rest } = answer.json();
      assert.deepEqual(rest, (await get('ada', `tickets/${ticket}`)).json());
      assert.ok(!answer.body.includes('whispered'));
      const ofHana = await get('hana', `tickets/${ticket}?expand=customerId.organisationId`);
      assert.deepEqual(idsIn(ofHana), {});
      assert.deepEqual(included !== undefined, true);
    });

    test('a list, each QUERY and a stored query include each document once', async () => {
      const target = 'tickets?sort=subject&expand=customerId,customerId.organisationId';
      const list = await get('ed', target);
      assert.deepEqual(idsIn(list), { customers: [adas, bobs], organisations: [organisation] });
      const form = await query(
        'ed',
        'application/x-www-form-urlencoded',
        'sort=subject&expand=customerId.organisationId',
      );
      const json = await query(
        'ed',
        'application/json',
        '{"sort":"subject","expand":["customerId.organisationId"]}',
      );
      for (const answer of [form, json]) {
        assert.deepEqual(answer.json(), list.json());
        for (const name of ['location', 'content-location']) {
          const again = await house.as('ed', 'GET', String(answer.headers[name]));
          assert.deepEqual(again.json(), list.json(), name);
        }
      }
    });

    test('links to other pages include what the first page does', async () => {
      const first = await get('ed', 'tickets?sort=subject&limit=1&expand=customerId');
      assert.deepEqual(idsIn(first), { customers: [adas] });
      const [, next = ''] = /<([^>]*)>; rel="?next/.exec(String(first.headers.link)) ?? [];
      const second = await house.as('ed', 'GET', next);
      assert.deepEqual(idsIn(second), { customers: [bobs] });
      const cursor = String(first.json().nextCursor);
      assert.equal((await get('ed', `tickets?sort=subject&limit=1&cursor=${cursor}`)).status, 400);
    });

    test('a document that is missing and one that the caller may not read are both left out', async () => {
      const gone = await make('bob', 'customers', { name: 'Gone' });
      const dangling = await make('bob', 'tickets', { subject: 'x', customerId: gone });
      await house.as('bob', 'PATCH', `/api/v1/tickets/${dangling}`, { json: { customerId: null } });
      assert.deepEqual(idsIn(await get('ada', `tickets/${others}?expand=customerId.organisationId`)), {});
      assert.deepEqual(idsIn(await get('bob', `tickets/${dangling}?expand=customerId`)), {});
      assert.equal((await house.as('bob', 'DELETE', `/api/v1/tickets/${dangling}`)).status, 204);
    });

    test('an unknown path is 400 in a query string and 422 in a QUERY, like one whose field is hidden', async () => {
      for (const path of [
        'nothing',
        'subject',
        'customerId.name',
        'customerId..x',
        'shadowId',
        'customerId.bossId',
      ]) {
        for (const target of [`tickets?expand=${path}`, `tickets/${ticket}?expand=${path}`]) {
          const answer = await get('ada', target);
          assert.equal(answer.status, 400, target);
          assert.match(String(answer.json().error), /expand takes references joined by dots/);
        }
        const json = await query('ada', 'application/json', JSON.stringify({ expand: [path] }));
        assert.equal(json.status, 422);
        assert.equal((await query('ada', 'application/x-www-form-urlencoded', `expand=${path}`)).status, 422);
      }
      const twice = await get('hana', `tickets/${ticket}?expand=shadowId&expand=customerId.bossId`);
      const once = await get('hana', `tickets/${ticket}?expand=shadowId,customerId.bossId`);
      assert.deepEqual(twice.json(), once.json());
      assert.equal((await get('ada', `tickets/${ticket}?counts=nothing`)).status, 400);
      assert.equal((await get('ada', 'events?expand=customerId')).status, 400);
    });

    test('the tag and Last-Modified change with what is included, and those of the document do not', async () => {
      const customer = await make('ada', 'customers', { name: 'Tagged' });
      const own = await make('ada', 'tickets', { subject: 'tagged', customerId: customer });
      const target = `tickets/${own}?expand=customerId`;
      const before = await get('ada', target);
      const plain = await get('ada', `tickets/${own}`);
      assert.notEqual(before.headers.etag, plain.headers.etag);
      const held = { headers: { 'If-None-Match': String(before.headers.etag) } };
      assert.equal((await get('ada', target, held)).status, 304);
      assert.equal((await get('ada', target, held)).status, 304);
      house.moveClock(5);
      const list = 'tickets?expand=customerId';
      const listed = await get('ada', list);
      await get('ada', list);
      const path = `/api/v1/customers/${customer}`;
      assert.equal((await house.as('ada', 'PATCH', path, { json: { name: 'Other' } })).status, 200);
      const changed = await get('ada', target, held);
      assert.equal(changed.status, 200);
      assert.equal(includedIn(changed).customers?.[customer]?.name, 'Other');
      assert.ok(
        Date.parse(String(changed.headers['last-modified'])) >
          Date.parse(String(before.headers['last-modified'])),
      );
      assert.equal((await get('ada', `tickets/${own}`)).headers.etag, plain.headers.etag);
      const again = await get('ada', list, { headers: { 'If-None-Match': String(listed.headers.etag) } });
      assert.equal(includedIn(again).customers?.[customer]?.name, 'Other');
      const current = { headers: { 'If-None-Match': String(again.headers.etag) } };
      assert.equal((await get('ada', list, current)).status, 304);
      const match = { headers: { 'If-Match': String(plain.headers.etag) } };
      const write = { json: { subject: 'written' }, ...match };
      assert.equal((await house.as('ada', 'PATCH', `/api/v1/tickets/${own}`, write)).status, 200);
    });

    test('a date does not vouch for what is left out', async () => {
      const answer = await get('ada', `tickets/${others}?expand=customerId`);
      assert.deepEqual(idsIn(answer), {});
      assert.equal(answer.headers['last-modified'], undefined);
      assert.ok(answer.headers.etag !== undefined);
    });

    test('fields selects members of the document, and HEAD and content codings stay what they are', async () => {
      const target = `tickets/${ticket}?expand=customerId&fields=subject`;
      const answer = await get('ada', target);
      assert.deepEqual(Object.keys(answer.json()), ['subject', 'included']);
      assert.deepEqual(idsIn(answer), { customers: [adas] });
      const head = await house.as('ada', 'HEAD', `/api/v1/${target}`);
      assert.deepEqual([head.status, head.body, head.headers.etag], [200, '', answer.headers.etag]);
      const list = await get('ada', 'tickets?subject=one&expand=customerId&fields=subject');
      assert.deepEqual(idsIn(list), { customers: [adas] });
    });

    test('a cycle of references is followed as far as the path goes', async () => {
      const child = await make('ada', 'tickets', { subject: 'child', parentId: ticket });
      await house.as('ada', 'PATCH', `/api/v1/tickets/${ticket}`, { json: { parentId: child } });
      const answer = await get('ada', `tickets/${child}?expand=parentId.parentId.customerId`);
      assert.deepEqual(idsIn(answer), { tickets: [ticket, child] });
      const deeper = await get('ada', `tickets/${child}?expand=parentId.customerId,parentId.parentId`);
      assert.deepEqual(idsIn(deeper), { tickets: [ticket, child], customers: [adas] });
      await house.as('ada', 'PATCH', `/api/v1/tickets/${ticket}`, { json: { parentId: null } });
      assert.equal((await house.as('ada', 'DELETE', `/api/v1/tickets/${child}`)).status, 204);
    });

    test('counts tells how many documents refer to each one, of those that the caller may read', async () => {
      const own = await make('ada', 'tickets', { subject: 'counted' });
      const none = await make('ada', 'tickets', { subject: 'counted', parentId: own });
      for (const [who, field] of [
        ['ada', 'ticketId'],
        ['ada', 'ticketId'],
        ['bob', 'ticketId'],
        ['hana', 'hiddenTicketId'],
      ] as const)
        await make(who, 'comments', { text: 'x', [field]: own });
      const names = 'counts=commentCount,hiddenCount,childCount';
      const counts = async (who: string, target: string) => (await get(who, target)).json().counts;
      const [mine, zero] = [
        { childCount: 1, commentCount: 2, hiddenCount: 0 },
        { childCount: 0, commentCount: 0, hiddenCount: 0 },
      ];
      assert.deepEqual(await counts('ada', `tickets/${own}?${names}`), { [own]: mine });
      const list = `tickets?subject=counted&${names}`;
      assert.deepEqual(await counts('ada', list), { [own]: mine, [none]: zero });
      assert.deepEqual(await counts('ed', list), { [own]: { ...mine, commentCount: 3 }, [none]: zero });
      assert.deepEqual(await counts('hana', list), {
        [own]: { childCount: 1, commentCount: 0, hiddenCount: 1 },
        [none]: zero,
      });
      const before = await get('ada', list);
      await make('ada', 'comments', { text: 'x', ticketId: none });
      const after = await get('ada', list, { headers: { 'If-None-Match': String(before.headers.etag) } });
      assert.deepEqual((after.json().counts as Record<string, object>)[none], { ...zero, commentCount: 1 });
      const json = await query(
        'ada',
        'application/json',
        '{"counts":"childCount","filter":{"subject":"counted"}}',
      );
      assert.deepEqual(json.json().counts, { [own]: { childCount: 1 }, [none]: { childCount: 0 } });
      assert.equal(json.json().included, undefined);
      const grouped = await query(
        'ada',
        'application/json',
        '{"aggregate":{"count":true},"counts":"childCount"}',
      );
      assert.equal(grouped.status, 422);
    });

    test('more paths, longer ones, more documents and more octets than their bounds are refused', async () => {
      const names = (many: number) => Array.from({ length: many }, () => 'customerId').join();
      assert.equal((await get('ada', `tickets/${ticket}?expand=${names(4)}`)).status, 200);
      const paths = await get('ada', `tickets/${ticket}?expand=${names(5)}`);
      assert.equal(paths.status, 400);
      assert.match(String(paths.json().error), /at most 4 names/);
      const depth = await get('ada', `tickets/${ticket}?expand=parentId.parentId.parentId.parentId`);
      assert.match(String(depth.json().error), /more than 3 references/);
      for (let made = 0; made < 5; made += 1) {
        const customer = await make('ada', 'customers', { name: 'n' });
        await make('ada', 'tickets', { subject: 'many', customerId: customer });
      }
      assert.equal(
        Object.keys(includedIn(await get('ada', 'tickets?subject=many&expand=customerId')).customers ?? {})
          .length,
        5,
      );
      const customer = await make('ada', 'customers', { name: 'n' });
      await make('ada', 'tickets', { subject: 'many', customerId: customer });
      const many = await get('ada', 'tickets?subject=many&expand=customerId');
      assert.equal(many.status, 400);
      assert.match(String(many.json().error), /more than 5 documents/);
      const json = '{"filter":{"subject":"many"},"expand":["customerId"]}';
      assert.equal((await query('ada', 'application/json', json)).status, 422);
      const long = await make('ada', 'customers', { name: 'n'.repeat(3000) });
      const heavy = await make('ada', 'tickets', { subject: 'heavy', customerId: long });
      const octets = await get('ada', `tickets/${heavy}?expand=customerId`);
      assert.equal(octets.status, 400);
      assert.match(String(octets.json().error), /more than 2048 octets/);
    });
  });
}
