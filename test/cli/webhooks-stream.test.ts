/** How `comity listen` reads a stream of events, and goes on where it broke. The whole command is tested in webhooks.test.ts. */
import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { after, test } from 'node:test';
import { startReceiver } from '../../examples/receiver/start-receiver.ts';
import { pastTime } from '../../src/cli/option-values.ts';
import { followEvents, forwardEvent, readEventStream } from '../../src/cli/remote/listen.ts';
import { withMember } from '../../src/cli/remote/outgoing-commands.ts';
import { openServer } from '../../src/cli/server-client.ts';
import { openTerminal } from '../../src/cli/terminal.ts';
import { schemes } from '../../src/model/endpoint.ts';
import { listen } from '../harness/listening.ts';

async function collect<T>(values: AsyncIterable<T>): Promise<readonly T[]> {
  const collected: T[] = [];
  for await (const value of values) collected.push(value);
  return collected;
}

async function eventsIn(pieces: readonly string[]) {
  const encoder = new TextEncoder();
  const content = ReadableStream.from(pieces.map((piece) => encoder.encode(piece)));
  return collect(readEventStream(content as ReadableStream<Uint8Array>));
}

test('reads events whichever way their lines end and however they are cut into pieces', async () => {
  const text =
    ': hello\n\nid: 1\nevent: a.b\ndata: {"x":\ndata:1}\n\n:\n\nid: 2\ndata: two\n\nid: 3\nevent: lost\n';
  const wanted = [
    { id: '1', type: 'a.b', data: '{"x":\n1}' },
    { id: '2', type: '', data: 'two' },
  ];
  for (const end of ['\n', '\r\n', '\r']) {
    const written = text.replaceAll('\n', end);
    assert.deepEqual(await eventsIn([written]), wanted);
    assert.deepEqual(await eventsIn([...written]), wanted);
  }
});

test('takes a byte order mark and a character in two pieces', async () => {
  const octets = new TextEncoder().encode('\u{feff}data: Käse\n\n');
  const pieces = [octets.slice(0, 11), octets.slice(11)];
  const content = ReadableStream.from(pieces) as ReadableStream<Uint8Array>;
  assert.deepEqual(await collect(readEventStream(content)), [{ id: '', type: '', data: 'Käse' }]);
});

test('puts members into a sample, at any depth', () => {
  const sample = { price: 1, customer: { name: 'Ada', tags: ['a'] } };
  assert.deepEqual(withMember(sample, 'price=10.5'), { ...sample, price: 10.5 });
  assert.deepEqual(withMember(sample, 'customer.name=Grace = Hopper'), {
    ...sample,
    customer: { tags: ['a'], name: 'Grace = Hopper' },
  });
  assert.deepEqual(withMember(sample, 'price.amount={"x":[1]}'), {
    ...sample,
    price: { amount: { x: [1] } },
  });
  assert.deepEqual(Object.keys(withMember({}, '__proto__=1')), ['__proto__']);
  for (const bad of ['price', '=1', 'a..b=1', '.a=1'])
    assert.throws(() => withMember({}, bad), /--set must be/);
});

test('understands how long ago, and times', () => {
  const now = Date.parse('2026-11-21T12:00:00Z');
  for (const [written, meant] of [
    ['2h', '2026-11-21T10:00:00.000Z'],
    ['90s', '2026-11-21T11:58:30.000Z'],
    ['30m', '2026-11-21T11:30:00.000Z'],
    ['7d', '2026-11-14T12:00:00.000Z'],
    ['2026-11-01', '2026-11-01T00:00:00.000Z'],
  ] as const)
    assert.equal(pastTime('--since', written, now), meant);
  for (const bad of ['', '2', '0h', 'h', '2w', 'soon', '12-31', '2026-13-01']) {
    assert.throws(() => pastTime('--since', bad, now), /^CommandFailure: --since must be like 2h/);
  }
});

