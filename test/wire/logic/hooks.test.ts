/** Hooks of writes over the wire, on both stores: one unit with the write, and nothing of it where one fails. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { engineNames } from '../../harness/engine-names.ts';
import type { Answer } from '../../harness/exchange.ts';
import type { RunningServer } from '../../harness/running-server.ts';
import { serversOn } from '../../harness/servers-on.ts';

const config = fileURLToPath(new URL('./fixtures/hooks.config.ts', import.meta.url));
const merge = { 'Content-Type': 'application/merge-patch+json' };

for (const engine of engineNames) {
  describe(`hooks on ${engine}`, () => {
    let server: RunningServer;
    /** On a busy machine any hook may take as long as this one allows. */
    let impatient: RunningServer;

    const start = serversOn(engine, config);
    before(async () => {
      server = await start({}, { hookDepthMax: 3 });
      impatient = await start({ COMITY_HOOK_TIMEOUT_MS: '200' });
    });

    const post = (collection: string, json: unknown, headers = {}): Promise<Answer> =>
      server.send('POST', `/api/v1/${collection}`, { json, headers });
    const patch = (path: string, json: unknown): Promise<Answer> =>
      server.send('PATCH', `/api/v1/${path}`, { body: JSON.stringify(json), headers: merge });
    const countOf = async (collection: string, at = server): Promise<number> => {
      const answer = await at.send('GET', `/api/v1/${collection}?limit=1`, {
        headers: { Prefer: 'count=exact' },
      });
      return Number(answer.headers['x-total-count'] ?? answer.json().total);
    };
    const eventsOf = async (type: string): Promise<number> => {
      const answer = await server.send('GET', `/api/v1/events?type=${type}&limit=1000`);
      return (answer.json().items as unknown[]).length;
    };

    test('change what is stored, and write other documents with it', async () => {
      const made = await post('tickets', { title: 'first' });
      assert.equal(made.status, 201);
      const ticket = made.json();
      assert.equal(ticket.by, 'administrator');
      assert.match(String(ticket.dueAt), /^\d{4}-/);
      const read = await server.send('GET', `/api/v1/tickets/${ticket.id}`);
      assert.equal(read.body, made.body);
      assert.equal(read.headers.etag, made.headers.etag);
      assert.equal((await server.send('GET', '/api/v1/counters/all')).json().tickets, 1);
      assert.equal(await eventsOf('tickets.created'), 1);
      assert.equal(await eventsOf('counters.created'), 1);
    });

    test('refuse in their own words, with a trace', async () => {
      const { id } = (await post('tickets', { title: 'second', status: 'solved' })).json();
      const updates = await eventsOf('tickets.updated');
      const refused = await patch(`tickets/${id}`, { title: 'changed' });
      assert.equal(refused.status, 409);
      assert.deepEqual(refused.json(), {
        error: 'the ticket is closed',
        code: 'ticket_closed',
        errors: [{ pointer: '/status', message: 'the ticket is closed' }],
      });
      const details = await server.send('PATCH', `/api/v1/tickets/${id}`, {
        body: '{"title":"changed"}',
        headers: { ...merge, Accept: 'application/problem+json' },
      });
      assert.equal(details.headers['content-type'], 'application/problem+json');
      assert.equal(details.json().status, 409);
      assert.equal(details.json().code, 'ticket_closed');
      assert.equal(details.json().detail, 'the ticket is closed');
      assert.equal((await server.send('DELETE', `/api/v1/tickets/${id}`)).status, 409);
      const bulk = await post('tickets/bulk-delete', { ids: [id] });
      assert.equal(bulk.status, 409);
      const replaced = await server.send('PUT', `/api/v1/tickets/${id}`, {
        json: { title: 'changed', status: 'solved' },
      });
      assert.equal(replaced.status, 409);
      assert.equal((await server.send('GET', `/api/v1/tickets/${id}`)).json().title, 'second');
      assert.equal(await eventsOf('tickets.updated'), updates);
      assert.equal((await patch(`tickets/${id}`, { status: 'open' })).status, 200);
    });

    test('are given members that can be copied and printed', async () => {
      const made = await post('copied', { text: 'a' });
      assert.equal(made.status, 201, made.body);
      const { action, keys, printed, caller, hasRun } = made.json().any as Record<string, unknown>;
      assert.deepEqual([action, caller, hasRun], ['create', 'administrator', false]);
      assert.deepEqual((keys as string[]).toSorted(), [
        'action',
        'after',
        'before',
        'emit',
        'id',
        'mail',
        'now',
        'principal',
        'refuse',
        'resources',
      ]);
      assert.match(String(printed), /^\{\s+action: 'create',\s[\s\S]*after: \{ text: 'a' \}/);
    });

    test('run for no write that changes nothing', async () => {
      const made = await post('tickets', { title: 'same', status: 'solved' });
      const same = await patch(`tickets/${made.json().id}`, { title: 'same' });
      assert.equal(same.status, 200);
      assert.equal(same.headers.etag, made.headers.etag);
    });

    test('write once for one Idempotency-Key', async () => {
      const { id } = (await post('tickets', { title: 'keyed' })).json();
      const solve = () =>
        server.send('PATCH', `/api/v1/tickets/${id}`, {
          body: '{"status":"solved"}',
          headers: { ...merge, 'Idempotency-Key': '"solve"' },
        });
      const notes = await countOf('notes');
      const [first, second] = [await solve(), await solve()];
      assert.deepEqual([first.status, second.status], [200, 200]);
      assert.equal(second.headers.etag, first.headers.etag);
      assert.equal(await countOf('notes'), notes + 1);
    });

    test('run for asynchronous requests too', async () => {
      const before = Number((await server.send('GET', '/api/v1/counters/all')).json().tickets);
      const accepted = await post('tickets', { title: 'later' }, { Prefer: 'respond-async' });
      assert.equal(accepted.status, 202);
      let operation: Answer;
      do operation = await server.send('GET', String(accepted.headers.location));
      while (operation.status === 200 && operation.json().status === 'pending');
      assert.equal((await server.send('GET', '/api/v1/counters/all')).json().tickets, before + 1);
    });

    test('run again where what they read was changed: 60 at once lose nothing', async () => {
      // Without it the first of them races the others to create it.
      assert.equal((await server.send('DELETE', '/api/v1/counters/all')).status, 204);
      const made = await Promise.all(Array.from({ length: 60 }, () => post('tickets', { title: 'crowd' })));
      assert.deepEqual(new Set(made.map(({ status }) => status)), new Set([201]));
      assert.equal((await server.send('GET', '/api/v1/counters/all')).json().tickets, 60);
    });

    for (const [text, told, collection = 'strange'] of [
      ['throws', /the hook beforeWrite of strange failed: the hook broke/],
      ['writes and throws', /the hook broke/],
      ['returns', /strange must return nothing, not an object: change `after` instead/],
      ['returns a number', /strange must return nothing, not a number: change `after` instead/],
      ['returns at once', /prompt must return nothing, not an object/, 'prompt'],
      ['sets', /`after` cannot be set: change its members/, 'prompt'],
      ['circular', /beforeWrite of strange left a document that is not JSON: Converting circular structure/],
      ['a BigInt', /beforeWrite of strange left a document that is not JSON: .* BigInt/],
      ['nonsense', /left a document that cannot be stored.*\/text/],
      ['more nonsense', /left a document that cannot be stored.*\/unheard/],
      ['loops', /nest deeper than 3/],
      ['bad code', /refuse needs a code of lower-case letters/],
      ['bad status', /the status of a refusal must be one of/],
    ] as const) {
      test(`that do what they should not write nothing, and the log says why: ${text}`, async () => {
        const [strange, notes] = [await countOf(collection), await countOf('notes')];
        const answer = await post(collection, { text });
        assert.equal(answer.status, 500);
        assert.equal(answer.json().code, 'internal');
        assert.match(server.logOf(answer), told);
        assert.deepEqual([await countOf(collection), await countOf('notes')], [strange, notes]);
      });
    }

    for (const [text, told, collection = 'strange'] of [
      ['never ends', /not done within 200 ms \(COMITY_HOOK_TIMEOUT_MS\)/],
      ['computes', /strange was not done within 200 ms/],
      ['computes at once', /prompt was not done within 200 ms/, 'prompt'],
    ] as const) {
      test(`that take too long write nothing, and the log says why: ${text}`, async () => {
        const answer = await impatient.send('POST', `/api/v1/${collection}`, { json: { text } });
        assert.deepEqual([answer.status, answer.json().code], [500, 'internal']);
        assert.match(impatient.logOf(answer), told);
        assert.deepEqual([await countOf(collection, impatient), await countOf('notes', impatient)], [0, 0]);
      });
    }

    test('pass on the refusal of a call that they do not catch', async () => {
      const refused = await post('strange', { text: 'refused call' });
      assert.equal(refused.status, 404);
      assert.deepEqual(refused.json(), {
        error: 'notes: no document has the id "nowhere"',
        code: 'not_found',
      });
      assert.equal((await post('strange', { text: 'caught call' })).status, 201);
      const registered = await post('strange', { text: 'registered' });
      assert.deepEqual([registered.status, registered.json().code], [409, 'unique_taken']);
    });

    test('have their calls waited for', async () => {
      const notes = await countOf('notes');
      assert.equal((await post('strange', { text: 'not awaited' })).status, 201);
      assert.equal(await countOf('notes'), notes + 1);
    });
  });
}
