/** The inbox on both stores: who sees it, what may be changed, what was received, what was tried, and replays. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { Received } from '../../../src/model/received.ts';
import { engines } from '../../harness/stores.ts';
import { dropContent, type InboxRoom, logAttempts, openInbox, senderOf } from './walked-inbox.ts';

const senders = [
  senderOf('billing'),
  senderOf('forge', { kind: 'inbox' }),
  senderOf('partner', { kind: 'handler' }),
];
const mergePatch = { 'Content-Type': 'application/merge-patch+json' };
const jsonPatch = { 'Content-Type': 'application/json-patch+json' };

for (const [engine, open] of engines) {
  test(`the inbox on ${engine}`, async (context) => {
    const [store] = await open(context);
    const room = openInbox(store, { senders });
    for (const [title, run] of cases) await context.test(title, (inner) => run(room, inner));
  });
}

type Case = readonly [title: string, run: (room: InboxRoom, context: TestContext) => Promise<void>];

const cases: readonly Case[] = [
  [
    'is listed, queried and read by administrators alone',
    async (room) => {
      const { id } = await room.put({ type: 'only.here' });
      assert.equal((await room.ask('root', 'GET', `received/${id}`)).json.id, id);
      const listed = await room.ask('root', 'GET', 'received?type=only.here&sort=-id');
      assert.deepEqual(
        listed.json.items.map((item: Received) => item.id),
        [id],
      );
      const queried = await room.ask('root', 'QUERY', 'received', {
        json: { filter: { type: 'only.here' } },
      });
      assert.equal(queried.json.items.length, 1);
      for (const path of ['received', `received/${id}`, `received/${id}/body`, `received/${id}/attempts`]) {
        assert.equal((await room.ask('ada', 'GET', path)).status, 403, path);
        assert.equal((await room.ask(undefined, 'GET', path)).status, 401, path);
      }
      for (const path of ['received/replay', `received/${id}/replay`]) {
        assert.equal((await room.ask('ada', 'POST', path, { json: { filter: {} } })).status, 403, path);
      }
      assert.equal((await room.ask('ada', 'PATCH', `received/${id}`, { json: {} })).status, 403);
    },
  ],
  [
    'lists the newest first by sort=-id, in the order of receipt',
    async (room) => {
      const ids: string[] = [];
      for (let at = 0; at < 3; at += 1) ids.push((await room.put({ type: 'in.order' })).id);
      const { json } = await room.ask('root', 'GET', 'received?sort=-id&type=in.order');
      assert.deepEqual(
        json.items.map((item: Received) => item.id),
        ids.reverse(),
      );
    },
  ],
  [
    'takes no POST, PUT and DELETE',
    async (room) => {
      const { id } = await room.put();
      for (const [method, path] of [
        ['POST', 'received'],
        ['PUT', `received/${id}`],
        ['DELETE', `received/${id}`],
      ] as const) {
        assert.equal((await room.ask('root', method, path, { json: {} })).status, 405, `${method} ${path}`);
      }
      assert.equal((await room.ask('root', 'POST', 'received/bulk-delete', { json: {} })).status, 405);
    },
  ],
  [
    'is marked processed or failed by hand, which ends its being due',
    async (room) => {
      const { id } = await room.put({ lastError: 'thrown', attempts: 2 });
      const failed = await room.ask('root', 'PATCH', `received/${id}`, {
        json: { status: 'failed' },
        headers: mergePatch,
      });
      assert.deepEqual(
        [failed.status, failed.json.status, failed.json.dueAt, failed.json.lastError, failed.json.attempts],
        [200, 'failed', null, 'marked', 2],
      );
      const processed = await room.ask('root', 'PATCH', `received/${id}`, {
        json: [{ op: 'replace', path: '/status', value: 'processed' }],
        headers: jsonPatch,
      });
      assert.deepEqual([processed.json.status, processed.json.lastError], ['processed', null]);
      assert.deepEqual(await room.stored(id), processed.json);
    },
  ],
  [
    'keeps why a message failed where the mark says what stands',
    async (room) => {
      const { id } = await room.put({ status: 'failed', dueAt: null, lastError: 'timeout' });
      const { json } = await room.ask('root', 'PATCH', `received/${id}`, { json: { status: 'failed' } });
      assert.equal(json.lastError, 'timeout');
    },
  ],
  [
    'refuses to mark a message pending, and says what does that',
    async (room) => {
      const { id } = await room.put({ status: 'processed', dueAt: null });
      const { status, json } = await room.ask('root', 'PATCH', `received/${id}`, {
        json: { status: 'pending' },
      });
      assert.equal(status, 422);
      assert.deepEqual(json.errors, [
        {
          pointer: '/status',
          message: `cannot be set back to pending; POST to /api/v1/received/${id}/replay hands the message on again`,
        },
      ]);
      assert.equal((await room.stored(id)).status, 'processed');
    },
  ],
  [
    'refuses to change anything else, with 400, and says that status can be',
    async (room) => {
      const { id } = await room.put();
      for (const [name, value] of Object.entries({
        sender: 'forge',
        dedupeKey: 'x',
        type: null,
        receivedAt: '2026-01-01T00:00:00.000Z',
        attempts: 7,
        scheduledAttempts: 7,
        dueAt: null,
        lastError: 'x',
        contentType: null,
        contentLength: 9,
      })) {
        const { status, json } = await room.ask('root', 'PATCH', `received/${id}`, {
          json: { [name]: value },
        });
        assert.deepEqual([status, json.code], [400, 'field_unpatchable'], name);
        assert.deepEqual(json.errors, [
          { pointer: `/${name}`, message: 'is read-only; only status can be changed' },
        ]);
      }
      const made = await room.ask('root', 'PATCH', `received/${id}`, { json: { id: 'rec_x' } });
      assert.deepEqual([made.status, made.json.errors[0].message], [400, 'is assigned by the server']);
      const unknown = await room.ask('root', 'PATCH', `received/${id}`, { json: { status: 'lost' } });
      assert.deepEqual([unknown.status, unknown.json.code], [422, 'validation_failed']);
    },
  ],
  [
    'marks only what still stands where If-Match says so',
    async (room) => {
      const { id } = await room.put();
      const tag = String((await room.ask('root', 'GET', `received/${id}`)).field('ETag'));
      const headers = { 'If-Match': tag };
      const json = { status: 'processed' };
      assert.equal((await room.ask('root', 'PATCH', `received/${id}`, { json, headers })).status, 200);
      assert.equal((await room.ask('root', 'PATCH', `received/${id}`, { json, headers })).status, 412);
    },
  ],
  [
    'gives the octets back as they came, with their type and coding, and nothing that a browser would run',
    async (room) => {
      const octets = gzipSync(Buffer.alloc(20_000, 'a'));
      const { id } = await room.put(
        { contentType: 'text/html; charset=utf-8' },
        { contentType: 'text/html; charset=utf-8', contentEncoding: 'gzip', body: octets.toString('base64') },
      );
      const headers = { 'Accept-Encoding': 'br, gzip' };
      const body = await room.ask('root', 'GET', `received/${id}/body`, { headers });
      assert.equal(body.status, 200);
      assert(body.content.equals(octets));
      const fields = [
        ['Content-Type', 'text/html; charset=utf-8'],
        ['Content-Encoding', 'gzip'],
        ['Content-Disposition', `attachment; filename="${id}"`],
        ['Content-Security-Policy', "sandbox; default-src 'none'"],
        ['Cache-Control', 'private, no-cache, no-transform'],
      ] as const;
      for (const [name, value] of fields) assert.equal(body.field(name), value);
    },
  ],
  [
    'never codes the octets again that came without a coding, and calls them octets where nothing was said',
    async (room) => {
      const octets = Buffer.alloc(20_000, 0xff);
      const { id } = await room.put(
        { contentType: null },
        { contentType: null, body: octets.toString('base64') },
      );
      const headers = { 'Accept-Encoding': 'br' };
      const body = await room.ask('root', 'GET', `received/${id}/body`, { headers });
      assert(body.content.equals(octets));
      assert.equal(body.field('Content-Encoding'), undefined);
      assert.equal(body.field('Content-Type'), 'application/octet-stream');
      const tag = String(body.field('ETag'));
      const again = await room.ask('root', 'GET', `received/${id}/body`, {
        headers: { 'If-None-Match': tag },
      });
      assert.equal(again.status, 304);
      const empty = await room.put({}, { body: '' });
      const nothing = await room.ask('root', 'GET', `received/${empty.id}/body`);
      assert.deepEqual([nothing.status, nothing.content.length], [200, 0]);
    },
  ],
  [
    'answers 404 for a body that is gone, and for one that belongs to a later message under the same key',
    async (room) => {
      const gone = await room.put();
      await dropContent(room, gone);
      assert.equal((await room.ask('root', 'GET', `received/${gone.id}/body`)).status, 404);
      await room.put({ dedupeKey: gone.dedupeKey });
      assert.equal((await room.ask('root', 'GET', `received/${gone.id}/body`)).status, 404);
      assert.equal((await room.ask('root', 'GET', 'received/none/body')).status, 404);
    },
  ],
  [
    'shows the attempts of a message, oldest first, in pages',
    async (room) => {
      const { id } = await room.put({ attempts: 12 });
      await logAttempts(room, id, 12);
      const numbers = async (query: string) => {
        const { json } = await room.ask('root', 'GET', `received/${id}/attempts${query}`);
        return [json.items.map(({ number }: { number: number }) => number), json.nextCursor];
      };
      assert.deepEqual(await numbers('?limit=5'), [[1, 2, 3, 4, 5], '5']);
      assert.deepEqual(await numbers('?limit=7&cursor=5'), [[6, 7, 8, 9, 10, 11, 12], null]);
      const odd = await room.ask('root', 'GET', `received/${id}/attempts?sort=at`);
      assert.deepEqual([odd.status, odd.json.code], [400, 'query_parameter_invalid']);
      assert.equal((await room.ask('root', 'GET', 'received/none/attempts')).status, 404);
    },
  ],
  [
    'replays a message from every state: pending, due at once, with the whole schedule before it',
    async (room) => {
      for (const status of ['pending', 'processed', 'failed'] as const) {
        const { id } = await room.put({
          ...{ status, attempts: 9, scheduledAttempts: 9, dueAt: null, lastError: 'thrown' },
        });
        const before = room.clock();
        const { status: answered, json, field } = await room.ask('root', 'POST', `received/${id}/replay`);
        assert.deepEqual([answered, field('Location')], [202, `/api/v1/received/${id}`]);
        assert.deepEqual(
          [json.status, json.attempts, json.scheduledAttempts, json.lastError],
          ['pending', 9, 0, null],
        );
        assert(Date.parse(json.dueAt) >= before && Date.parse(json.dueAt) <= room.clock());
        assert.deepEqual(await room.stored(id), json);
      }
    },
  ],
  [
    'replays a message that only waits in the inbox without making it due',
    async (room) => {
      const { id } = await room.put({ sender: 'forge', status: 'processed', dueAt: null });
      const { json } = await room.ask('root', 'POST', `received/${id}/replay`, { json: {} });
      assert.deepEqual([json.status, json.dueAt], ['pending', null]);
    },
  ],
  [
    'refuses a replay of what is gone: the body, the sender, the message',
    async (room) => {
      const bare = await room.put({ status: 'failed' });
      await dropContent(room, bare);
      const orphan = await room.put({ sender: 'gone', status: 'failed' });
      const answers: string[] = [];
      for (const id of [bare.id, orphan.id, 'rec_none']) {
        const { status, json } = await room.ask('root', 'POST', `received/${id}/replay`);
        answers.push(`${status} ${json.code}`);
      }
      assert.deepEqual(answers, ['409 content_unavailable', '409 sender_unavailable', '404 not_found']);
      assert.equal((await room.stored(bare.id)).status, 'failed');
    },
  ],
  [
    'loses no replay when many are asked for at once',
    async (room) => {
      const { id } = await room.put({ status: 'failed' });
      const answers = await Promise.all(
        Array.from({ length: 6 }, () => room.ask('root', 'POST', `received/${id}/replay`)),
      );
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([202]));
    },
  ],
  [
    'replays by query in the order of receipt, and goes on behind the last one',
    async (room) => {
      const mine = { type: 'batch.one', status: 'failed', dueAt: null } as const;
      const messages: Received[] = [];
      for (let at = 0; at < 5; at += 1) messages.push(await room.put(mine));
      const others = await room.put({ ...mine, status: 'processed' });
      const filter = { type: 'batch.one', status: 'failed' };
      const replay = async (json: object) =>
        (await room.ask('root', 'POST', 'received/replay', { json })).json;
      const dry = await replay({ filter, dryRun: true });
      assert.deepEqual(dry, { dryRun: true, replayed: 5, skipped: 0, more: false, lastId: null });
      assert.equal((await room.stored(messages[0]?.id ?? '')).status, 'failed');
      const first = await replay({ filter, limit: 3 });
      assert.deepEqual(first, {
        ...{ dryRun: false, replayed: 3, skipped: 0, more: true, lastId: messages[2]?.id },
      });
      const rest = await replay({ filter: { and: [filter, { id: { gt: first.lastId } }] } });
      assert.deepEqual([rest.replayed, rest.more, rest.lastId], [2, false, messages[4]?.id]);
      for (const { id } of messages) {
        const { status, dueAt } = await room.stored(id);
        assert.deepEqual([status, dueAt === null], ['pending', false]);
      }
      assert.equal((await room.stored(others.id)).status, 'processed');
      const none = await replay({ filter });
      assert.deepEqual([none.replayed, none.more, none.lastId], [0, false, null]);
    },
  ],
  [
    'passes over what cannot be replayed, and counts it',
    async (room) => {
      const mine = { type: 'batch.two', status: 'failed', dueAt: null } as const;
      const bare = await room.put(mine);
      await dropContent(room, bare);
      const good = await room.put(mine);
      const orphan = await room.put({ ...mine, sender: 'gone' });
      const { json } = await room.ask('root', 'POST', 'received/replay', {
        json: { filter: { type: 'batch.two' } },
      });
      assert.deepEqual([json.replayed, json.skipped, json.lastId], [1, 2, orphan.id]);
      assert.deepEqual(
        [(await room.stored(bare.id)).status, (await room.stored(good.id)).status],
        ['failed', 'pending'],
      );
    },
  ],
  [
    'replays across more than one unit of messages',
    async (room) => {
      const count = 203;
      const mine = { type: 'batch.three', status: 'failed', dueAt: null } as const;
      await Promise.all(Array.from({ length: count }, () => room.put(mine)));
      const json = { filter: { type: 'batch.three', status: 'failed' } };
      const { json: done } = await room.ask('root', 'POST', 'received/replay', { json });
      assert.deepEqual([done.replayed, done.more], [count, false]);
      const left = await room.ask('root', 'POST', 'received/replay', { json: { ...json, dryRun: true } });
      assert.equal(left.json.replayed, 0);
    },
  ],
  [
    'puts back as many by one request as the setting allows, and says that there are more',
    async (room) => {
      const bounded = openInbox(room.store, { senders, settings: { receivedReplayMax: 2 } });
      for (let at = 0; at < 3; at += 1) await room.put({ type: 'batch.four', status: 'failed' });
      const replay = async (json: object) =>
        (
          await bounded.ask('root', 'POST', 'received/replay', {
            json: { filter: { type: 'batch.four' }, ...json },
          })
        ).json;
      assert.equal((await replay({ dryRun: true })).replayed, 3);
      const { replayed, more } = await replay({ limit: 1000 });
      assert.deepEqual([replayed, more], [2, true]);
    },
  ],
  [
    'refuses a replay by query that says nothing, or nothing sensible',
    async (room) => {
      const answers: string[] = [];
      for (const json of [
        {},
        { filter: null },
        { filter: { nobody: 1 } },
        { filter: { attempts: { gte: 'x' } } },
        { filter: {}, q: 'words' },
        { filter: {}, limit: 0 },
        { filter: {}, limit: 1_000_001 },
        { filter: {}, sort: ['id'] },
      ]) {
        const { status, json: body } = await room.ask('root', 'POST', 'received/replay', { json });
        answers.push(`${status} ${body.code}`);
      }
      assert.deepEqual(answers, [
        '400 field_missing',
        '422 validation_failed',
        '422 query_unprocessable',
        '422 query_unprocessable',
        '422 query_unprocessable',
        '422 validation_failed',
        '422 validation_failed',
        '422 validation_failed',
      ]);
    },
  ],
];

test('leaves out a message that is marked by hand while a replay by query looks at it', async (context) => {
  const [, open] = engines[0] ?? assert.fail();
  const [store] = await open(context);
  const mine = { type: 'raced', status: 'failed', dueAt: null } as const;
  const plain = openInbox(store, { senders });
  const [one, other] = [await plain.put(mine), await plain.put(mine)];
  let isMarked = false;
  const racing = openInbox(
    {
      ...store,
      commit: async (unit) => {
        if (!isMarked && unit.changes.some(({ id }) => id === one.id)) {
          isMarked = true;
          const marked = await plain.ask('root', 'PATCH', `received/${one.id}`, {
            json: { status: 'processed' },
          });
          assert.equal(marked.status, 200);
        }
        return store.commit(unit);
      },
    },
    { senders },
  );
  const { json } = await racing.ask('root', 'POST', 'received/replay', {
    json: { filter: { type: 'raced', status: 'failed' } },
  });
  assert.deepEqual([json.replayed, json.skipped], [1, 1]);
  assert.equal((await plain.stored(one.id)).status, 'processed');
  assert.equal((await plain.stored(other.id)).status, 'pending');
});
