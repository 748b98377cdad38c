/**
 * Receivers that misbehave, against the log of attempts (§6, issue "Bad input and faults"): each fault is told apart, none keeps the
 * sender, and who is well is not kept waiting. One program and one event: every endpoint has its own way of failing.
 */
import assert from 'node:assert/strict';
import { lookup } from 'node:dns/promises';
import { after, before, test } from 'node:test';
import type { Delivery } from '../../../src/model/delivery.ts';
import type { Endpoint } from '../../../src/model/endpoint.ts';
import { freePort } from '../free-port.ts';
import {
  attempted,
  items,
  makeEndpoint,
  type Pair,
  postEvent,
  startPair,
  stopPair,
} from './program-with-receiver.ts';

/** Of the first attempt. */
type Expected = {
  readonly url: (receiver: string) => string;
  readonly status: number | null;
  readonly error: string | null;
  /** Why Comity did not read the content to its end. */
  readonly cut?: 'long' | 'slow' | 'broken';
  readonly delivered: boolean;
};

const at = (path: string): Expected['url'] => {
  return (receiver) => `${receiver}${path}`;
};
const failed = (url: Expected['url'], error: string): Expected => ({
  ...{ url, error },
  status: null,
  delivered: false,
});
const refused = (path: string, status: number): Expected => ({
  ...{ url: at(path), status },
  error: null,
  delivered: false,
});
const accepted = (path: string, status: number, cut?: Expected['cut']): Expected => ({
  ...{ url: at(path), status, error: null, delivered: true },
  ...(cut === undefined ? {} : { cut }),
});

const faults: Record<string, Expected> = {
  'a name that does not resolve': failed(() => 'http://nowhere.invalid/hook', 'dns'),
  'a port that nobody listens at': failed(() => `http://127.0.0.1:${closedPort}/hook`, 'connect'),
  'a server that speaks no TLS': failed((receiver) => `${receiver.replace('http:', 'https:')}/hook`, 'tls'),
  'a connection that is reset': failed(at('/reset'), 'reset'),
  'something that is not HTTP': failed(at('/garbage'), 'protocol'),
  'a header section without end': failed(at('/long-head'), 'protocol'),
  'a server error': refused('/status/500', 500),
  'a redirect': refused('/redirect', 302),
  'a receiver that is limited': refused('/retry-after/3600', 429),
  'a receiver that wants no more': refused('/gone', 410),
  'content that trickles': accepted('/trickle', 200, 'slow'),
  'content that never ends': accepted('/never-closes', 200, 'slow'),
  'content of ten gigabytes': accepted('/huge', 200, 'long'),
  'a gzip bomb': accepted('/gzip-bomb', 200, 'long'),
  'an answer before the content was read': accepted('/early', 204),
};

let closedPort = 0;
let pair: Pair;
let eventId: string;
const endpoints = new Map<string, Endpoint>();

before(async () => {
  closedPort = await freePort();
  pair = await startPair({ bounds: { egressAnswerMs: 300 } });
  for (const [name, { url }] of Object.entries(faults)) {
    endpoints.set(name, await makeEndpoint(pair, url(pair.receiver.url), { events: ['fault.shown'] }));
  }
});

after(() => stopPair(pair));

async function firstAttempt(name: string) {
  const endpoint = endpoints.get(name);
  assert.ok(endpoint);
  const { delivery, attempts } = await attempted(pair.program, eventId, endpoint.id);
  const [attempt] = attempts;
  assert.ok(attempt);
  return { endpoint, delivery, attempt };
}

