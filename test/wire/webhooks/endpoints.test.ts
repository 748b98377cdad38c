/** Endpoints of the running program, seen by a receiver: rotation, tests, and what a recovery brings. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDeliveryReceiver, verify } from '../../harness/delivery-receiver.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { eventually } from '../../harness/until.ts';
import { localEgress } from './program-with-receiver.ts';

let program: RunningServer;
const { url, received, answers, arrival } = await startDeliveryReceiver();

before(async () => {
  program = await startServer({ env: localEgress });
});

after(() => program?.stop());

test('signs with every active secret after a rotation, and with the new one alone when the overlap is none', async () => {
  const endpoint = await make('/rotated', { events: ['nothing.*'] });
  const rotated = await post(`endpoints/${endpoint.id}/rotate-secret`, { overlapSeconds: 60 }, 200);
  await post(`endpoints/${endpoint.id}/test`, undefined, 202);
  const both = await arrival('/rotated', 1);
  for (const secret of [endpoint.secret, rotated.secret]) verify(both, secret);
  assert.equal(JSON.parse(String(both.body)).type, 'endpoint.test');
  const last = await post(`endpoints/${endpoint.id}/rotate-secret`, {}, 200);
  await post(`endpoints/${endpoint.id}/test`, { type: 'products.created' }, 202);
  const one = await arrival('/rotated', 2);
  verify(one, last.secret);
  for (const secret of [endpoint.secret, rotated.secret]) assert.throws(() => verify(one, secret));
  assert.equal(JSON.parse(String(one.body)).type, 'products.created');
});

test('recovers what an endpoint missed while it was disabled, and nothing that it had', async () => {
  const since = new Date(Date.now() - 1000).toISOString();
  const endpoint = await make('/parked', { events: ['categories.created'] });
  await post('categories', { name: 'had' }, 201);
  await arrival('/parked', 1);
  await patch(endpoint.id, { status: 'disabled' });
  await post('categories', { name: 'missed' }, 201);
  await patch(endpoint.id, { status: 'enabled' });
  const dry = await recover(endpoint.id, { since, dryRun: true });
  assert.partialDeepStrictEqual(dry, { status: 'finished', matching: 2, created: 1, resent: 0 });
  const wet = await recover(endpoint.id, { since });
  assert.partialDeepStrictEqual(wet, { status: 'finished', matching: 2, created: 1, resent: 0 });
  const missed = await arrival('/parked', 2);
  verify(missed, endpoint.secret);
  assert.equal(JSON.parse(String(missed.body)).data.name, 'missed');
});

test('recovers what had failed for good, under the id that it had', async () => {
  const since = new Date(Date.now() - 1000).toISOString();
  answers.set('/failing', 500);
  const endpoint = await make('/failing', { events: ['notes.created'], scheme: 'plain' });
  await post('notes', { text: 'failed' }, 201);
  const failed = await arrival('/failing', 1);
  const delivery = String(failed.headers['x-service-delivery']);
  await settled(delivery, 'not_delivered');
  answers.delete('/failing');
  assert.partialDeepStrictEqual(await recover(endpoint.id, { since }), { resent: 1, created: 0 });
  const again = await arrival('/failing', 2);
  assert.equal(again.headers['x-service-delivery'], delivery);
  assert.deepEqual(again.body, failed.body);
  assert.partialDeepStrictEqual(await settled(delivery, 'delivered'), { attemptCount: 2 });
});

test('sends nothing to an endpoint that is gone, and keeps what was sent in the log', async () => {
  const endpoint = await make('/gone', { events: ['categories.created'] });
  const other = await make('/stays', { events: ['categories.created'] });
  assert.equal((await program.send('DELETE', `/api/v1/endpoints/${endpoint.id}`)).status, 204);
  await post('categories', { name: 'after' }, 201);
  await arrival('/stays', 1);
  assert.equal(received.filter(({ path }) => path === '/gone').length, 0);
  const log = await program.send('GET', `/api/v1/deliveries?endpointId=${other.id}`);
  assert.equal((log.json().items as unknown[]).length, 1);
});

test('refuses an endpoint at an address that the guard keeps from the program', async () => {
  const json = { url: 'http://10.0.0.1/', events: ['*'] };
  const { status, json: body } = await program.send('POST', '/api/v1/endpoints', { json });
  assert.equal(status, 422);
  assert.equal((body().errors as { pointer: string }[])[0]?.pointer, '/url');
});

type Made = Readonly<Record<string, unknown>> & { readonly id: string; readonly secret: string };

async function make(path: string, fields: object): Promise<Made> {
  return (await post('endpoints', { url: `${url}${path}`, ...fields }, 201)) as Made;
}

async function post(path: string, json: object | undefined, status: number) {
  const answer = await program.send('POST', `/api/v1/${path}`, json === undefined ? {} : { json });
  assert.equal(answer.status, status, answer.body);
  return answer.json();
}

async function patch(id: string, json: object): Promise<void> {
  const answer = await program.send('PATCH', `/api/v1/endpoints/${id}`, { json });
  assert.equal(answer.status, 200, answer.body);
}

/** Asks until it runs no more. */
async function recover(endpointId: string, json: object) {
  const { id } = await post(`endpoints/${endpointId}/recover`, json, 202);
  return comesTo(`/api/v1/recoveries/${id}`, 'finished');
}

function settled(delivery: string, status: string) {
  return comesTo(`/api/v1/deliveries/${delivery}`, status);
}

function comesTo(path: string, status: string) {
  return eventually(async () => {
    const found = (await program.send('GET', path)).json();
    return found.status === status ? found : undefined;
  }, `${path} is ${status}`);
}
