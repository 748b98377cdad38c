/** Access rules over resources that references name (§5.9), on both stores: every way to a resource obeys them, as the other resource is now. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Type } from 'typebox';
import { resolveConfiguration } from '../../../src/config/configuration.ts';
import { allow } from '../../../src/model/access-function.ts';
import { engineNames } from '../../harness/engine-names.ts';
import { type EventReader, readEvents } from './event-reader.ts';
import { openHouse } from './house-of-rules.ts';
import type { Shop } from './shop-of-many.ts';

const Ticket = Type.Object({
  title: Type.String(),
  customer: Type.Optional(Type.String()),
  open: Type.Optional(Type.Boolean()),
});
const Comment = Type.Object({ text: Type.String(), ticketId: Type.String() });
const Note = Type.Object({ text: Type.String(), commentId: Type.Optional(Type.String()) });

/** What expressions of a comment look like where `Schemas` is not declared. */
type OfTicket = {
  readonly ticketId: {
    readonly customer: { is(value: string | null): never; isAbsent(): never };
    readonly owner: { is(value: string | null): never };
  };
};
type OfComment = { readonly commentId: OfTicket };

const ofOwnTicket = allow((principal, resource) =>
  (resource as unknown as OfTicket).ticketId.customer.is(principal.id),
);
const ofOwnComment = allow((principal, resource) =>
  (resource as unknown as OfComment).commentId.ticketId.customer.is(principal.id),
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
      access: { ...open, read: ofOwnComment },
      references: { commentId: { collection: 'comments' } },
      putCreates: true,
    },
    replies: {
      schema: Comment,
      access: { ...open, read: { anyOf: ['owner', { where: { 'ticketId.open': true } }] } },
      references: { ticketId: { collection: 'tickets' } },
      putCreates: true,
    },
  },
});

const base = '/api/v1';
const json = (value: unknown) => ({ json: value });