test('signs what it forwards as the sender does, in each scheme', async (t) => {
  const secret = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;
  const receiver = await startReceiver({ secrets: [secret] });
  t.after(() => receiver.close());
  const data =
    '{"id":"evt_1","object":"event","type":"a.b","created":1795255452,"data":{"object":{"x":"}}"}}}';
  const event = { id: 'evt_1', type: 'a.b', data };
  for (const scheme of schemes) {
    const target = new URL(`${receiver.url}/ok/${scheme}`);
    const { status, error } = await forwardEvent(event, { target, scheme, secret });
    assert.deepEqual([status, error], [204, null]);
    const came = receiver.received.at(-1);
    assert.deepEqual([came?.scheme, came?.type, came?.verdict], [scheme, 'a.b', 'verified']);
    const standard = '{"type":"a.b","timestamp":"2026-11-21T10:04:12.000Z","data":{"x":"}}"}}';
    assert.equal(came?.body, scheme === 'standard' ? standard : data);
  }
  const target = new URL(`${receiver.url}/redirect`);
  assert.equal((await forwardEvent(event, { target, scheme: 'plain', secret })).status, 302);
  await receiver.close();
  const gone = await forwardEvent(event, { target, scheme: 'plain', secret });
  assert.equal(gone.status, null);
  assert.match(gone.error ?? '', /^(ECONNREFUSED|ECONNRESET|UND_ERR_SOCKET)$/);
});

/** Answers `GET /events` as a test says, and tells with which Last-Event-ID it was asked. */
type Step = (response: ServerResponse) => void;
const asked: (string | undefined)[] = [];
let steps: Step[] = [];
const server = createServer((request: IncomingMessage, response: ServerResponse) => {
  if (request.headers.accept !== 'text/event-stream') {
    response.end(JSON.stringify({ items: [], nextCursor: 'e0' }));
    return;
  }
  asked.push(request.headers['last-event-id'] as string | undefined);
  steps.shift()?.(response);
});

const stream = (text: string, close = true): Step => {
  return (response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(text);
    if (close) response.end();
  };
};

const { url } = await listen(server, { after });

function follow(since?: string) {
  asked.length = 0;
  const stop = new AbortController();
  const breaks: string[] = [];
  const client = openServer(openTerminal({ COMITY_KEY: 'sk_x', COMITY_URL: url }, process), {}, 'webhooks');
  const events = followEvents(client, {
    since,
    signal: stop.signal,
    pauseMsMin: 10,
    onOpen: () => undefined,
    onBreak: (reason) => void breaks.push(reason),
  });
  return { events, stop, breaks };
}

test('goes on behind the last event when the stream breaks', async () => {
  steps = [
    stream('id: e1\nevent: a\ndata: {}\n\n'),
    (response) => response.writeHead(503).end('{"error":"overloaded"}'),
    (response) => void response.destroy(),
    stream('id: e2\nevent: a\ndata: {}\n\n', false),
  ];
  const { events, stop, breaks } = follow();
  const ids: string[] = [];
  for await (const { id } of events) {
    ids.push(id);
    if (id === 'e2') stop.abort();
  }
  assert.deepEqual(ids, ['e1', 'e2']);
  assert.deepEqual(asked, [undefined, 'e1', 'e1', 'e1']);
  assert.deepEqual(breaks.slice(0, 2), ['the server ended the stream', 'overloaded']);
  assert.match(breaks[2] ?? '', /cannot be reached/);
});

test('misses nothing when the stream breaks before the first event', async () => {
  steps = [stream(': nothing yet\n\n'), stream('id: e1\ndata: {}\n\n', false)];
  const { events, stop } = follow();
  for await (const { id } of events) if (id === 'e1') stop.abort();
  assert.deepEqual(asked, [undefined, 'e0']);
});

test('gives up where the server refuses, then and later', async () => {
  steps = [(response) => response.writeHead(401).end('{"error":"invalid API key"}')];
  const first = follow('e5');
  await assert.rejects(collect(first.events), /does not accept the key in COMITY_KEY/);
  assert.deepEqual([asked, first.breaks], [['e5'], []]);
  steps = [stream('id: e6\ndata: {}\n\n'), (response) => response.writeHead(401).end('{"error":"x"}')];
  const later = follow('e5');
  await assert.rejects(collect(later.events), /does not accept the key in COMITY_KEY/);
  assert.deepEqual([asked, later.breaks.length], [['e5', 'e6'], 1]);
});
