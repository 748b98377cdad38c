/** Values of the header fields of endpoints: sent with deliveries, and never shown. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { always, byId } from '../../../src/model/filter.ts';
import { keptRow } from '../../../src/store/store.ts';
import { updateEarlierEndpoints } from '../../../src/webhooks/sending/endpoints/endpoint-owner.ts';
import { hiddenValue } from '../../../src/webhooks/sending/endpoints/revise-endpoint.ts';
import { endpointSecretsTable } from '../../../src/webhooks/sending/sending-tables.ts';
import { openEmbedded } from '../../harness/stores.ts';
import { goodUrl, type WalkedEndpoints, walkEndpoints } from './walked-endpoints.ts';

const opened = openEmbedded();
let room: WalkedEndpoints;
const token = 'Bearer 5f1c09';
const hidden = { 'X-Token': hiddenValue, 'X-Team': hiddenValue };
const whole = { 'X-Token': token, 'X-Team': 'hooks' };

before(async () => {
  room = await walkEndpoints(await opened);
});

/** What deliveries are sent with, once the process knows what was committed last. */
async function sentWith(id: string): Promise<Readonly<Record<string, string>> | undefined> {
  await room.directory.refresh();
  return room.directory.get(id)?.headers;
}

async function change(method: 'PUT' | 'PATCH', id: string, json: object, type = 'application/json') {
  const headers = { 'Content-Type': type };
  return room.ask('ada', method, `endpoints/${id}`, { json, headers });
}

test('shows names of header fields and never their values, also not in the answer that sets them', async () => {
  const made = await room.make('ada', { headers: whole });
  assert.deepEqual(made.headers, hidden);
  for (const path of [`endpoints/${made.id}`, 'endpoints']) {
    const { json } = await room.ask('ada', 'GET', path);
    assert.ok(!JSON.stringify(json).includes('5f1c09'));
  }
  const rotated = await room.ask('ada', 'POST', `endpoints/${made.id}/rotate-secret`);
  assert.deepEqual(rotated.json.headers, hidden);
  assert.deepEqual(await sentWith(made.id), whole);
  const row = await room.store.read('endpoints', made.id);
  assert.ok(row !== undefined && !row.doc.includes('5f1c09'));
});

test('keeps the values of fields that a change leaves as they were shown', async () => {
  const {
    id,
    createdAt: _c,
    updatedAt: _u,
    secret: _s,
    ...fields
  } = await room.make('ada', { headers: whole });
  const changes = [
    ['PATCH', { description: 'one' }, whole],
    ['PATCH', { headers: { 'X-Team': 'sales' } }, { ...whole, 'X-Team': 'sales' }],
    ['PUT', { ...fields, description: 'two' }, { ...whole, 'X-Team': 'sales' }],
    ['PATCH', { headers: { 'X-Team': null } }, { 'X-Token': token }],
    [
      'PUT',
      { ...fields, headers: { 'X-Token': hiddenValue, 'X-New': '1' } },
      { 'X-Token': token, 'X-New': '1' },
    ],
    ['PATCH', { url: `${goodUrl}/moved` }, { 'X-Token': token, 'X-New': '1' }],
  ] as const;
  for (const [method, json, expected] of changes) {
    const { status, json: answer } = await change(method, id, json);
    assert.equal(status, 200, JSON.stringify(answer));
    assert.ok(Object.values(answer.headers).every((value) => value === hiddenValue));
    assert.deepEqual(await sentWith(id), expected);
  }
  const patch = [
    { op: 'test', path: '/headers/X-Token', value: hiddenValue },
    { op: 'replace', path: '/headers/X-Token', value: 'other' },
  ];
  assert.equal((await change('PATCH', id, patch, 'application/json-patch+json')).status, 200);
  assert.deepEqual(await sentWith(id), { 'X-Token': 'other', 'X-New': '1' });
  assert.equal((await change('PATCH', id, { headers: null })).json.headers, undefined);
  assert.equal(await sentWith(id), undefined);
});

test('refuses a masked value where none is stored', async () => {
  const json = { url: goodUrl, events: ['*'], headers: { 'X-A': hiddenValue } };
  const { status, json: answer } = await room.ask('ada', 'POST', 'endpoints', { json });
  assert.deepEqual([status, answer.errors[0].pointer], [422, '/headers/X-A']);
  const made = await room.make('ada');
  assert.equal((await change('PATCH', made.id, { headers: { 'X-A': hiddenValue } })).status, 422);
});

test('carries a change out at once, so that no value waits in the store', async () => {
  const made = await room.make('ada');
  const headers = { Prefer: 'respond-async' };
  const asked = { json: { headers: whole }, headers };
  const { status } = await room.ask('ada', 'PATCH', `endpoints/${made.id}`, asked);
  assert.equal(status, 200);
  const waiting = room.store.plan({ table: 'operation_requests', filter: always, sort: byId, limit: 10 });
  assert.deepEqual(await waiting.rows({ from: 'start' }), []);
});

test('sends no value to a URL that it was not given for, whichever of the two rows is read first', async () => {
  const made = await room.make('ada', { headers: whole });
  await room.directory.refresh();
  const row = await room.store.read(endpointSecretsTable, made.id);
  assert.ok(row !== undefined);
  const secrets = JSON.parse(row.doc);
  secrets.headers = { url: `${goodUrl}/later`, values: { 'X-Token': 'for later' } };
  const next = keptRow(JSON.stringify(secrets), row.owner, row.createdAt, row.updatedAt);
  const ahead = { table: endpointSecretsTable, id: made.id, expect: { rev: row.rev }, next };
  const changes = [ahead, ...room.directory.generationChanges([ahead])];
  await room.store.commit({ changes, events: [] });
  assert.deepEqual(await sentWith(made.id), whole);
  await change('PATCH', made.id, { url: `${goodUrl}/later` });
  assert.deepEqual(await sentWith(made.id), { 'X-Token': 'for later' });
});

test('moves the values that an earlier version stored in the endpoint', async () => {
  const made = await room.make('ada', { description: 'findable' });
  const row = await room.store.read('endpoints', made.id);
  assert.ok(row !== undefined);
  const doc = JSON.stringify({ ...JSON.parse(row.doc), headers: whole });
  const next = { ...keptRow(doc, row.owner, row.createdAt, row.updatedAt), search: 'findable' };
  const old = { table: 'endpoints', id: made.id, expect: { rev: row.rev }, next };
  await room.store.commit({ changes: [old], events: [] });
  await updateEarlierEndpoints(room.store, room.directory);
  const read = await room.ask('ada', 'GET', 'endpoints?q=findable');
  assert.deepEqual(read.json.items[0].headers, hidden);
  assert.deepEqual(await sentWith(made.id), whole);
  assert.ok(!(await room.store.read('endpoints', made.id))?.doc.includes('5f1c09'));
});
