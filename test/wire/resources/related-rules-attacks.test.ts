/**
 * Attacks on access rules over resources that references name (§5.9), on both stores: a caller who may not read a comment, because its ticket is
 * somebody else's, learns nothing of it by any other way than reading it.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Type } from 'typebox';
import { resolveConfiguration } from '../../../src/config/configuration.ts';
import { allow } from '../../../src/model/access-function.ts';
import { engineNames } from '../../harness/engine-names.ts';
import { readEvents } from './event-reader.ts';
import { openHouse } from './house-of-rules.ts';
import type { Shop } from './shop-of-many.ts';

const Ticket = Type.Object({ title: Type.String(), customer: Type.Optional(Type.String()) });
const Comment = Type.Object({ text: Type.String(), score: Type.Integer(), ticketId: Type.String() });
const Note = Type.Object({ text: Type.String(), commentId: Type.Optional(Type.String()) });

type OfTicket = { readonly ticketId: { readonly customer: { is(value: string | null): never } } };

const ofOwnTicket = allow((principal, resource) =>
  (resource as unknown as OfTicket).ticketId.customer.is(principal.id),
);
const open = { read: 'principal', create: 'principal', update: 'principal', delete: 'principal' } as const;

const configuration = resolveConfiguration({
  collections: {
    tickets: { schema: Ticket, access: open, putCreates: true },
    comments: {
      schema: Comment,
      access: { read: ofOwnTicket, create: ofOwnTicket, update: ofOwnTicket, delete: ofOwnTicket },
      references: { ticketId: { collection: 'tickets' } },
      putCreates: true,
    },
    notes: {
      schema: Note,
      access: open,
      references: { commentId: { collection: 'comments' } },
      putCreates: true,
    },
  },
});

const base = '/api/v1';
const secret = 'the-secret-of-ada';
const sql = (body: string) => ({ body, headers: { 'Content-Type': 'application/sql' } });

for (const engine of engineNames) {
  describe(engine, () => {
    let house: Shop;

    before(async () => {
      house = await openHouse(engine, { configuration });
      await put('root', 'tickets/hers', { title: 'hers', customer: 'ada' });
      await put('root', 'tickets/his', { title: 'his', customer: 'bob' });
      await put('ada', 'comments/c-ada', { text: secret, score: 41, ticketId: 'hers' });
      await put('bob', 'comments/c-bob', { text: 'his own', score: 1, ticketId: 'his' });
      await put('ada', 'notes/n-ada', { text: 'n', commentId: 'c-ada' });
      await put('root', 'notes/n-bob', { text: 'n', commentId: 'c-bob' });
      await put('root', 'notes/n-none', { text: 'n' });
    });

    after(() => house.stop());

    const ask = (who: string, method: string, path: string, options = {}) =>
      house.as(who, method, `${base}/${path}`, options);

    async function put(who: string, path: string, json: object, status = 201): Promise<void> {
      const answer = await ask(who, 'PUT', path, { json });
      assert.equal(answer.status, status, `${who} ${path} ${answer.body}`);
    }

    async function bobs(path: string, status = 200): Promise<string> {
      const answer = await ask('bob', 'GET', path, { headers: { Prefer: 'count=exact' } });
      assert.equal(answer.status, status, `${path} ${answer.body}`);
      assert.doesNotMatch(answer.body, new RegExp(secret), path);
      return answer.body;
    }

    const idsIn = (body: string): readonly string[] =>
      (JSON.parse(body) as { items: { id: string }[] }).items.map(({ id }) => id);

    /** Bob's answer about a comment that he may not read equals that about one that does not exist. */
    async function alike(method: string, path: (id: string) => string, options: (id: string) => object) {
      const bodies: string[] = [];
      for (const id of ['c-ada', 'c-nil']) {
        const answer = await ask('bob', method, path(id), options(id));
        bodies.push(`${answer.status} ${answer.body.replaceAll(id, 'ID')}`);
      }
      assert.equal(bodies[0], bodies[1], `${method} ${path('ID')}`);
    }

    test('expand and counts leave out what a list would, at every depth', async () => {
      for (const path of ['commentId', 'commentId.ticketId']) {
        const listed = await bobs(`notes?expand=${path}`);
        assert.ok(!listed.includes('"c-ada":{') && listed.includes('"c-bob":{'), listed);
        assert.ok(!(await bobs(`notes/n-ada?expand=${path}`)).includes('"title":"hers"'));
        const asked = await ask('bob', 'QUERY', 'notes', sql('SELECT * FROM notes'));
        assert.equal(asked.status, 200);
        assert.doesNotMatch(asked.body, new RegExp(secret));
      }
      const { counts } = JSON.parse(await bobs('tickets?counts=commentCount')) as { counts: object };
      assert.deepEqual(counts, { hers: { commentCount: 0 }, his: { commentCount: 1 } });
      const one = JSON.parse(await bobs('tickets/hers?counts=commentCount')) as { counts: object };
      assert.deepEqual(one.counts, { hers: { commentCount: 0 } });
    });

    test('filters, orders and searches find nothing by what may not be read', async () => {
      const found = async (query: string) => idsIn(await bobs(`notes?${query}`));
      assert.deepEqual(await found(`commentId.text=${secret}`), []);
      assert.deepEqual(await found('commentId.text[like]=the%25'), []);
      assert.deepEqual(await found('commentId.score[gte]=2'), []);
      assert.deepEqual(await found('commentId.ticketId.title=hers'), []);
      // Absent, as behind a reference that names nothing.
      assert.deepEqual(await found('commentId.text[null]=true'), ['n-ada', 'n-none']);
      assert.deepEqual(await found(`commentId.text[ne]=${secret}`), ['n-ada', 'n-bob', 'n-none']);
      for (const sort of ['text', '-text', 'score', '-score', 'ticketId', 'id', '-createdAt'])
        assert.deepEqual(idsIn(await bobs(`comments?sort=${sort}`)), ['c-bob'], sort);
      assert.deepEqual(idsIn(await bobs('comments?ticketId=hers')), []);
      assert.deepEqual(idsIn(await bobs('comments?ticketId=his')), ['c-bob']);
      assert.deepEqual(idsIn(await bobs('comments?ticketId[in]=hers,his')), ['c-bob']);
      assert.deepEqual(idsIn(await bobs('comments?id=c-ada')), []);
      assert.deepEqual(idsIn(await bobs('comments?q=secret')), []);
      assert.equal((await ask('bob', 'GET', 'notes?sort=commentId.text')).status, 400);
      assert.deepEqual(idsIn((await ask('ada', 'GET', 'comments?ticketId=hers')).body), ['c-ada']);
    });

    test('aggregates compute over what may be read', async () => {
      for (const query of [
        'SELECT count(*) AS n, sum(score) AS s, max(score) AS m FROM comments',
        "SELECT count(*) AS n, sum(score) AS s, max(score) AS m FROM comments WHERE ticketId IN ('hers', 'his')",
      ]) {
        const answer = await ask('bob', 'QUERY', 'comments', sql(query));
        assert.deepEqual(answer.json().items, [{ n: 1, s: 1, m: 1 }], answer.body);
      }
      const groups = await ask(
        'bob',
        'QUERY',
        'comments',
        sql('SELECT ticketId, count(*) AS n FROM comments GROUP BY ticketId'),
      );
      assert.deepEqual(groups.json().items, [{ ticketId: 'his', n: 1 }]);
      const beyond = await ask(
        'bob',
        'QUERY',
        'notes',
        sql('SELECT count(*) AS n FROM notes WHERE commentId.score > 2'),
      );
      assert.deepEqual(beyond.json().items, [{ n: 0 }], beyond.body);
    });

    test('members, their history, changes and preconditions answer as if there were none', async () => {
      const nothing = () => ({});
      await alike('GET', (id) => `comments/${id}`, nothing);
      await alike('HEAD', (id) => `comments/${id}`, nothing);
      await alike('GET', (id) => `comments/${id}?expand=ticketId`, nothing);
      await alike('GET', (id) => `comments/${id}/history`, nothing);
      const tag = String((await ask('ada', 'GET', 'comments/c-ada')).headers.etag);
      for (const headers of [{ 'If-Match': '*' }, { 'If-Match': tag }, { 'If-None-Match': tag }])
        await alike(
          'GET',
          (id) => `comments/${id}`,
          () => ({ headers }),
        );
      await alike(
        'PATCH',
        (id) => `comments/${id}`,
        () => ({ json: { text: 'x' } }),
      );
      await alike('DELETE', (id) => `comments/${id}`, nothing);
      await alike(
        'POST',
        () => 'comments/bulk-delete',
        (id) => ({ json: { ids: [id] } }),
      );
      await alike(
        'POST',
        () => 'notes',
        (id) => ({ json: { text: 'n', commentId: id } }),
      );
      await alike(
        'PATCH',
        () => 'notes/n-bob',
        (id) => ({ json: { commentId: id } }),
      );
      await alike(
        'POST',
        () => 'notes/bulk',
        (id) => ({ json: { items: [{ text: 'n', commentId: id }] } }),
      );
      await alike(
        'POST',
        () => 'notes/bulk',
        (id) => ({
          json: { items: [{ text: 'n', commentId: id }], atomic: false },
        }),
      );
      assert.equal((await ask('ada', 'GET', 'comments/c-ada')).status, 200);
    });

    test('a ticket tells how many of the comments that prevent its deletion the caller may see', async () => {
      const refused = async (who: string) => {
        const answer = await ask(who, 'DELETE', 'tickets/hers');
        assert.equal(answer.status, 409, answer.body);
        return answer.json().commentCount ?? 0;
      };
      assert.deepEqual([await refused('bob'), await refused('ada')], [0, 1]);
    });

    test('stored queries and kept answers of another caller show their own rows to each', async () => {
      const stored = await ask('ada', 'QUERY', 'comments', sql('SELECT * FROM comments'));
      assert.match(stored.body, new RegExp(secret));
      const location = String(stored.headers['content-location'] ?? stored.headers.location);
      for (let turn = 0; turn < 3; turn += 1) {
        const answer = await house.as('bob', 'GET', location);
        assert.doesNotMatch(answer.body, new RegExp(secret));
        assert.doesNotMatch(await bobs('comments'), /c-ada/);
        assert.match((await ask('ada', 'GET', 'comments')).body, new RegExp(secret));
      }
      const tag = String((await ask('ada', 'GET', 'comments')).headers.etag);
      const other = await ask('bob', 'GET', 'comments', { headers: { 'If-None-Match': tag } });
      assert.equal(other.status, 200);
      assert.equal((await ask('bob', 'GET', 'comments/bulk')).status, 403);
    });

    test('events, their list, filters and stream tell nothing of it, also after it was deleted', async () => {
      await put('ada', 'comments/c-gone', { text: `${secret} gone`, score: 3, ticketId: 'hers' });
      const gone = await ask('ada', 'GET', 'events?type=comments.created&limit=100');
      assert.match(gone.body, new RegExp(`${secret} gone`));
      const events = (gone.json().items as { id: string; data: { object: { id: string } } }[]).filter(
        ({ data }) => data.object.id.startsWith('c-') && data.object.id !== 'c-bob',
      );
      assert.equal((await ask('ada', 'DELETE', 'comments/c-gone')).status, 204);
      for (const { id } of events) await bobs(`events/${id}`, 404);
      assert.deepEqual(idsIn(await bobs('events?data.object.id=c-ada')), []);
      const log = await bobs('events?limit=1000');
      assert.ok(!log.includes('"id":"c-ada"') && !log.includes('c-gone'), log);
      const reader = await readEvents(house.port, { bearer: 'bob', path: '/api/v1/events?after=' });
      await put('root', 'tickets/mark', { title: 'mark' });
      await reader.until(({ events: seen }) => seen.some(({ data }) => data.includes('"title":"mark"')));
      reader.close();
      const told = reader.events.map(({ data }) => data).join('\n');
      assert.ok(!told.includes(secret) && !told.includes('c-gone'), told);
      assert.ok(told.includes('c-bob'));
    });

    test('versions that were of another ticket are left out of the history', async () => {
      await put('root', 'tickets/h1', { title: 'h1', customer: 'ada' });
      await put('root', 'tickets/h2', { title: 'h2', customer: 'bob' });
      await put('ada', 'comments/c-moved', { text: `${secret} before`, score: 2, ticketId: 'h1' });
      const moved = await ask('root', 'PATCH', 'comments/c-moved', {
        json: { ticketId: 'h2', text: 'after' },
      });
      assert.equal(moved.status, 200);
      const history = await bobs('comments/c-moved/history');
      assert.equal((JSON.parse(history) as { items: unknown[] }).items.length, 1, history);
      assert.ok(!history.includes('"h1"'), history);
    });

    for (const [what, change] of [
      ['patch', (id: string) => ask('ada', 'PATCH', `comments/${id}`, { json: { text: 'by ada' } })],
      ['deletion', (id: string) => ask('ada', 'DELETE', `comments/${id}`)],
      ['bulk deletion', (id: string) => ask('ada', 'POST', 'comments/bulk-delete', { json: { ids: [id] } })],
      [
        'bulk create',
        (id: string) =>
          ask('ada', 'POST', 'comments/bulk', {
            json: { items: [{ text: id, score: 0, ticketId: 'flips' }], atomic: id.endsWith('0') },
          }),
      ],
    ] as const) {
      test(`no ${what} is committed against another state of the ticket than it was judged by`, async () => {
        await ask('root', 'PUT', 'tickets/flips', { json: { title: 'flips', customer: 'ada' } });
        await ask('root', 'PATCH', 'tickets/flips', { json: { customer: 'ada' } });
        const ids = Array.from({ length: 60 }, (_, at) => `${what.replace(' ', '-')}-${at}`);
        const isNew = what === 'bulk create';
        if (!isNew)
          for (const id of ids)
            await put('root', `comments/${id}`, { text: 'x', score: 0, ticketId: 'flips' });
        let isOver = false;
        const flips = (async () => {
          for (let flip = 0; !isOver; flip += 1) {
            const json = { customer: flip % 2 === 0 ? 'bob' : 'ada' };
            assert.equal((await ask('root', 'PATCH', 'tickets/flips', { json })).status, 200);
          }
        })();
        const statuses = await Promise.all(ids.map(async (id) => (await change(id)).status));
        isOver = true;
        await flips;
        for (const status of statuses) assert.ok([200, 201, 204, 403, 404].includes(status), String(status));
        const reader = await readEvents(house.port, { bearer: 'root', path: '/api/v1/events?after=' });
        await ask('root', 'PATCH', 'tickets/flips', { json: { customer: `end of ${what}` } });
        await reader.until(({ events }) =>
          events.some(({ data }) => data.includes(`"customer":"end of ${what}"`)),
        );
        let customer = '';
        let judged = 0;
        for (const { event, data } of reader.events) {
          const { object } = (JSON.parse(data) as { data: { object: Record<string, string> } }).data;
          if (event.startsWith('tickets.') && object.id === 'flips') customer = String(object.customer);
          const isOurs = isNew ? ids.includes(String(object.text)) : ids.includes(String(object.id));
          if (!isOurs || (event === 'comments.created') !== isNew) continue;
          judged += 1;
          assert.equal(customer, 'ada', `${event} ${object.id} while the ticket was of ${customer}`);
        }
        reader.close();
        assert.ok(judged <= ids.length);
      });
    }
  });
}
