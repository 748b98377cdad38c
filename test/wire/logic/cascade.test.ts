/** Deletions that take documents with them (§4.7.5), over the wire, on both stores. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { engineNames } from '../../harness/engine-names.ts';
import type { Answer, RequestOptions } from '../../harness/exchange.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { roundsOf } from '../../harness/rounds.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { eventually, until } from '../../harness/until.ts';

const config = fileURLToPath(new URL('./fixtures/cascade.config.ts', import.meta.url));
const cascadeMax = 20;
const races = roundsOf(10, 50);
/** Documents of which one is created and one deleted for each. */
const children = roundsOf(200, 1000);

for (const engine of engineNames) {
  describe(`deletions with dependants on ${engine}`, () => {
    let server: RunningServer;

    before(async () => {
      const database = engine === 'SQLite' ? undefined : await databaseOfProgram(config);
      server = await startServer({
        config,
        env: {
          COMITY_CASCADE_MAX: String(cascadeMax),
          ...(database === undefined ? {} : { COMITY_DATABASE_URL: database.url }),
        },
      });
      if (database !== undefined) after(() => database.dispose());
    });

    after(() => server.stop());

    async function make(collection: string, json: object): Promise<string> {
      const answer = await server.send('POST', `/api/v1/${collection}`, { json });
      assert.equal(answer.status, 201, answer.body);
      return String(answer.json().id);
    }
    const get = (path: string): Promise<Answer> => server.send('GET', `/api/v1/${path}`);
    const remove = (path: string, options?: RequestOptions): Promise<Answer> =>
      server.send('DELETE', `/api/v1/${path}`, options);
    const isGone = async (path: string): Promise<boolean> => (await get(path)).status === 404;
    async function idsOf(list: string): Promise<readonly string[]> {
      const answer = await get(`${list}${list.includes('?') ? '&' : '?'}limit=1000&fields=id`);
      assert.equal(answer.status, 200, answer.body);
      return (answer.json().items as { id: string }[]).map(({ id }) => id);
    }
    async function eventsOf(type: string, ids: readonly string[]): Promise<number> {
      const { items } = (await get(`events?type=${type}&limit=1000&sort=-id`)).json() as {
        items: { data: { object: { id: string } } }[];
      };
      return items.filter(({ data }) => ids.includes(data.object.id)).length;
    }

    test('delete, hide or release what refers to the deleted document, with an event each', async () => {
      const ticket = await make('tickets', { subject: 'one' });
      const comments = [
        await make('comments', { text: 'marked', ticketId: ticket }),
        await make('comments', { text: 'b', ticketId: ticket }),
      ];
      const draft = await make('drafts', { text: 'd', ticketId: ticket });
      const article = await make('articles', { title: 't', ticketId: ticket });
      const marks = (await idsOf('marks')).length;
      assert.equal((await remove(`tickets/${ticket}`)).status, 204);
      for (const path of [`tickets/${ticket}`, `drafts/${draft}`, ...comments.map((id) => `comments/${id}`)])
        assert.ok(await isGone(path), path);
      assert.equal((await get(`articles/${article}`)).json().ticketId, undefined);
      assert.equal((await idsOf('marks')).length, marks + 1);
      assert.equal(await eventsOf('comments.deleted', comments), 2);
      assert.equal(await eventsOf('drafts.deleted', [draft]), 1);
      assert.equal(await eventsOf('articles.updated', [article]), 1);
      assert.equal(await eventsOf('tickets.deleted', [ticket]), 1);
    });

    test('follow references across collections and within one', async () => {
      const organisation = await make('organisations', { name: 'o' });
      const ticket = await make('tickets', { subject: 'a', organisationId: organisation });
      const child = await make('tickets', { subject: 'b', parentId: ticket });
      const grandchild = await make('tickets', {
        subject: 'c',
        parentId: child,
        organisationId: organisation,
      });
      const comment = await make('comments', { text: 'x', ticketId: grandchild });
      const article = await make('articles', { title: 't', ticketId: child, organisationId: organisation });
      assert.equal((await remove(`organisations/${organisation}`)).status, 204);
      for (const id of [ticket, child, grandchild]) assert.ok(await isGone(`tickets/${id}`));
      assert.ok(await isGone(`comments/${comment}`));
      assert.deepEqual(Object.keys((await get(`articles/${article}`)).json()).sort(), [
        ...['createdAt', 'id', 'title', 'updatedAt'],
      ]);
    });

    test('change nothing where a hook refuses or a reference restricts', async () => {
      const organisation = await make('organisations', { name: 'o' });
      const ticket = await make('tickets', { subject: 'a', organisationId: organisation });
      const comment = await make('comments', { text: 'x', ticketId: ticket });
      const kept = await make('comments', { text: 'kept', ticketId: ticket });
      const refused = await remove(`organisations/${organisation}`);
      assert.equal(refused.status, 409);
      assert.equal(refused.json().code, 'comment_kept');
      assert.equal((await remove(`comments/${kept}`)).status, 409);
      const path = `/api/v1/comments/${kept}`;
      assert.equal((await server.send('PATCH', path, { json: { text: 'free' } })).status, 200);
      const invoice = await make('invoices', { ticketId: ticket });
      for (const target of [`tickets/${ticket}`, `organisations/${organisation}`]) {
        const restricted = await remove(target);
        assert.equal(restricted.status, 409, target);
        assert.equal(restricted.json().code, 'dependants_exist');
      }
      assert.ok(!(await isGone(`comments/${comment}`)) && !(await isGone(`tickets/${ticket}`)));
      assert.equal((await remove(`invoices/${invoice}`)).status, 204);
      assert.equal((await remove(`organisations/${organisation}`)).status, 204);
      assert.ok(await isGone(`comments/${kept}`));
    });

    test('delete a document that refers to itself, and refuse a cycle of several', async () => {
      const own = await make('tickets', { subject: 'own' });
      const [one, other] = [await make('tickets', { subject: '1' }), await make('tickets', { subject: '2' })];
      for (const [id, parentId] of [
        [own, own],
        [one, other],
        [other, one],
      ])
        assert.equal(
          (await server.send('PATCH', `/api/v1/tickets/${id}`, { json: { parentId } })).status,
          200,
        );
      assert.equal((await remove(`tickets/${own}`)).status, 204);
      const cycle = await remove(`tickets/${one}`);
      assert.equal(cycle.status, 409);
      assert.match(String(cycle.json().error), /refer to each other/);
      const path = `/api/v1/tickets/${other}`;
      assert.equal((await server.send('PATCH', path, { json: { parentId: null } })).status, 200);
      assert.equal((await remove(`tickets/${other}`)).status, 204);
      assert.ok(await isGone(`tickets/${one}`));
    });

    test('refuse a cycle over collections whole, also where the named document only leads to it', async () => {
      const patch = async (path: string, json: object) =>
        assert.equal((await server.send('PATCH', `/api/v1/${path}`, { json })).status, 200);
      const ticket = await make('tickets', { subject: 'leads to a cycle' });
      const comment = await make('comments', { text: 'x', ticketId: ticket });
      const lefts = [await make('lefts', {}), await make('lefts', {})];
      const rights = [
        await make('rights', { leftId: lefts[0], ticketId: ticket }),
        await make('rights', { leftId: lefts[1] }),
      ];
      await patch(`lefts/${lefts[0]}`, { rightId: rights[1] });
      await patch(`lefts/${lefts[1]}`, { rightId: rights[0] });
      for (const path of [`tickets/${ticket}`, `rights/${rights[0]}`, `lefts/${lefts[1]}`]) {
        const cycle = await remove(path);
        assert.equal(cycle.status, 409, `${path} ${cycle.body}`);
        assert.match(String(cycle.json().error), /refer to each other/);
      }
      assert.ok(!(await isGone(`comments/${comment}`)));
      await patch(`lefts/${lefts[0]}`, { rightId: null });
      assert.equal((await remove(`tickets/${ticket}`)).status, 204);
      assert.ok(await isGone(`comments/${comment}`));
      for (const path of [`rights/${rights[0]}`, `lefts/${lefts[1]}`, `rights/${rights[1]}`])
        assert.ok(await isGone(path), path);
      assert.ok(!(await isGone(`lefts/${lefts[0]}`)));
    });

    test('refuse a document that refers to one that follows it, until that reference is removed', async () => {
      const ticket = await make('tickets', { subject: 'pins its comment' });
      const comment = await make('comments', { text: 'pinned', ticketId: ticket });
      const pin = async (pinnedId: string | null) =>
        assert.equal(
          (await server.send('PATCH', `/api/v1/tickets/${ticket}`, { json: { pinnedId } })).status,
          200,
        );
      await pin(comment);
      const cycle = await remove(`tickets/${ticket}`);
      assert.equal(cycle.status, 409, cycle.body);
      assert.match(String(cycle.json().error), /refer to each other/);
      assert.equal((await remove(`comments/${comment}`)).status, 204);
      assert.equal((await get(`tickets/${ticket}`)).json().pinnedId, undefined);
      const other = await make('comments', { text: 'pinned', ticketId: ticket });
      await pin(other);
      await pin(null);
      assert.equal((await remove(`tickets/${ticket}`)).status, 204);
      assert.ok((await isGone(`comments/${other}`)) && (await isGone(`tickets/${ticket}`)));
    });

    test('need the right to delete the named document alone', async () => {
      const email = `u${engine}@example.com`.toLowerCase();
      const account = { json: { email, password: 'a long enough password' }, anonymous: true };
      const registered = await server.send('POST', '/api/v1/auth/register', account);
      assert.equal(registered.status, 201, registered.body);
      const headers = { Authorization: `Bearer ${registered.json().token}` };
      const ticket = await make('tickets', { subject: 'theirs' });
      const comment = await make('comments', { text: 'x', ticketId: ticket });
      const as = { headers, anonymous: true };
      assert.equal((await remove(`comments/${comment}`, as)).status, 403);
      assert.equal((await remove(`tickets/${ticket}`, as)).status, 204);
      assert.ok(await isGone(`comments/${comment}`));
    });

    test('a bulk deletion takes the dependants of all, also where one named document follows another', async () => {
      const ticket = await make('tickets', { subject: 'a' });
      const child = await make('tickets', { subject: 'b', parentId: ticket });
      const other = await make('tickets', { subject: 'c' });
      const comments = [
        await make('comments', { text: 'x', ticketId: child }),
        await make('comments', { text: 'y', ticketId: other }),
      ];
      const ids = [ticket, child, other];
      const answer = await server.send('POST', '/api/v1/tickets/bulk-delete', { json: { ids } });
      assert.deepEqual([answer.status, answer.json()], [200, { deleted: 3 }]);
      for (const id of comments) assert.ok(await isGone(`comments/${id}`));
      assert.equal(await eventsOf('tickets.deleted', ids), 3);
    });

    test('never leave a document without the one that it refers to, however they race', async () => {
      for (let round = 0; round < races; round += 1) {
        const ticket = await make('tickets', { subject: `race ${round}` });
        await make('comments', { text: 'x', ticketId: ticket });
        const [removed, ...made] = await Promise.all([
          remove(`tickets/${ticket}`),
          ...[1, 2, 3].map((n) =>
            server.send('POST', '/api/v1/comments', { json: { text: `c${n}`, ticketId: ticket } }),
          ),
        ]);
        assert.equal(removed.status, 204, removed.body);
        for (const { status } of made) assert.ok(status === 201 || status === 422, String(status));
        assert.deepEqual(await idsOf(`comments?ticketId=${ticket}`), []);
      }
    });

    test(`${children} creates and deletions at once of what refers to one document lose no race`, async () => {
      const ticket = await make('tickets', { subject: 'crowded' });
      const half = Math.floor(children / 2);
      const old = await Promise.all(
        Array.from({ length: half }, (_, n) => make('comments', { text: `old ${n}`, ticketId: ticket })),
      );
      const create = (n: number) =>
        server.send('POST', '/api/v1/comments', { json: { text: `new ${n}`, ticketId: ticket } });
      const answers = await Promise.all(old.flatMap((id, n) => [create(n), remove(`comments/${id}`)]));
      const statuses = answers.map(({ status }) => status);
      assert.equal(statuses.filter((status) => status === 201).length, half, String(statuses));
      assert.equal(statuses.filter((status) => status === 204).length, half, String(statuses));
      assert.equal((await idsOf(`comments?ticketId=${ticket}`)).length, half);
      // The ticket goes while others are created and deleted.
      const left = await idsOf(`comments?ticketId=${ticket}`);
      const [removed, ...others] = await Promise.all([
        remove(`tickets/${ticket}`),
        ...left.flatMap((id, n) => [create(n), remove(`comments/${id}`)]),
      ]);
      for (const { status, body } of others)
        assert.ok(
          [201, 204, 404, 422].includes(status) ||
            (removed.status === 202 && body.includes('"deletion_running"')),
          `${status} ${body}`,
        );
      assert.ok(removed.status === 204 || removed.status === 202, removed.body);
      const location = String(removed.headers.location);
      if (removed.status === 202)
        await until(async () => (await server.send('GET', location)).status === 303);
      assert.ok(await isGone(`tickets/${ticket}`));
      assert.deepEqual(await idsOf(`comments?ticketId=${ticket}`), []);
    });

    test('go as deep as a unit has documents, and say so of a deeper chain', async () => {
      const chain = [await make('tickets', { subject: 'first' })];
      const lengthen = async (to: number) => {
        while (chain.length < to)
          chain.push(await make('tickets', { subject: 'next', parentId: chain.at(-1) }));
      };
      await lengthen(cascadeMax + 2);
      const [first = '', second = ''] = chain;
      const { headers } = await remove(`tickets/${first}`);
      const failed = await eventually(async () => {
        const { status, json } = await server.send('GET', String(headers.location));
        return status === 200 && json().status === 'failed' ? json() : undefined;
      });
      const outcome = failed.outcome as { code: string; error: string };
      assert.equal(outcome.code, 'dependants_exist');
      assert.match(outcome.error, /more than 20 references in a row \(COMITY_CASCADE_MAX\)/);
      assert.equal((await remove(`tickets/${second}`)).status, 204);
      assert.equal((await remove(`tickets/${first}`)).status, 204);
    });

    test('with as many dependants as a unit takes are one unit, and with more an operation', async () => {
      const fill = async (ticket: string, many: number) =>
        Promise.all(
          Array.from({ length: many }, (_, n) => make('comments', { text: `n${n}`, ticketId: ticket })),
        );
      const exact = await make('tickets', { subject: 'exact' });
      await fill(exact, cascadeMax);
      assert.equal((await remove(`tickets/${exact}`)).status, 204);
      const above = await make('tickets', { subject: 'one more' });
      await fill(above, cascadeMax + 1);
      const operation = await remove(`tickets/${above}`);
      assert.equal(operation.status, 202, operation.body);
      await until(async () => (await server.send('GET', String(operation.headers.location))).status === 303);
      assert.ok(await isGone(`tickets/${above}`));
      assert.deepEqual(await idsOf(`comments?ticketId=${above}`), []);
      const organisation = await make('organisations', { name: 'many' });
      const ticket = await make('tickets', { subject: 'many', organisationId: organisation });
      const comments = await fill(ticket, 2 * cascadeMax + 5);
      const accepted = await remove(`organisations/${organisation}`);
      assert.equal(accepted.status, 202, accepted.body);
      assert.equal(accepted.headers['preference-applied'], undefined);
      const location = String(accepted.headers.location);
      await until(async () => (await server.send('GET', location)).status === 303);
      assert.ok(await isGone(`organisations/${organisation}`));
      assert.ok(await isGone(`tickets/${ticket}`));
      assert.deepEqual(await idsOf(`comments?ticketId=${ticket}`), []);
      assert.equal(await eventsOf('comments.deleted', comments), comments.length);
    });
  });
}
