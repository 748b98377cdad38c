/**
 * Events (§2.6, §6): every write emits exactly one; the log as a list, one by one and as a stream that resumes; what anonymous
 * callers see of it.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import type { Answer } from '../../harness/exchange.ts';
import { serverOfFile, startServer } from '../../harness/running-server.ts';
import { valuesOf } from '../../harness/values-of.ts';
import { readEvents } from './event-reader.ts';

type Event = {
  readonly id: string;
  readonly object: string;
  readonly type: string;
  readonly created: number;
  readonly data: { readonly object: Record<string, unknown> };
};

const categories = '/api/v1/categories';
const events = '/api/v1/events';

const program = await serverOfFile({
  env: {
    COMITY_STREAM_HEARTBEAT_MS: '200',
    COMITY_STREAMS_MAX: '5',
  },
  // What administrators have beside it is a matter of test/wire/server/shares.test.ts.
  bounds: { streamsReservedMax: 0 },
});

const listed = (answer: Answer) => answer.json().items as Event[];

async function make(name = 'C'): Promise<{ path: string; id: string; etag: string }> {
  const answer = await program.send('POST', categories, { json: { name }, expect: 201 });
  return {
    path: String(answer.headers.location),
    id: String(answer.json().id),
    etag: String(answer.headers.etag),
  };
}

async function about(id: string): Promise<Event[]> {
  return listed(await program.send('GET', `${events}?data.object.id=${id}&limit=1000`));
}

test('each write emits one event in the envelope, with the resource as it was then', async () => {
  const { path, id } = await make('One');
  await program.send('PUT', path, { json: { name: 'Two' } });
  await program.send('PATCH', path, { json: { name: 'Three' } });
  await program.send('DELETE', path);
  const found = await about(id);
  assert.deepEqual(
    found.map(({ type, data }) => [type, data.object.name]),
    [
      ['categories.created', 'One'],
      ['categories.updated', 'Two'],
      ['categories.updated', 'Three'],
      ['categories.deleted', 'Three'],
    ],
  );
  for (const event of found) {
    assert.deepEqual(Object.keys(event), ['id', 'object', 'type', 'created', 'actor', 'requestId', 'data']);
    assert.match(event.id, /^evt_/);
    assert.equal(event.object, 'event');
    assert.ok(Number.isInteger(event.created));
    assert.ok(Math.abs(event.created - Date.now() / 1000) < 60);
    assert.equal(event.data.object.id, id);
  }
});

test('what writes nothing emits nothing: refusals, 304, reads', async () => {
  const { path, id, etag } = await make();
  await program.send('PATCH', path, { json: { name: 5 } });
  await program.send('PATCH', path, { json: { name: 'x' }, headers: { 'If-Match': '"0"' } });
  await program.send('PATCH', path, { json: { name: 'x' }, anonymous: true });
  await program.send('GET', path, { headers: { 'If-None-Match': etag } });
  await program.send('QUERY', categories, { json: {} });
  assert.equal((await about(id)).length, 1);
});

test('bulk-delete emits one event for each resource, and a soft deletion tells deletedAt', async () => {
  const [one, two] = [await make(), await make()];
  await program.send('POST', `${categories}/bulk-delete`, { json: { ids: [one.id, two.id, 'none'] } });
  for (const { id } of [one, two]) assert.equal((await about(id)).at(-1)?.type, 'categories.deleted');
  await program.send('PUT', 'articles/gone', { json: { title: 'T', published: true } });
  await program.send('DELETE', 'articles/gone', { headers: { 'If-Match': '*' } });
  const last = (await about('gone')).at(-1);
  assert.equal(last?.type, 'articles.deleted');
  assert.match(String(last?.data.object.deletedAt), /Z$/);
});

test('the log is a list like any other: filters, order, pages, one by one, conditional', async () => {
  const { id } = await make('Listed');
  const [created] = await about(id);
  assert.ok(created);
  const one = await program.send('GET', `${events}/${created.id}`, {
    expect: { status: 200, fields: { 'cache-control': /private/ }, json: created },
  });
  const same = await program.send('GET', `${events}/${created.id}`, {
    headers: { 'If-None-Match': String(one.headers.etag) },
  });
  assert.equal(same.status, 304);
  const newest = await program.send('GET', `${events}?order=desc&limit=1`);
  assert.equal(listed(newest)[0]?.id, created.id);
  const typed = await program.send('GET', `${events}?type=categories.deleted&limit=1000`);
  assert.ok(listed(typed).length > 0);
  assert.ok(listed(typed).every(({ type }) => type === 'categories.deleted'));
  const page = await program.send('GET', `${events}?limit=2`);
  const next = await program.send('GET', `${events}?limit=2&cursor=${page.json().nextCursor}`);
  assert.ok(String(listed(next)[0]?.id) > String(listed(page)[1]?.id));
  assert.equal((await program.send('GET', `${events}?colour=red`)).status, 400);
  assert.equal((await program.send('GET', `${events}/evt_none`)).status, 404);
  assert.equal((await program.send('DELETE', `${events}/${created.id}`)).status, 405);
});

test('the stream of everything is 200, never cached, and begins with what comes from now on', async () => {
  await make('Before');
  const reader = await readEvents(program.port);
  assert.equal(reader.response.statusCode, 200);
  assert.equal(reader.response.headers['content-type'], 'text/event-stream');
  assert.equal(reader.response.headers['cache-control'], 'no-store');
  assert.equal(reader.response.headers['content-length'], undefined);
  assert.equal(reader.response.headers['api-version'], '1');
  await reader.until(({ comments }) => comments.length > 0);
  const { id } = await make('Live');
  await reader.until((at) => at.events.length > 0);
  const [first] = reader.events;
  assert.equal(first?.event, 'categories.created');
  const event = JSON.parse(first?.data ?? '') as Event;
  assert.equal(event.data.object.id, id);
  assert.equal(first?.id, event.id);
  assert.deepEqual((await program.send('GET', `${events}/${event.id}`)).json(), event);
  reader.close();
});

test('a filter of the list is a filter of the stream, and a bad one is refused before it opens', async () => {
  const reader = await readEvents(program.port, { path: `${events}?type=notes.created` });
  await reader.until(({ comments }) => comments.length > 0);
  await make('Not asked for');
  await program.send('POST', 'notes', { json: { text: 'asked for' } });
  await reader.until((at) => at.events.length > 0);
  assert.equal(reader.events[0]?.event, 'notes.created');
  reader.close();
  const refused = await readEvents(program.port, { path: `${events}?colour=red` });
  assert.equal(refused.response.statusCode, 400);
  refused.close();
});

test('an unknown Last-Event-ID is answered with a reset, whose id resumes the stream', async () => {
  const reader = await readEvents(program.port, { lastEventId: 'evt_purged' });
  await reader.until((at) => at.events.length > 0);
  const [reset] = reader.events;
  assert.equal(reset?.event, 'reset');
  const told = JSON.parse(reset?.data ?? '').reset;
  assert.deepEqual([told.code, told.position], ['position_expired', reset?.id]);
  const { id } = await make('after the reset');
  const resumed = await readEvents(program.port, { lastEventId: reset?.id ?? '' });
  for (const each of [reader, resumed]) {
    await each.until((at) => at.events.some(({ data }) => data.includes(id)));
    each.close();
  }
  assert.deepEqual(valuesOf(resumed.events, 'id'), [reader.events[1]?.id]);
});

test('a silent stream has a comment every heartbeat', async () => {
  const reader = await readEvents(program.port);
  await reader.until(({ comments }) => comments.length >= 4);
  assert.equal(reader.events.length, 0);
  reader.close();
});

test('streams beyond the limit are 503 with Retry-After, and a client that leaves frees its stream', async () => {
  const readers = await Promise.all(Array.from({ length: 5 }, () => readEvents(program.port)));
  const refused = await readEvents(program.port);
  assert.equal(refused.response.statusCode, 503);
  assert.match(String(refused.response.headers['retry-after']), /^\d+$/);
  refused.close();
  readers[0]?.close();
  let status = 503;
  for (let tries = 0; status === 503 && tries < 200; tries += 1) {
    const again = await readEvents(program.port);
    status = again.response.statusCode ?? 0;
    again.close();
  }
  assert.equal(status, 200);
  for (const reader of readers) reader.close();
});

test('resuming from Last-Event-ID loses none and repeats none while 50 writers write', async () => {
  const head = listed(await program.send('GET', `${events}?order=desc&limit=1`))[0]?.id ?? '';
  const writers = 50;
  const writesEach = 12;
  let written = 0;
  const writing = Promise.all(
    Array.from({ length: writers }, async (_, writer) => {
      for (let index = 0; index < writesEach; index += 1) {
        await make(`w${writer}-${index}`);
        written += 1;
      }
    }),
  );
  const seen: string[] = [];
  const names = new Set<string>();
  let lastEventId = head;
  let connections = 0;
  while (seen.length < writers * writesEach) {
    const reader = await readEvents(program.port, { lastEventId });
    if (reader.response.statusCode !== 200) {
      reader.close();
      continue;
    }
    connections += 1;
    const wanted = Math.min(seen.length + 37, writers * writesEach) - seen.length;
    await reader.until((at) => at.events.length >= wanted);
    reader.close();
    for (const { id, data } of reader.events) {
      seen.push(id);
      names.add(String((JSON.parse(data) as Event).data.object.name));
      lastEventId = id;
    }
  }
  await writing;
  assert.equal(written, writers * writesEach);
  assert.ok(connections > 1);
  assert.equal(seen.length, writers * writesEach);
  assert.equal(new Set(seen).size, seen.length, 'none twice');
  assert.equal(names.size, writers * writesEach, 'none lost');
});

test('a reader whose link is slower than a batch is large gets every event all the same', async () => {
  const head = listed(await program.send('GET', `${events}?order=desc&limit=1`))[0]?.id ?? '';
  // 12 events of 900 kB: more than any socket takes at once, and far more than may wait for one reader.
  const body = `${'0123456789'.repeat(60_000)}${'😀'.repeat(75_000)}`;
  for (let index = 0; index < 12; index += 1) {
    const answer = await program.send('PUT', `articles/large-${index}`, { json: { title: 'L', body } });
    assert.equal(answer.status, 201, answer.body.slice(0, 200));
  }
  const reader = await readEvents(program.port, { lastEventId: head });
  reader.response.pause();
  // While the reader reads nothing, the sockets fill up; a heartbeat later the program has met the full socket.
  await new Promise((resolve) => setTimeout(resolve, 400));
  reader.response.resume();
  await reader.until((at) => at.events.length >= 12);
  for (const { data } of reader.events) assert.equal((JSON.parse(data) as Event).data.object.body, body);
  reader.close();
});

test('anonymous callers see what is public: no note, no draft, in the list, by id and in the stream', async () => {
  const reader = await readEvents(program.port, { anonymous: true });
  await reader.until(({ comments }) => comments.length > 0);
  const note = String((await program.send('POST', 'notes', { json: { text: 'secret' } })).json().id);
  await program.send('PUT', 'articles/draft', { json: { title: 'secret draft', published: false } });
  await program.send('PUT', 'articles/draft', {
    json: { title: 'now public', published: true },
    headers: { 'If-Match': '*' },
  });
  await program.send('PATCH', 'articles/draft', {
    json: { title: 'secret again', published: false },
    headers: { 'If-Match': '*' },
  });
  const { id } = await make('public');
  await reader.until((at) => at.events.some(({ data }) => data.includes(id)));
  reader.close();
  assert.deepEqual(
    reader.events.map(({ event, data }) => [event, (JSON.parse(data) as Partial<Event>).data?.object.title]),
    [
      ['articles.updated', 'now public'],
      ['left', undefined],
      ['categories.created', undefined],
    ],
  );
  const list = await program.send('GET', `${events}?limit=1000&order=desc`, {
    anonymous: true,
    headers: { Prefer: 'count=exact' },
  });
  assert.ok(!list.body.includes('secret'));
  assert.ok(!list.body.includes(note));
  const mine = await program.send('GET', `${events}?limit=1`, { headers: { Prefer: 'count=exact' } });
  assert.ok(Number(list.headers['x-total-count']) < Number(mine.headers['x-total-count']));
  const [hidden] = await about(note);
  assert.equal((await program.send('GET', `${events}/${hidden?.id}`)).status, 200);
  assert.equal((await program.send('GET', `${events}/${hidden?.id}`, { anonymous: true })).status, 404);
  const probed = await program.send('GET', `${events}?data.object.id=${note}`, { anonymous: true });
  assert.deepEqual(listed(probed), []);
});

test('a hidden Last-Event-ID tells an anonymous reader nothing', async () => {
  const note = String((await program.send('POST', 'notes', { json: { text: 'secret' } })).json().id);
  const [hidden] = await about(note);
  const { id } = await make('after the note');
  const reader = await readEvents(program.port, { anonymous: true, lastEventId: hidden?.id ?? '' });
  await reader.until((at) => at.events.length > 0);
  assert.ok(!reader.events.some(({ data }) => data.includes('secret')));
  await reader.until((at) => at.events.some(({ data }) => data.includes(id)));
  reader.close();
});

test('draining ends a stream properly, and the program stops', async () => {
  const other = await startServer();
  const reader = await readEvents(other.port);
  await reader.until(({ comments }) => comments.length > 0);
  await other.stop();
  assert.equal(await reader.ended, true);
});

test('a client that sends only half a goodbye frees its stream too', async () => {
  const socket = connect({ host: '127.0.0.1', port: program.port, allowHalfOpen: true });
  await once(socket, 'connect');
  socket.write(`GET ${events} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n`);
  await once(socket, 'data');
  socket.end();
  await once(socket, 'close');
});