for (const engine of engineNames) {
  describe(engine, () => {
    let house: Shop;

    before(async () => {
      house = await openHouse(engine, { configuration });
    });

    after(() => house.stop());

    async function put(who: string, path: string, value: object, status = 201): Promise<void> {
      const answer = await house.as(who, 'PUT', `${base}/${path}`, json(value));
      assert.equal(answer.status, status, `${who} ${path} ${answer.body}`);
    }

    async function ids(who: string, path: string): Promise<readonly string[]> {
      const answer = await house.as(who, 'GET', `${base}/${path}`, { headers: { Prefer: 'count=exact' } });
      assert.equal(answer.status, 200, answer.body);
      const items = (answer.json().items as { id: string }[]).map(({ id }) => id);
      assert.equal(answer.headers['x-total-count'], String(items.length));
      return items;
    }

    const status = async (who: string, method: string, path: string, value?: unknown) =>
      (await house.as(who, method, `${base}/${path}`, value === undefined ? {} : json(value))).status;

    const move = (ticket: string, customer: string | null) =>
      status('root', 'PATCH', `tickets/${ticket}`, { customer });

    test('reads, lists, counts and QUERY show a resource to whom the other resource says, as it is now', async () => {
      await put('root', 'tickets/r1', { title: 'r1', customer: 'ada' });
      await put('root', 'tickets/r2', { title: 'r2', customer: 'bob' });
      await put('ada', 'comments/r-a', { text: 'a', ticketId: 'r1' });
      await put('bob', 'comments/r-b', { text: 'b', ticketId: 'r2' });
      await put('root', 'notes/r-n', { text: 'n', commentId: 'r-a' });
      await put('root', 'notes/r-o', { text: 'n' });
      const sql = { body: 'SELECT id FROM comments', headers: { 'Content-Type': 'application/sql' } };
      for (const [holder, other] of [
        ['ada', 'bob'],
        ['bob', 'ada'],
        ['ada', 'bob'],
      ] as const) {
        await move('r1', holder);
        // Answers that are asked for again and again come from caches.
        for (let turn = 0; turn < 4; turn += 1) {
          assert.equal(await status(holder, 'GET', 'comments/r-a'), 200);
          assert.equal(await status(other, 'GET', 'comments/r-a'), 404);
          assert.equal(await status(holder, 'GET', 'notes/r-n'), 200);
          assert.equal(await status(other, 'GET', 'notes/r-n'), 404);
          assert.equal(await status(holder, 'GET', 'notes/r-o'), 404);
          assert.ok((await ids(holder, 'comments?limit=50')).includes('r-a'));
          assert.ok(!(await ids(other, 'comments?limit=50')).includes('r-a'));
          assert.deepEqual(await ids(holder, 'notes'), ['r-n']);
          assert.deepEqual(await ids(other, 'notes'), []);
          assert.deepEqual(await ids('root', 'notes'), ['r-n', 'r-o']);
          const found = await house.as(other, 'QUERY', `${base}/comments`, sql);
          assert.doesNotMatch(found.body, /r-a/);
        }
      }
      await move('r1', null);
      assert.equal(await status('ada', 'GET', 'comments/r-a'), 404);
      assert.deepEqual(await ids('ada', 'notes'), []);
    });

    test('a list keeps its tag until the other resource changes, and is then answered anew', async () => {
      await put('root', 'tickets/e1', { title: 'e1', customer: 'ed' });
      await put('ed', 'comments/e-a', { text: 'a', ticketId: 'e1' });
      let tag = '';
      for (let turn = 0; turn < 3; turn += 1) {
        tag = String((await house.as('ed', 'GET', `${base}/comments`)).headers.etag);
        const again = await house.as('ed', 'GET', `${base}/comments`, { headers: { 'If-None-Match': tag } });
        assert.equal(again.status, 304);
      }
      await move('e1', 'hana');
      const answer = await house.as('ed', 'GET', `${base}/comments`, { headers: { 'If-None-Match': tag } });
      assert.equal(answer.status, 200);
      assert.deepEqual(answer.json().items, []);
      assert.deepEqual(await ids('hana', 'comments'), ['e-a']);
    });

    test('an object rule with a path combines with others', async () => {
      await put('root', 'tickets/w1', { title: 'w1', open: true });
      await put('ada', 'replies/w-a', { text: 'a', ticketId: 'w1' });
      assert.deepEqual(await ids('bob', 'replies'), ['w-a']);
      assert.equal(await status('root', 'PATCH', 'tickets/w1', { open: false }), 200);
      assert.deepEqual(await ids('bob', 'replies'), []);
      assert.equal(await status('bob', 'GET', 'replies/w-a'), 404);
      assert.deepEqual(await ids('ada', 'replies'), ['w-a']);
      assert.equal(await status('ada', 'GET', 'replies/w-a'), 200);
    });

    test('creates, changes and deletes ask the resource that the document names', async () => {
      await put('root', 'tickets/c1', { title: 'c1', customer: 'nora' });
      await put('root', 'tickets/c2', { title: 'c2', customer: 'nils' });
      await put('nora', 'comments/c-a', { text: 'a', ticketId: 'c1' });
      await put('nora', 'comments/c-x', { text: 'a', ticketId: 'c2' }, 403);
      assert.equal(await status('nora', 'POST', 'comments', { text: 'a', ticketId: 'c2' }), 403);
      assert.equal(await status('nora', 'POST', 'comments', { text: 'a', ticketId: 'nowhere' }), 403);
      assert.equal(await status('nora', 'PATCH', 'comments/c-a', { text: 'b' }), 200);
      assert.equal(await status('nora', 'PATCH', 'comments/c-a', { ticketId: 'c2' }), 403);
      await put('nora', 'comments/c-a', { text: 'a', ticketId: 'c2' }, 403);
      assert.equal(await status('nils', 'PATCH', 'comments/c-a', { text: 'b' }), 404);
      assert.equal(await status('nils', 'DELETE', 'comments/c-a'), 404);
      const many = {
        items: [
          { text: '1', ticketId: 'c1' },
          { text: '2', ticketId: 'c2' },
        ],
        atomic: false,
      };
      const bulk = await house.as('nora', 'POST', `${base}/comments/bulk`, json(many));
      const statuses = (bulk.json().items as { status: number }[]).map((item) => item.status);
      assert.deepEqual(statuses, [201, 403]);
      assert.equal(await status('nora', 'POST', 'comments/bulk', { items: many.items }), 403);
      await put('nils', 'comments/c-b', { text: 'b', ticketId: 'c2' });
      const deleted = await house.as(
        'nora',
        'POST',
        `${base}/comments/bulk-delete`,
        json({ ids: ['c-a', 'c-b'] }),
      );
      assert.deepEqual(deleted.json(), { deleted: 1 });
      assert.equal(await status('nils', 'GET', 'comments/c-b'), 200);
      assert.equal(await status('nils', 'DELETE', 'comments/c-b'), 204);
    });

    test('expand, the event log and single events show what the other resource allows now', async () => {
      await put('root', 'tickets/x1', { title: 'x1', customer: 'sven' });
      await put('sven', 'comments/x-a', { text: 'for sven', ticketId: 'x1' });
      await put('root', 'notes/x-n', { text: 'n', commentId: 'x-a' });
      const log = async (who: string) =>
        (await house.as(who, 'GET', `${base}/events?type=comments.created&limit=100`)).body;
      const expanded = async () => (await house.as('root', 'GET', `${base}/notes/x-n?expand=commentId`)).body;
      for (let turn = 0; turn < 3; turn += 1) {
        assert.match(await log('sven'), /for sven/);
        assert.doesNotMatch(await log('pia'), /for sven/);
      }
      assert.match(await expanded(), /for sven/);
      const listed = async (who: string) =>
        (await house.as(who, 'GET', `${base}/notes?expand=commentId`)).body;
      for (let turn = 0; turn < 3; turn += 1) assert.match(await listed('sven'), /for sven/);
      await move('x1', 'pia');
      assert.doesNotMatch(await listed('sven'), /for sven/);
      assert.doesNotMatch(await log('sven'), /for sven/);
      assert.match(await log('pia'), /for sven/);
      const history = (who: string) => house.as(who, 'GET', `${base}/comments/x-a/history`);
      assert.equal((await history('sven')).status, 404);
      const versions = await history('pia');
      assert.equal(versions.status, 200);
      assert.equal((versions.json().items as unknown[]).length, 1, versions.body);
    });

    test('a stream brings the events that the other resource allows when they happen, and tells what left', async () => {
      await put('root', 'tickets/s1', { title: 's1', customer: 'ada' });
      await put('root', 'tickets/s2', { title: 's2', customer: 'bob' });
      const adas = await readEvents(house.port, { bearer: 'ada' });
      const bobs = await readEvents(house.port, { bearer: 'bob' });
      // Rules are judged when a stream reads an event: it has passed all that came before a mark that it brings.
      const passed = async (mark: string) => {
        await put('root', `tickets/mark-${mark}`, { title: mark });
        for (const reader of [adas, bobs])
          await reader.until(({ events }) => events.some(({ data }) => data.includes(`"title":"${mark}"`)));
      };
      await put('ada', 'comments/s-1', { text: 'first', ticketId: 's1' });
      await passed('one');
      await move('s1', 'bob');
      await put('bob', 'comments/s-2', { text: 'second', ticketId: 's1' });
      await passed('two');
      await move('s1', 'ada');
      await put('ada', 'comments/s-3', { text: 'third', ticketId: 's1' });
      await passed('three');
      assert.equal(await status('root', 'PATCH', 'comments/s-3', { ticketId: 's2' }), 200);
      const ofComments = (reader: EventReader) =>
        reader.events
          .filter(({ event }) => /^(left|entered|comments\..*)$/.test(event))
          .map(({ event, data }) => `${event} ${/"(?:where":{"ticketId|id)":"(s-?\d)"/.exec(data)?.[1]}`);
      await adas.until((reader) => ofComments(reader).length === 5);
      await bobs.until((reader) => ofComments(reader).length === 4);
      assert.deepEqual(ofComments(adas), [
        'comments.created s-1',
        'left s1',
        'entered s1',
        'comments.created s-3',
        'left s-3',
      ]);
      assert.deepEqual(ofComments(bobs), [
        'entered s1',
        'comments.created s-2',
        'left s1',
        'comments.updated s-3',
      ]);
      adas.close();
      bobs.close();
    });

    test('no create is committed against another state of the other resource than the one it was judged by', async () => {
      const ticket = 'busy';
      await put('root', `tickets/${ticket}`, { title: 'busy', customer: 'ada' });
      const created: string[] = [];
      let isOver = false;
      const flips = (async () => {
        for (let flip = 0; !isOver; flip += 1)
          assert.equal(await move(ticket, flip % 2 === 0 ? 'bob' : 'ada'), 200);
      })();
      await Promise.all(
        Array.from({ length: 120 }, async (_, at) => {
          const id = `busy-${at}`;
          const answer = await house.as(
            'ada',
            'PUT',
            `${base}/comments/${id}`,
            json({ text: 'x', ticketId: ticket }),
          );
          assert.ok(answer.status === 201 || answer.status === 403, answer.body);
          if (answer.status === 201) created.push(id);
        }),
      );
      isOver = true;
      await flips;
      // In the order of commits, every comment follows a state in which the ticket was hers.
      const reader = await readEvents(house.port, { bearer: 'root', path: '/api/v1/events?after=' });
      await move(ticket, 'done');
      await reader.until(({ events }) => events.some(({ data }) => data.includes('"customer":"done"')));
      let customer = '';
      const seen: string[] = [];
      for (const { event, data } of reader.events) {
        const { object } = (JSON.parse(data) as { data: { object: Record<string, string> } }).data;
        if (event.startsWith('tickets.') && object.id === ticket) customer = String(object.customer);
        if (event === 'comments.created' && object.ticketId === ticket) {
          assert.equal(customer, 'ada', `${object.id} was created while the ticket was of ${customer}`);
          seen.push(String(object.id));
        }
      }
      reader.close();
      assert.deepEqual(seen.sort(), created.sort());
    });
  });
}
