/**
 * Forwarding through the house's own exchange and egress guard to a receiver on a real socket, whose judge of the standard scheme is the
 * library that receivers use.
 */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import type { HandOnTo } from '../../../src/config/senders.ts';
import type { HandedOn } from '../../../src/logic/threads/handler-protocol.ts';
import type { Received } from '../../../src/model/received.ts';
import { packageVersion } from '../../../src/package-version.ts';
import {
  type Claimed,
  type ClaimedContent,
  createForward,
  isForwardable,
} from '../../../src/webhooks/receiving/hand-on.ts';
import type { SenderSecret } from '../../../src/webhooks/receiving/sender-secrets.ts';
import { exchangesWith } from '../../egress/exchanges-under-test.ts';
import { type Answer, plainAnswer, startRawReceiver } from '../../egress/raw-receiver.ts';
import { servicesOver } from '../../harness/services-over.ts';
import { content, message, sender } from '../hand-on/fixture.ts';

const exchanges = exchangesWith();
let answer: Answer = (socket) => socket.write(plainAnswer(200, ''));
const receiver = await startRawReceiver((...asked) => answer(...asked));
after(async () => {
  await exchanges.close();
  await receiver.close();
});

const [current, previous] = [7, 8].map((octet) => `whsec_${Buffer.alloc(24, octet).toString('base64')}`) as [
  string,
  string,
];
const body = Buffer.from('{"amount": 1.0}\u00e9');

type Given = {
  readonly to?: Partial<Extract<HandOnTo, { kind: 'forward' }>>;
  readonly received?: Partial<Received>;
  readonly content?: Partial<ClaimedContent>;
  readonly secrets?: readonly SenderSecret[];
  readonly signal?: AbortSignal;
};

async function forwarded(given: Given = {}): Promise<HandedOn> {
  const { secrets = [{ secret: current, until: null }] } = given;
  const settings = { webhookTimeoutMs: 2000, webhookRetryAfterSecondsMax: 60 };
  const forward = createForward(
    servicesOver({}, { settings }),
    (call, done) => void exchanges.exchange(call).then(done),
    { of: ({ sender: name, use }) => (name === 'billing' && use === 'forward' ? secrets : []) },
  );
  const handOn: HandOnTo = {
    kind: 'forward',
    url: receiver.url,
    scheme: 'standard',
    secretVariable: 'S',
    headers: {},
    ...given.to,
  };
  const received = message('rec_1', Date.now(), given.received);
  const claimed: Claimed = {
    ...{ sender: sender('billing', { handOn }), received, rev: 1, attempt: 3 },
    content: content(received.id, { body: body.toString('base64'), ...given.content }),
  };
  return await forward(claimed, given.signal ?? new AbortController().signal);
}

function lastFields(): ReadonlyMap<string, string> {
  const [, ...lines] = receiver.requests.at(-1)?.head.split('\r\n') ?? [];
  const fields = lines.map(
    (line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)] as const,
  );
  assert.equal(new Set(fields.map(([name]) => name)).size, fields.length, 'a field stands there twice');
  return new Map(fields);
}

function lastBody(): Buffer {
  return Buffer.from(receiver.requests.at(-1)?.body ?? '', 'latin1');
}

test('posts the octets as they came, signed so that the library of Standard Webhooks takes them', async () => {
  const outcome = await forwarded({
    secrets: [
      { secret: current, until: null },
      { secret: previous, until: Date.now() + 60_000 },
      { secret: 'whsec_AAAA', until: Date.now() - 1 },
    ],
    content: { contentEncoding: 'identity', headers: { 'x-shop-domain': 'a.example' } },
    to: { headers: { 'X-Internal': 'yes' } },
  });
  assert.deepEqual(outcome, { outcome: 'processed', unit: { changes: [], events: [] }, statusCode: 200 });
  const fields = lastFields();
  assert.deepEqual(lastBody(), body);
  for (const secret of [current, previous]) {
    new Webhook(secret).verify(lastBody(), Object.fromEntries(fields), {
      jsonParse: false,
    });
  }
  assert.throws(() =>
    new Webhook('whsec_AAAA').verify(lastBody(), Object.fromEntries(fields), { jsonParse: false }),
  );
  const expected = {
    ...{ 'webhook-id': 'rec_1', 'content-type': 'application/json', 'content-encoding': 'identity' },
    ...{
      'user-agent': `Comity/${packageVersion()}`,
      'comity-sender': 'billing',
      'comity-dedupe-key': 'key-rec_1',
    },
    ...{
      'comity-type': 'order.paid',
      'comity-attempt': '3',
      'x-shop-domain': 'a.example',
      'x-internal': 'yes',
    },
  };
  for (const [name, value] of Object.entries(expected)) assert.equal(fields.get(name), value, name);
});

