/** What is asked of an endpoint besides changing it (§6): another secret, a test, a recovery. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { always, byId } from '../../../src/model/filter.ts';
import { eventsTable } from '../../../src/store/store.ts';
import { rotatedSecrets, secretsMax } from '../../../src/webhooks/secrets.ts';
import { type EndpointSecrets, endpointSecretsTable } from '../../../src/webhooks/sending/sending-tables.ts';
import { openEmbedded } from '../../harness/stores.ts';
import { type WalkedEndpoints, walkEndpoints } from './walked-endpoints.ts';

const opened = openEmbedded();
let room: WalkedEndpoints;

before(async () => {
  room = await walkEndpoints(await opened);
});

const hourMs = 3_600_000;

test('rotates to another secret, and lets the earlier one sign for the overlap alone', async () => {
  const { id, secret, ...endpoint } = await room.make('ada');
  const path = `endpoints/${id}/rotate-secret`;
  const from = room.clock();
  const rotated = await room.ask('ada', 'POST', path, { json: { overlapSeconds: 3600 } });
  const to = room.clock();
  assert.equal(rotated.status, 200);
  const { secret: next, ...same } = rotated.json;
  assert.deepEqual(same, { id, ...endpoint });
  assert.match(next, /^whsec_/);
  const [current, earlier, ...rest] = await secretsOf(id);
  assert.deepEqual([current, rest], [{ secret: next, until: null }, []]);
  assert.equal(earlier?.secret, secret);
  const until = earlier?.until ?? 0;
  assert.ok(until >= from + hourMs && until <= to + hourMs, 'milliseconds since the epoch');
  const last = await room.ask('ada', 'POST', path);
  assert.deepEqual(await secretsOf(id), [{ secret: last.json.secret, until: null }]);
});

test('takes an overlap of up to a day', async () => {
  const { id } = await room.make('ada');
  const path = `endpoints/${id}/rotate-secret`;
  for (const [overlapSeconds, status] of [
    [86_400, 200],
    [86_401, 422],
    [-1, 422],
    [1.5, 422],
  ] as const) {
    const answer = await room.ask('ada', 'POST', path, { json: { overlapSeconds } });
    assert.equal(answer.status, status, String(overlapSeconds));
    if (status === 422) assert.equal(answer.json.errors[0].pointer, '/overlapSeconds');
  }
});

test('gives an earlier secret never longer than it had, and keeps the newest ten', () => {
  const stood = [
    { secret: 'b', until: null },
    { secret: 'a', until: 500 },
    { secret: 'over', until: 100 },
  ];
  assert.deepEqual(rotatedSecrets(stood, 'c', 100, 1000), [
    { secret: 'c', until: null },
    { secret: 'b', until: 1100 },
    { secret: 'a', until: 500 },
  ]);
  let secrets = rotatedSecrets([], 's0', 0, 1);
  for (let at = 1; at < 20; at += 1) secrets = rotatedSecrets(secrets, `s${at}`, 0, 1);
  assert.deepEqual(
    secrets.map(({ secret }) => secret),
    Array.from({ length: secretsMax }, (_, at) => `s${19 - at}`),
  );
});

test('loses no secret when two rotate at once', async () => {
  const { id } = await room.make('ada');
  const json = { overlapSeconds: 60 };
  const path = `endpoints/${id}/rotate-secret`;
  const answers = await Promise.all([1, 2, 3].map(() => room.ask('ada', 'POST', path, { json })));
  const kept = (await secretsOf(id)).map(({ secret }) => secret);
  for (const { status, json: body } of answers) {
    assert.equal(status, 200);
    assert.ok(kept.includes(body.secret));
  }
});

test('sends a test to one endpoint alone, and to a disabled one none', async () => {
  const { id } = await room.make('ada', { events: ['nothing.like.it'] });
  await room.make('ada', { events: ['*'] });
  const [deliveries, events] = [await all('deliveries'), await all(eventsTable)];
  room.woken.length = 0;
  const tested = await room.ask('ada', 'POST', `endpoints/${id}/test`);
  assert.equal(tested.status, 202);
  const { json: delivery } = tested;
  assert.equal(tested.field('location'), `/api/v1/deliveries/${delivery.id}`);
  assert.deepEqual(
    [delivery.endpointId, delivery.eventType, delivery.status],
    [id, 'endpoint.test', 'pending'],
  );
  assert.equal(delivery.dueAt, delivery.nextAttemptAt, 'it is tried by schedule');
  const made = (await all('deliveries')).filter((row) => !deliveries.some((old) => old.id === row.id));
  assert.deepEqual(
    made.map(({ doc, owner }) => [JSON.parse(doc), owner]),
    [[delivery, 'usr_ada']],
  );
  const [event, ...others] = (await all(eventsTable)).filter(
    (row) => !events.some((old) => old.id === row.id),
  );
  assert.equal(others.length, 0);
  assert.equal(event?.id, delivery.eventId);
  assert.deepEqual(JSON.parse(event?.doc ?? '').data.object.id, id);
  assert.deepEqual(room.woken, [id]);
  await room.ask('ada', 'PATCH', `endpoints/${id}`, { json: { status: 'disabled' } });
  const refused = await room.ask('ada', 'POST', `endpoints/${id}/test`, { json: {} });
  assert.deepEqual([refused.status, refused.json.code], [409, 'endpoint_unavailable']);
});

test('sends a sample of the type that is asked for, and says of which there is none', async () => {
  const { id } = await room.make('ada');
  const path = `endpoints/${id}/test`;
  const { json: delivery } = await room.ask('ada', 'POST', path, { json: { type: 'orders.paid' } });
  const event = await room.store.read(eventsTable, delivery.eventId);
  const { type, data, object, created } = JSON.parse(event?.doc ?? '');
  assert.deepEqual([type, object, data.object], ['orders.paid', 'event', { id: 'o1', total: 3 }]);
  assert.equal(created, Math.floor(Date.parse(delivery.createdAt) / 1000));
  const unknown = await room.ask('ada', 'POST', path, { json: { type: 'orders.lost' } });
  assert.deepEqual([unknown.status, unknown.json.errors[0].pointer], [422, '/type']);
});

test('begins one recovery of an endpoint at a time, and shows what is the program’s to no one else', async () => {
  const { id } = await room.make('ada');
  const path = `endpoints/${id}/recover`;
  const json = { since: '2026-01-01T01:00:00+01:00' };
  const begun = await room.ask('ada', 'POST', path, { json });
  assert.equal(begun.status, 202, JSON.stringify(begun.json));
  const { json: recovery } = begun;
  assert.equal(begun.field('location'), `/api/v1/recoveries/${recovery.id}`);
  assert.deepEqual(
    [recovery.endpointId, recovery.since, recovery.dryRun, recovery.status, recovery.finishedAt],
    [id, '2026-01-01T00:00:00.000Z', false, 'running', null],
  );
  assert.equal(recovery.until, recovery.createdAt);
  const read = await room.ask('ada', 'GET', `recoveries/${recovery.id}`);
  assert.deepEqual(read.json, recovery);
  const again = await room.ask('ada', 'POST', path, { json });
  assert.deepEqual(
    [again.status, again.json.code, again.json.recovery],
    [409, 'recovery_running', recovery.id],
  );
  assert.equal((await room.ask('bob', 'GET', `recoveries/${recovery.id}`)).status, 404);
  assert.equal((await room.ask('ada', 'PATCH', `recoveries/${recovery.id}`, { json: {} })).status, 405);
  assert.equal((await room.ask('ada', 'DELETE', `recoveries/${recovery.id}`)).status, 204);
  assert.equal((await room.ask('ada', 'POST', path, { json })).status, 202);
});

test('refuses a recovery of no time, of times to come, and of a disabled endpoint', async () => {
  const { id } = await room.make('ada');
  const path = `endpoints/${id}/recover`;
  const ahead = new Date(room.clock() + hourMs).toISOString();
  const early = '2026-01-01T00:00:00Z';
  for (const [json, status, pointer] of [
    [{}, 400, '/since'],
    [{ since: 'yesterday' }, 422, '/since'],
    [{ since: ahead }, 422, '/since'],
    [{ since: early, until: '2025-01-01T00:00:00Z' }, 422, '/until'],
    [{ since: early, dryRun: 'yes' }, 422, '/dryRun'],
  ] as const) {
    const answer = await room.ask('ada', 'POST', path, { json });
    assert.deepEqual([answer.status, answer.json.errors?.[0]?.pointer], [status, pointer]);
  }
  await room.ask('ada', 'PATCH', `endpoints/${id}`, { json: { status: 'disabled' } });
  assert.equal((await room.ask('ada', 'POST', path, { json: { since: early } })).status, 409);
  const dry = await room.ask('ada', 'POST', path, { json: { since: early, until: ahead, dryRun: true } });
  assert.deepEqual([dry.status, dry.json.until], [202, dry.json.createdAt]);
});

async function secretsOf(id: string): Promise<EndpointSecrets['secrets']> {
  const row = await room.store.read(endpointSecretsTable, id);
  return (JSON.parse(row?.doc ?? '') as EndpointSecrets).secrets;
}

async function all(table: string) {
  return room.store.plan({ table, filter: always, sort: byId, limit: 1000 }).rows({ from: 'start' });
}
