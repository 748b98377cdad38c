/** `afterRead` over the wire, on both stores: wherever a document is shown, for each caller. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import { type Answer, adminKey } from '../../harness/exchange.ts';
import { type RunningServer, serverOfFile } from '../../harness/running-server.ts';
import { until } from '../../harness/until.ts';
import { openRealtime } from '../realtime/realtime-client.ts';

const config = fileURLToPath(new URL('./fixtures/reads.config.ts', import.meta.url));
const anonymous = { anonymous: true } as const;

describeOnEachStore('afterRead', async (engine) => {
  const server = await serverOfFile({ config, engine });
  const send = (
    method: string,
    path: string,
    options: Parameters<RunningServer['send']>[2] = {},
  ): Promise<Answer> => server.send(method, `/api/v1/${path}`, options);
  const create = (first: string): Promise<Answer> =>
    send('POST', 'people', { json: { first, last: 'Lovelace', salary: 10, secret: 'x' } });
  const itemsOf = (answer: Answer) => answer.json().items as readonly Record<string, unknown>[];

  test('changes reads, lists, queries, selections and results of writes', async () => {
    const made = await create('Ada');
    assert.equal(made.status, 201);
    const { id } = made.json();
    assert.notEqual(id, 'other', 'the server sets the id');
    assert.equal(made.json().name, 'Ada Lovelace');
    assert.equal(made.json().salary, 10);
    const mine = (await send('GET', `people/${id}`)).json();
    assert.deepEqual([mine.name, mine.salary, mine.secret], ['Ada Lovelace', 10, 'x']);
    const theirs = (await send('GET', `people/${id}`, anonymous)).json();
    assert.deepEqual([theirs.name, theirs.salary, theirs.secret], ['Ada Lovelace', undefined, undefined]);
    assert.equal(theirs.id, id);
    assert.equal(theirs.createdAt, mine.createdAt);
    for (let round = 0; round < 3; round += 1) {
      const [own] = itemsOf(await send('GET', 'people?first=Ada'));
      const [other] = itemsOf(await send('GET', 'people?first=Ada', anonymous));
      assert.deepEqual([own?.salary, other?.salary], [10, undefined]);
      assert.equal(other?.name, 'Ada Lovelace');
    }
    const added = await send('GET', `people/${id}?fields=first,name`);
    assert.equal(added.status, 400, 'a member that only the hook adds cannot be selected');
    const headers = { 'Content-Type': 'application/json' };
    const body = '{"filter":{"salary":10},"fields":["first","salary"]}';
    const [found] = itemsOf(await send('QUERY', 'people', { body, headers, ...anonymous }));
    assert.deepEqual(found, { first: 'Ada' });
    const patched = await send('PATCH', `people/${id}`, {
      body: '{"last":"Byron"}',
      headers: { 'Content-Type': 'application/merge-patch+json' },
    });
    assert.deepEqual([patched.status, patched.json().name], [200, 'Ada Byron']);
  });

  test('gives each content an entity tag of its own, which a change accepts', async () => {
    const { id } = (await create('Grace')).json();
    const [mine, theirs] = [await send('GET', `people/${id}`), await send('GET', `people/${id}`, anonymous)];
    assert.notEqual(mine.headers.etag, theirs.headers.etag);
    assert.match(String(mine.headers['cache-control']), /private/);
    const same = await send('GET', `people/${id}`, {
      ...anonymous,
      headers: { 'If-None-Match': String(theirs.headers.etag) },
    });
    assert.equal(same.status, 304);
    const changed = await send('PATCH', `people/${id}`, {
      body: '{"salary":11}',
      headers: {
        'Content-Type': 'application/merge-patch+json',
        'If-Match': String(mine.headers.etag),
      },
    });
    assert.equal(changed.status, 200);
  });

  test('changes events, as a list and as a stream', async () => {
    const { id } = (await create('Joan')).json();
    const listed = itemsOf(await send('GET', 'events?type=people.created&limit=1000', anonymous));
    const objects = listed.map((event) => (event.data as { object: Record<string, unknown> }).object);
    const object = objects.find((each) => each.id === id);
    assert.deepEqual([object?.name, object?.salary], ['Joan Lovelace', undefined]);
  });

  test('a hook that throws, or returns no document, is a 500 with its words in the log', async () => {
    const { id } = (await create('shy')).json();
    assert.equal((await send('GET', `people/${id}`)).status, 200);
    assert.equal((await send('GET', `people/${id}`, anonymous)).status, 500);
    assert.equal((await send('GET', 'people', anonymous)).status, 500);
    assert.equal((await send('DELETE', `people/${id}`)).status, 204);
    for (const [first, told] of [
      ['throws', /the hook afterRead of people failed: the read broke/],
      [
        'promise',
        /afterRead of people must return the document, not a promise of it: it must be synchronous/,
      ],
      ['undefined', /afterRead of people must return the document, not undefined/],
      ['list', /afterRead of people must return the document, not a list/],
      ['text', /afterRead of people must return the document, not a string/],
      ['circular', /afterRead of people returned what is not JSON: Converting circular structure/],
      ['bigint', /afterRead of people returned what is not JSON: .*BigInt/],
    ] as const) {
      const made = await create(first);
      assert.equal(made.status, 500);
      assert.match(server.logOf(made), told);
      const written = await send('GET', `people?first=${first}`);
      assert.deepEqual(itemsOf(written), [], 'nothing is written');
    }
  });

  test('changes what a WebSocket gets, for each caller', async () => {
    const sockets = await Promise.all(
      [{ Authorization: `Bearer ${adminKey}` }, {}].map((headers) => openRealtime(server.port, { headers })),
    );
    for (const socket of sockets) {
      socket.say({ subscribe: ['people.*'] });
      await socket.saw((frame) => 'subscribed' in frame);
    }
    const { id } = (await create('Edith')).json();
    const objects = await Promise.all(
      sockets.map(async (socket) => {
        const frame = await socket.saw((each) => JSON.stringify(each).includes(String(id)));
        return (frame as { event: { data: { object: Record<string, unknown> } } }).event.data.object;
      }),
    );
    assert.deepEqual(
      objects.map(({ name, salary }) => [name, salary]),
      [
        ['Edith Lovelace', 10],
        ['Edith Lovelace', undefined],
      ],
    );
    for (const socket of sockets) socket.end();
  });

  test('a stream goes on where a hook throws, without the members of the resource', async () => {
    const answer = await fetch(`${server.url}/api/v1/events`, { headers: { Accept: 'text/event-stream' } });
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    const reading = (async () => {
      for (let piece = await reader?.read(); piece?.done === false; piece = await reader?.read())
        text += piece.value;
    })().catch(() => undefined);
    await send('POST', 'people', { json: { first: 'shy', last: 'silent', salary: 1 } });
    await send('POST', 'people', { json: { first: 'Last', last: 'seen', salary: 1 } });
    await until(() => text.includes('Last seen'));
    assert.ok(!text.includes('silent'));
    assert.match(server.stderr(), /an event was sent without its members/);
    await reader?.cancel();
    await reading;
  });
});