test('signs by the other schemes', async () => {
  await forwarded({ to: { scheme: 'timestamped' } });
  const signature = lastFields().get('service-signature') ?? '';
  const [, timestamp, hex] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signature) ?? assert.fail(signature);
  const mac = createHmac('sha256', current).update(`${timestamp}.`).update(lastBody());
  assert.equal(hex, mac.digest('hex'));
  await forwarded({ to: { scheme: 'plain' } });
  const fields = lastFields();
  const plain = createHmac('sha256', current).update(lastBody()).digest('hex');
  assert.equal(fields.get('x-hub-signature-256'), `sha256=${plain}`);
  assert.deepEqual(
    [fields.get('x-service-event'), fields.get('x-service-delivery')],
    ['order.paid', 'rec_1'],
  );
});

test('lets nothing that came or was configured stand in for what it says itself', async () => {
  await forwarded({
    to: { scheme: 'plain', headers: { 'comity-sender': 'bank', Host: 'evil.example', 'X-Kept': 'ours' } },
    received: { type: null, dedupeKey: 'a key ' },
    content: {
      ...{ contentType: null, body: '' },
      headers: { 'webhook-id': 'other', 'x-kept': 'theirs', 'comity-type': 'x', 'x-bad': 'a\r\nB: c' },
    },
  });
  const fields = lastFields();
  assert.equal(fields.get('comity-sender'), 'billing');
  assert.equal(fields.get('comity-dedupe-key'), 'a%20key%20');
  assert.equal(fields.get('x-kept'), 'ours');
  assert.equal(fields.get('host'), receiver.url.host);
  assert.equal(fields.get('content-length'), '0');
  const absent = ['comity-type', 'content-type', 'webhook-id', 'x-bad', 'b', 'x-service-event'];
  assert.deepEqual(
    absent.filter((name) => fields.has(name)),
    [],
  );
  const names = ['X-Own', 'Comity-Sender', 'Webhook-Id', 'Host', 'a b'];
  assert.deepEqual(names.filter(isForwardable), ['X-Own']);
});

test('fails with the status and the beginning of any answer but 2xx, and heeds Retry-After up to its bound', async () => {
  const at = Date.now();
  answer = (socket) => socket.write(plainAnswer(503, 'not now', ['Retry-After: 3600']));
  const busy = await forwarded();
  answer = (socket) => socket.write(plainAnswer(410, '', ['Retry-After: 3600']));
  const gone = await forwarded();
  answer = (socket) => socket.write(plainAnswer(200, ''));
  assert.ok(busy.outcome === 'failed' && gone.outcome === 'failed');
  assert.deepEqual([busy.error, busy.message, busy.statusCode], ['status', 'answered 503: not now', 503]);
  const waitMs = (busy.notBefore ?? 0) - at;
  assert.ok(waitMs >= 60_000 && waitMs < 65_000, `${waitMs} ms`);
  assert.deepEqual([gone.statusCode, gone.permanent, gone.notBefore], [410, false, null]);
});

test('fails without an answer by what kept it from one, and counts nothing where the program stops', async () => {
  const refused = await forwarded({ to: { url: new URL('http://10.0.0.1/') } });
  assert.equal(refused.outcome === 'failed' && refused.error, 'refused');
  const unsigned = await forwarded({ secrets: [{ secret: current, until: 1 }] });
  assert.equal(unsigned.outcome === 'failed' && unsigned.message, 'the sender has no secret to sign with');
  const unusable = await forwarded({ secrets: [{ secret: 'no base64!', until: null }] });
  assert.ok(unusable.outcome === 'failed' && !unusable.message?.includes('no base64!'));
  answer = () => undefined;
  const stopping = new AbortController();
  const hanging = forwarded({ signal: stopping.signal });
  stopping.abort();
  assert.deepEqual(await hanging, { outcome: 'aborted' });
});
