/**
 * What the running program answers about deliveries, events that are posted, and types of events, held to the OpenAPI document at every
 * step, while a receiver sees what is sent.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Delivery } from '../../../src/model/delivery.ts';
import type { Answer, RequestOptions } from '../../harness/exchange.ts';
import { eventually } from '../../harness/until.ts';
import { documentOf, shopCollections } from '../../openapi/fixture.ts';
import { type Promised, promisedBy } from '../../openapi/promised.ts';
import { attempted, type Pair, startPair, stopPair } from './program-with-receiver.ts';

const base = '/api/v1';

let pair: Pair;
let promised: Promised;

before(async () => {
  pair = await startPair();
  promised = promisedBy(documentOf(shopCollections), pair.program);
});

after(() => stopPair(pair));

async function ask(method: string, path: string, status: number, options?: RequestOptions): Promise<Answer> {
  const answer = await promised.ask(method, `${base}/${path}`, options);
  assert.equal(answer.status, status, `${method} ${path}: ${answer.body}`);
  return answer;
}

/** An endpoint of the administrator at a path of the receiver. */
async function make(path: string, events: readonly string[], more: object = {}): Promise<string> {
  const url = `${pair.receiver.url}${path}`;
  const { secret, id } = (await ask('POST', 'endpoints', 201, { json: { url, events, ...more } })).json();
  pair.receiver.trust(String(secret));
  return String(id);
}

const received = (path: string) => pair.receiver.received.filter((each) => each.path === path);

test('delivers a posted event, logs the attempt, and sends it again under the same id when asked to', async () => {
  const endpointId = await make('/ok', ['invoice.*'], { scheme: 'timestamped' });
  const json = { type: 'invoice.paid', data: { object: { id: 'inv_1', amount: 3950 } }, id: 'inv_1-paid' };
  const posted = await ask('POST', 'events', 202, { json });
  assert.equal(posted.headers.location, `${base}/events/inv_1-paid`);
  assert.deepEqual((await ask('POST', 'events', 200, { json })).json(), posted.json());
  await ask('POST', 'events', 409, { json: { ...json, type: 'invoice.sent' } });
  const { delivery } = await attempted(pair.program, 'inv_1-paid', endpointId);
  assert.deepEqual(
    [delivery.status, delivery.lastStatusCode, delivery.nextAttemptAt],
    ['delivered', 204, null],
  );
  const path = `deliveries/${delivery.id}`;
  await ask('GET', path, 200);
  const resent = await ask('POST', `${path}/resend`, 202);
  assert.equal(resent.headers.location, `${base}/${path}`);
  assert.equal(resent.json().status, 'pending');
  await attempted(pair.program, 'inv_1-paid', endpointId, 2);
  const { items } = (await ask('GET', `${path}/attempts`, 200)).json() as { items: { trigger: string }[] };
  assert.deepEqual(
    items.map(({ trigger }) => trigger),
    ['automatic', 'manual'],
  );
  const arrivals = received('/ok');
  assert.equal(arrivals.length, 2);
  for (const { body, verdict } of arrivals) {
    assert.equal(JSON.parse(body).id, 'inv_1-paid');
    assert.equal(verdict, 'verified');
  }
});

test('keeps the schedule of a delivery that failed when it is sent again by hand', async () => {
  const endpointId = await make('/status/500', ['order.*'], { scheme: 'timestamped', mode: 'sandbox' });
  const { id } = (
    await ask('POST', 'events', 202, { json: { type: 'order.lost', data: { object: {} } } })
  ).json();
  const { delivery } = await attempted(pair.program, String(id), endpointId);
  assert.equal(delivery.status, 'not_delivered');
  assert.notEqual(delivery.nextAttemptAt, null);
  await ask('POST', `deliveries/${delivery.id}/resend`, 202, { json: { via: 'command-line' } });
  const again = (await attempted(pair.program, String(id), endpointId, 2)).delivery;
  assert.deepEqual(
    [again.status, again.nextAttemptAt, again.dueAt, again.scheduledAttemptCount],
    ['not_delivered', delivery.nextAttemptAt, delivery.nextAttemptAt, 1],
  );
  await ask('PATCH', `endpoints/${endpointId}`, 200, { json: { status: 'disabled' } });
  const refused = await ask('POST', `deliveries/${delivery.id}/resend`, 409);
  assert.equal(refused.json().code, 'endpoint_unavailable');
  await ask('POST', `endpoints/${endpointId}/test`, 409);
});

test('expunges what was sent of one subject, and what its receivers answered', async () => {
  const endpointId = await make('/ok', ['person.*']);
  const object = { id: 'person_1', name: 'Ada' };
  const { id } = (
    await ask('POST', 'events', 202, { json: { type: 'person.joined', data: { object } } })
  ).json();
  const { delivery } = await attempted(pair.program, String(id), endpointId);
  const expunged = await ask('POST', 'events/expunge', 200, { json: { object: 'person_1' } });
  assert.partialDeepStrictEqual(expunged.json(), { events: 1, deliveries: 1, attempts: 1, more: false });
  await ask('GET', `events/${id}`, 404);
  const { items } = (await ask('GET', `deliveries/${delivery.id}/attempts`, 200)).json() as {
    items: object[];
  };
  assert.partialDeepStrictEqual(items, [{ statusCode: 204, responseSnippet: '', responseHeaders: [] }]);
  assert.equal((await ask('POST', `deliveries/${delivery.id}/resend`, 409)).json().code, 'event_unavailable');
});