test('delivers to the healthy while another endpoint hangs', async () => {
  const hanging = await makeEndpoint(pair, `${pair.receiver.url}/hang`, { events: ['fault.*'] });
  const healthy = await makeEndpoint(pair, `${pair.receiver.url}/ok/healthy`, { events: ['fault.*'] });
  eventId = await postEvent(pair.program, 'fault.shown', { id: 'first' });
  await Promise.all(
    Array.from({ length: 20 }, (_, turn) => postEvent(pair.program, 'fault.healthy', { turn })),
  );
  await pair.receiver.until((all) => all.filter(({ path }) => path === '/ok/healthy').length === 21);
  const path = `/api/v1/deliveries?eventId=${eventId}&endpointId=${hanging.id}`;
  const [waiting] = await items<Delivery>(pair.program, path);
  assert.equal(waiting?.attemptCount, 0, 'the receiver that hangs was still under way');
  assert.ok(pair.receiver.received.every(({ verdict }) => verdict === 'verified'));
  const { attempts } = await attempted(pair.program, eventId, healthy.id);
  assert.equal(attempts[0]?.statusCode, 204);
});

for (const [name, { status, error, cut = null, delivered }] of Object.entries(faults)) {
  test(`logs ${name} as ${error ?? `${status}${cut === null ? '' : `, ${cut}`}`}`, async () => {
    const { delivery, attempt } = await firstAttempt(name);
    assert.deepEqual([attempt.statusCode, attempt.error, attempt.trigger], [status, error, 'automatic']);
    if (error === null) assert.equal(attempt.cut, cut);
    assert.equal(delivery.status, delivered ? 'delivered' : 'not_delivered');
    const again = !delivered && name !== 'a receiver that wants no more';
    assert.equal(delivery.nextAttemptAt !== null, again, 'whether it is tried again');
    assert.ok(attempt.responseSnippet.length <= 1024);
  });
}

test('logs a receiver that hangs as timeout', async (context) => {
  // A short timeout for this one alone: on a busy machine it would end attempts at the others too.
  const impatient = await startPair({ env: { COMITY_WEBHOOK_TIMEOUT_MS: '300' } });
  context.after(() => stopPair(impatient));
  const endpoint = await makeEndpoint(impatient, `${impatient.receiver.url}/hang`);
  const id = await postEvent(impatient.program, 'fault.shown');
  const { delivery, attempts } = await attempted(impatient.program, id, endpoint.id);
  assert.deepEqual([attempts[0]?.statusCode, attempts[0]?.error], [null, 'timeout']);
  assert.equal(delivery.status, 'not_delivered');
  assert.notEqual(delivery.nextAttemptAt, null);
});

test('does not follow a redirect', () => {
  assert.ok(!pair.receiver.received.some(({ path }) => path === '/ok'));
});

test('waits as long as Retry-After says', async () => {
  const { delivery, attempt } = await firstAttempt('a receiver that is limited');
  const waitMs = Date.parse(delivery.nextAttemptAt ?? '') - Date.parse(attempt.at);
  assert.ok(waitMs >= 3_600_000 && waitMs < 3_700_000, `${waitMs} ms`);
});

test('disables an endpoint that is gone, and no other', async () => {
  const { endpoint } = await firstAttempt('a receiver that wants no more');
  const all = await items<Endpoint>(pair.program, '/api/v1/endpoints?limit=100');
  const disabled = all.filter((one) => one.status === 'disabled');
  assert.deepEqual(
    disabled.map(({ id, disabledReason }) => [id, disabledReason]),
    [[endpoint.id, 'gone']],
  );
});

test('refuses addresses that are not public, before an endpoint is made and when a name resolves to one', async () => {
  for (const url of [
    'http://10.0.0.1/',
    'http://169.254.169.254/latest',
    `${pair.program.url}/api/v1/events`,
  ]) {
    const made = await pair.program.send('POST', '/api/v1/endpoints', { json: { url, events: ['*'] } });
    assert.equal(made.status, 422, `${url}: ${made.body}`);
  }
  const addresses = await lookup('localhost', { all: true });
  // One forbidden address is enough; a machine without IPv6 has none behind this name.
  const expected = addresses.some(({ address }) => address === '::1') ? 'refused' : 'connect';
  const endpoint = await makeEndpoint(pair, `http://localhost:${closedPort}/`, { events: ['fault.name'] });
  const id = await postEvent(pair.program, 'fault.name');
  const { attempts } = await attempted(pair.program, id, endpoint.id);
  assert.equal(attempts[0]?.error, expected);
  assert.ok(!JSON.stringify(attempts).includes('::1'));
});
