/** What one attempt sends: the body and the header fields of each scheme, and what is not sent at all. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StoreUnavailable } from '../../../src/store/store.ts';
import { createEventSource } from '../../../src/webhooks/sending/sent-event.ts';
import { startDeliveryReceiver } from '../../harness/delivery-receiver.ts';
import { servicesOver } from '../../harness/services-over.ts';
import { openEmbedded } from '../../harness/stores.ts';
import { claimOf, current, previous, startSender } from './fixture.ts';

const object = '{"id":"prd_1","name":"Käse"}';

const store = await openEmbedded();
const { url: origin, received } = await startDeliveryReceiver();
const url = new URL('/hooks', origin);
const sender = await startSender(store);
const { clock, post } = sender;
clock.now = Date.UTC(2030, 0, 2, 3, 4, 5, 678);
const eventId = await post(object);

async function sent(given: Partial<Parameters<typeof claimOf>[0]>, by = sender) {
  const count = received.length;
  const { outcome } = await by.send(claimOf({ scheme: 'standard', url, eventId, ...given }));
  const last = received.at(-1);
  if (last === undefined || received.length === count) return { outcome, text: '', headers: {}, names: [] };
  const names = last.rawHeaders.filter((_text, index) => index % 2 === 0);
  return { outcome, text: last.body.toString(), headers: last.headers, names };
}

test('timestamped and plain send the event as it is stored', async () => {
  const created = Date.UTC(2030, 0, 2, 3, 4, 5) / 1000;
  const stored = `{"id":"${eventId}","object":"event","type":"products.created","created":${created},"data":{"object":${object}}}`;
  for (const scheme of ['timestamped', 'plain'] as const) assert.equal((await sent({ scheme })).text, stored);
});

test('standard sends type, time and the resource itself (§2.7)', async () => {
  const { text } = await sent({});
  assert.equal(text, `{"type":"products.created","timestamp":"2030-01-02T03:04:05.678Z","data":${object}}`);
});

test('each scheme has its own fields and those of all, and no others', async () => {
  const common = ['Host', 'Content-Length', 'Content-Type', 'User-Agent'];
  const own = {
    timestamped: ['Service-Signature'],
    plain: ['X-Hub-Signature-256', 'X-Service-Event', 'X-Service-Delivery'],
    standard: ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
  };
  for (const [scheme, names] of Object.entries(own) as [keyof typeof own, string[]][]) {
    const { headers, names: came } = await sent({ scheme });
    assert.deepEqual(came, [...common, ...names, 'Connection']);
    assert.equal(headers['content-type'], 'application/json');
    assert.equal(headers['user-agent'], 'Comity/1.2.3');
  }
  const plain = await sent({ scheme: 'plain' });
  assert.equal(plain.headers['x-service-event'], 'products.created');
  assert.equal(plain.headers['x-service-delivery'], 'dlv_1');
  const standard = await sent({});
  assert.equal(standard.headers['webhook-id'], eventId);
  assert.equal(standard.headers['webhook-timestamp'], String(Math.floor(clock.now / 1000)));
  assert.match(String(standard.headers['webhook-signature']), /^v1,[\w+/]{43}= v1a,[\w+/]{86}==$/);
});

test('v1a is signed for endpoints that want it, and for those that say nothing', async () => {
  const both = /^v1,[\w+/]{43}= v1a,[\w+/]{86}==$/;
  assert.match(String((await sent({})).headers['webhook-signature']), both);
  const asked = await sent({ signatures: ['v1a', 'v1'] });
  assert.match(String(asked.headers['webhook-signature']), both);
  const one = await sent({ signatures: ['v1'] });
  assert.match(String(one.headers['webhook-signature']), /^v1,[\w+/]{43}=$/);
});

test('each attempt has the same body and id, and a fresh time and signature', async () => {
  for (const scheme of ['standard', 'timestamped'] as const) {
    const first = await sent({ scheme });
    clock.now += 3_600_000;
    const second = await sent({ scheme });
    assert.equal(second.text, first.text);
    assert.equal(second.headers['webhook-id'], first.headers['webhook-id']);
    const field = scheme === 'standard' ? 'webhook-signature' : 'service-signature';
    assert.notEqual(second.headers[field], first.headers[field]);
  }
});

test('a secret that was rotated away signs until its time is over, and not from then on', async () => {
  const secrets = [
    { secret: current, until: null },
    { secret: previous, until: clock.now + 1 },
  ];
  const count = ({ headers }: Awaited<ReturnType<typeof sent>>) =>
    String(headers['service-signature'] ?? headers['webhook-signature']).split(/v1[=,]/).length - 1;
  assert.equal(count(await sent({ secrets })), 2);
  assert.equal(count(await sent({ secrets, scheme: 'timestamped' })), 2);
  const plain = await sent({ secrets, scheme: 'plain' });
  assert.match(String(plain.headers['x-hub-signature-256']), /^sha256=[\da-f]{64}$/);
  assert.match(String(plain.headers['x-hub-signature-256-previous']), /^sha256=[\da-f]{64}$/);
  clock.now += 1;
  assert.equal(count(await sent({ secrets })), 1);
  assert.equal(count(await sent({ secrets, scheme: 'timestamped' })), 1);
  const after = await sent({ secrets, scheme: 'plain' });
  assert.equal(after.headers['x-hub-signature-256-previous'], undefined);
});

test('fields of the endpoint are sent, and can neither replace ours nor end early', async () => {
  const headers = {
    ...{ Authorization: 'Bearer abc', 'X-Empty': '', 'x-tab': 'a\tb' },
    ...{
      'Content-Type': 'text/plain',
      HOST: 'evil.example',
      'Webhook-Id': 'evt_other',
      connection: 'upgrade',
    },
    ...{ 'Content-Length': '0', 'Transfer-Encoding': 'chunked', 'X-Service-Delivery': 'dlv_other' },
    ...{
      'X-Break': 'a\r\nX-Smuggled: 1',
      'X-Nul': 'a\0b',
      'X-Feed': 'a\nb',
      'X Space': '1',
      'X-Colon: 1\r\nY': '2',
    },
  };
  for (const scheme of ['standard', 'timestamped', 'plain'] as const) {
    const { headers: came, names } = await sent({ scheme, headers });
    assert.equal(came.authorization, 'Bearer abc');
    assert.equal(came['x-empty'], '');
    assert.equal(came['x-tab'], 'a\tb');
    assert.equal(came.host, url.host);
    assert.equal(came['content-type'], 'application/json');
    assert.notEqual(came['webhook-id'], 'evt_other');
    assert.notEqual(came['x-service-delivery'], 'dlv_other');
    assert.equal(new Set(names.map((name) => name.toLowerCase())).size, names.length, 'no field came twice');
    for (const name of names)
      assert.doesNotMatch(name, /smuggled|x-break|x-nul|x-feed|space|colon|transfer/i);
  }
});

test('types and ids that no field can hold are written as in a URL', async () => {
  const strange = await post(object, { id: 'evt_a.b', type: 'käse\r\nX-Smuggled: 1' });
  const given = { eventId: strange, eventType: 'käse\r\nX-Smuggled: 1' };
  const plain = await sent({ ...given, scheme: 'plain' });
  assert.equal(plain.headers['x-service-event'], 'k%C3%A4se%0D%0AX-Smuggled%3A%201');
  assert.equal((await sent(given)).headers['webhook-id'], 'evt_a%2Eb');
});

test('sends what the owner of the endpoint may see, in every shape', async () => {
  const asked: unknown[] = [];
  const partial = await startSender(store, {
    view: (principal) => (type, doc, owner) => {
      asked.push([principal.kind === 'authenticated' && principal.id, type, owner]);
      return doc.replace(',"name":"Käse"', '');
    },
  });
  const owned = await partial.post(object, { owner: 'usr_9' });
  assert.match((await sent({ eventId: owned }, partial)).text, /"data":\{"id":"prd_1"\}\}$/);
  assert.match(
    (await sent({ eventId: owned, scheme: 'plain' }, partial)).text,
    /"object":\{"id":"prd_1"\}\}\}$/,
  );
  assert.deepEqual(asked[0], ['usr_1', 'products.created', 'usr_9']);
});

test('one event to many endpoints in the same second is signed once by the keys of the instance', async () => {
  let count = 0;
  const keys = {
    async sign() {
      count += 1;
      return [`signature${count}`];
    },
  };
  const counted = await startSender(store, { keys });
  const shared = { eventId: await counted.post(object) };
  const signature = async (by = counted) => String((await sent(shared, by)).headers['webhook-signature']);
  assert.match(await signature(), / v1a,signature1$/);
  const secrets = [{ secret: previous, until: null }];
  assert.match(
    String((await sent({ ...shared, secrets }, counted)).headers['webhook-signature']),
    / v1a,signature1$/,
  );
  counted.clock.now += 1000;
  assert.match(await signature(), / v1a,signature2$/);
  const partial = await startSender(store, { keys, view: () => (_type, doc) => doc.replace('Käse', '') });
  partial.clock.now = counted.clock.now;
  assert.match(await signature(partial), / v1a,signature3$/);
  assert.match(await signature(partial), / v1a,signature4$/, 'what an owner sees is its own');
});

test('sends nothing where the event is gone or was expunged', async () => {
  assert.deepEqual((await sent({ eventId: 'evt_none' })).outcome, { kind: 'expunged' });
  const doc =
    '{"id":"evt_x","object":"event","type":"a.b","created":1,"expunged":true,"data":{"object":{"id":"1"}}}';
  const expunged = await post('', { id: 'evt_x', doc });
  for (const scheme of ['standard', 'timestamped', 'plain'] as const) {
    assert.deepEqual((await sent({ eventId: expunged, scheme })).outcome, { kind: 'expunged' });
  }
  const member = await post('{"id":"1","expunged":true}');
  assert.match((await sent({ eventId: member })).text, /"data":\{"id":"1","expunged":true\}\}$/);
});

test('sends nothing to an endpoint whose owner is gone', async () => {
  const { outcome, text } = await sent({ principal: undefined });
  assert.equal(outcome.kind === 'failed' && outcome.failure, 'refused');
  assert.equal(text, '');
});

test('rejects only where the store cannot answer', async () => {
  const unavailable = new StoreUnavailable('the test cut the connection', { retryAfterSeconds: 1 });
  const away = { read: () => Promise.reject(unavailable) };
  const events = createEventSource(servicesOver(away, { clock: () => clock.now }));
  const cut = await startSender(store, { events });
  await assert.rejects(sent({}, cut), unavailable);
});