test('answers everything else about deliveries, events and their types as the document says', async () => {
  await ask('GET', 'deliveries?status=delivered&limit=1', 200, { headers: { Prefer: 'count=exact' } });
  await ask('QUERY', 'deliveries', 200, { json: { filter: { attemptCount: { gte: 1 } }, limit: 1 } });
  await ask('GET', 'deliveries', 401, { anonymous: true });
  await ask('GET', 'deliveries/none', 404);
  await ask('GET', 'deliveries/none/attempts', 404);
  await ask('POST', 'deliveries/none/resend', 404);
  const { items } = (await ask('GET', 'deliveries?limit=1', 200)).json() as { items: Delivery[] };
  const path = `deliveries/${items[0]?.id}`;
  await ask('GET', `${path}/attempts?limit=0`, 400);
  // As of every list.
  await ask('GET', `${path}/attempts?limit=1001`, 400);
  await ask('GET', `${path}/attempts?limit=1000`, 200);
  const attempts = await ask('GET', `${path}/attempts?limit=1`, 200);
  await ask('GET', `${path}/attempts`, 304, { headers: { 'If-None-Match': String(attempts.headers.etag) } });
  await ask('HEAD', `${path}/attempts`, 200);
  await ask('POST', `${path}/resend`, 422, { json: { via: 'pigeon' } });
  for (const method of ['PUT', 'PATCH', 'DELETE']) {
    const { status } = await pair.program.send(method, `${base}/${path}`, { json: {} });
    assert.equal(status, 405, method);
  }
  const event = { type: 'a.b', data: { object: {} } };
  await ask('POST', 'events', 401, { json: event, anonymous: true });
  await ask('POST', 'events', 400, { json: {} });
  await ask('POST', 'events', 422, { json: { ...event, type: 'endpoint.test' } });
  await ask('POST', 'events', 422, { json: { type: 'stock.ran-out', data: { object: { id: 1 } } } });
  await ask('POST', 'events', 413, {
    json: { type: 'a.b', data: { object: { text: 'x'.repeat(300_000) } } },
  });
  await ask('POST', 'events', 415, { headers: { 'Content-Type': 'text/plain' }, body: 'a' });
  const keyed = { json: event, headers: { 'Idempotency-Key': '"once"' } };
  const first = await ask('POST', 'events', 202, keyed);
  assert.equal((await ask('POST', 'events', 202, keyed)).json().id, first.json().id);
  await ask('POST', 'events', 204, {
    json: { ...event, ...first.json(), created: undefined, object: undefined },
    headers: { Prefer: 'return=minimal' },
  });
  await ask('POST', 'events/expunge', 422, { json: {} });
  await ask('POST', 'events/expunge', 401, { json: { object: 'x' }, anonymous: true });
  const types = (await ask('GET', 'event-types', 200)).json() as { items: { type: string }[] };
  assert(types.items.some(({ type }) => type === 'stock.ran-out'));
  const one = await ask('GET', 'event-types/products.created', 200);
  await ask('GET', 'event-types/products.created', 304, {
    headers: { 'If-None-Match': String(one.headers.etag) },
  });
  await ask('GET', 'event-types/none', 404);
  await ask('GET', 'event-types', 401, { anonymous: true });
});

test('answers endpoints and recoveries as the document says', async () => {
  const id = await make('/ok', ['nothing.*'], { scheme: 'plain' });
  const path = `endpoints/${id}`;
  await ask('GET', 'endpoints?limit=1', 200);
  await ask('QUERY', 'endpoints', 200, { json: { filter: { scheme: 'plain' } } });
  await ask('GET', path, 200);
  await ask('GET', 'endpoints/none', 404);
  await ask('POST', 'endpoints', 400, { json: {} });
  await ask('POST', 'endpoints', 422, { json: { url: 'ftp://shop.example', events: ['*'] } });
  await ask('PATCH', path, 200, { json: { description: 'One' } });
  await ask('PATCH', path, 400, { json: { disabledReason: 'gone' } });
  await ask('PUT', path, 200, {
    json: { url: `${pair.receiver.url}/ok`, events: ['nothing.*'], scheme: 'standard' },
  });
  await ask('POST', `${path}/rotate-secret`, 200, { json: { overlapSeconds: 60 } });
  await ask('POST', `${path}/rotate-secret`, 422, { json: { overlapSeconds: 90_000 } });
  await ask('POST', `${path}/test`, 202, { json: { type: 'stock.ran-out' } });
  await ask('POST', `${path}/test`, 422, { json: { type: 'no.such' } });
  await ask('POST', `${path}/recover`, 400, { json: {} });
  await ask('POST', `${path}/recover`, 422, { json: { since: '2100-01-01T00:00:00.000Z' } });
  const begun = await ask('POST', `${path}/recover`, 202, { json: { since: new Date(0).toISOString() } });
  const recovery = String(begun.headers.location).slice(base.length + 1);
  await eventually(async () => {
    const { status } = (await ask('GET', recovery, 200)).json();
    return status === 'finished' ? status : undefined;
  }, 'the recovery did not finish');
  await ask('GET', 'recoveries', 200);
  await ask('DELETE', recovery, 204);
  await ask('GET', recovery, 404);
  await ask('DELETE', path, 204);
  await ask('POST', 'endpoints/bulk-delete', 200, { json: { ids: [id] } });
});

test('came to many different ends', () => {
  const { seen } = promised;
  assert(seen.size >= 55, `${seen.size}: ${[...seen].join(', ')}`);
});
