/** Operations that take content as it arrives: when it is opened, what a refusal before that costs, keys, codings, and what is discarded. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { after, test } from 'node:test';
import { fingerprintOf } from '../../src/kernel/idempotency.ts';
import type { Ask, Made, Operation, Receiving, Resource, Standing } from '../../src/kernel/resource.ts';
import { openEmbedded } from '../harness/stores.ts';
import { exchange, roomOf, type Served, serve, surround } from '../harness/walked-resources.ts';
import { askOf } from '../resources/ask.ts';
import { openRaw, type RawAnswer } from '../wire/server/raw-client.ts';

const store = await openEmbedded();
const surroundings = surround(store);

/** What the operation did, in order. */
const did: string[] = [];
let units = 0;

type Held = { readonly content: Receiving; text?: string };

/** `/files/NAME`: `missing` and `locked` say what they are; every other exists, with the tag `1`. */
const file: Operation<Standing, Held> = {
  permission: () => 'granted',
  raw: true,
  matchRequired: true,
  idempotent: true,
  receivedBytesMax: 1_000,
  async receive(_ask, content) {
    const held: Held = { content };
    if (content.isDueNow) await take(held);
    return { ok: true, value: held };
  },
  discard: (held) => void did.push(`discard ${held.text ?? 'unread'}`),
  standing: ({ captures: [name = ''] }) => ({
    exists: name !== 'missing',
    visible: true,
    permitted: name !== 'locked',
  }),
  async propose(_ask, _standing, held) {
    assert.ok(held);
    await take(held);
    if (held.text === 'bad') return { problem: { code: 'validation_failed' } };
    return { problem: null, ...held };
  },
  validators: () => ({ tag: '1', modifiedAt: null }),
  act,
};

async function take(held: Held): Promise<void> {
  if (held.text !== undefined) return;
  did.push('open');
  const chunks: Uint8Array[] = [];
  for await (const chunk of await held.content.open()) chunks.push(Buffer.from(chunk));
  held.text = Buffer.concat(chunks).toString();
}

async function act({ now, companions }: Ask) {
  const made: Made = {
    outcome: 'made',
    ...{ created: false, location: null, modifiedAt: now, validated: false },
    doc: JSON.stringify({ units }),
  };
  units += 1;
  const changes = companions.map((companion) => companion(made));
  if (changes.length > 0) await store.commit({ changes, events: [] });
  return { made, rev: 1 };
}

const { raw: _, matchRequired: __, ...plain } = file;
/** Forms are read whole, images as they arrive. */
const image: Operation<Standing, Held> = {
  ...plain,
  contentTypes: ['image/png', 'application/json'],
  asynchronous: true,
  receives: ({ type }) => type === 'image/png',
  understand: (_ask, bytes) => ({
    ok: true,
    value: { content: { open: () => assert.fail(), isDueNow: false }, text: `whole ${bytes.length}` },
  }),
};

const resourceOf = (pattern: string, method: string, operation: Operation<Standing, Held>): Resource => ({
  pattern,
  operations: new Map([[method, operation]]),
  constantFields: [],
  offers: ['application/json'],
});
const room = roomOf(surroundings, [
  resourceOf('/files/{name}', 'PUT', file),
  resourceOf('/images', 'POST', image),
]);
const served: Served = await serve(room);
after(() => served.stop());

async function put(name: string, fields: readonly string[], body = 'hello'): Promise<RawAnswer> {
  did.length = 0;
  const client = await openRaw(served.port);
  const lines = [`PUT /files/${name} HTTP/1.1`, 'Host: a', `Content-Length: ${body.length}`, ...fields];
  client.send(`${lines.join('\r\n')}\r\n\r\n`);
  let answer: RawAnswer;
  if (fields.includes('Expect: 100-continue')) {
    answer = await client.answer();
    if (answer.status === 100) answer = await client.send(body).answer();
  } else answer = await client.send(body).answer();
  client.destroy();
  return answer;
}

const waits = 'Expect: 100-continue';

test('opens the content only when the state and the preconditions allow the change', async () => {
  for (const [name, fields, status] of [
    ['missing', [], 404],
    ['locked', [], 401],
    ['a', [], 428],
    ['a', ['If-Match: "2"'], 412],
    ['a', ['If-Match: "1"', 'If-None-Match: *'], 412],
  ] as const) {
    const answer = await put(name, [waits, ...fields]);
    assert.deepEqual([answer.status, did], [status, ['discard unread']], `${name} ${fields.join()}`);
  }
  const answer = await put('a', [waits, 'If-Match: "1"']);
  assert.deepEqual([answer.status, did], [200, ['open']]);
});

test('refuses what the operation finds in the content, and discards it', async () => {
  const answer = await put('a', ['If-Match: "1"'], 'bad');
  assert.deepEqual([answer.status, did], [422, ['open', 'discard bad']]);
});

test('refuses content beyond the limit, announced or not', async () => {
  const most = await put('a', ['If-Match: "1"'], 'x'.repeat(1_000));
  assert.equal(most.status, 200);
  const announced = await put('a', [waits, 'If-Match: "1"'], 'x'.repeat(1_001));
  assert.deepEqual([announced.status, did], [413, []]);
  did.length = 0;
  const client = await openRaw(served.port);
  client.send('PUT /files/a HTTP/1.1\r\nHost: a\r\nIf-Match: "1"\r\nTransfer-Encoding: chunked\r\n\r\n');
  client.send(`3e9\r\n${'x'.repeat(1_001)}\r\n`);
  assert.deepEqual([(await client.answer()).status, did], [413, ['open', 'discard unread']]);
  client.destroy();
});

test('refuses every content coding of content that arrives, and says so', async () => {
  const answer = await put('a', [waits, 'If-Match: "1"', 'Content-Encoding: gzip']);
  assert.deepEqual([answer.status, answer.fields.get('accept-encoding'), did], [415, 'identity', []]);
  assert.equal((await put('a', ['If-Match: "1"', 'Content-Encoding: identity'])).status, 200);
});

test('a key names all of the content: it is read before the key is judged, and a replay discards it', async () => {
  const fields = ['If-Match: "1"', 'Idempotency-Key: "k1"'];
  const first = await put('a', fields);
  assert.deepEqual([first.status, did], [200, ['open']]);
  const again = await put('a', fields);
  assert.deepEqual([again.status, again.body, did], [200, first.body, ['open', 'discard hello']]);
  assert.equal((await put('a', fields, 'other')).status, 422);
});

test('the fingerprint of content that arrived is that of its octets', async () => {
  const ask = askOf({});
  const bytes = Buffer.from('hello');
  assert.equal(fingerprintOf(ask, hash('sha256', bytes, 'hex')), fingerprintOf(ask, bytes));
});

test('an operation takes some types as they arrive and others whole', async () => {
  const post = (type: string, body: string, more: readonly string[] = []) => {
    did.length = 0;
    const fields = ['Content-Type', type, ...more];
    return exchange(room, { method: 'POST', target: '/images', fields, body });
  };
  assert.equal((await post('image/png', 'png')).status, 200);
  assert.deepEqual(did, ['open']);
  assert.equal((await post('application/json', '{}')).status, 200);
  assert.deepEqual(did, []);
  // What arrives is not stored for later.
  assert.equal((await post('image/png', 'png', ['Prefer', 'respond-async'])).status, 200);
  assert.equal((await post('application/json', '{}', ['Prefer', 'respond-async'])).status, 202);
});
