/** Endpoints as resources (§5.6, §6): who has which, what is refused, that the secret is shown once, and that races lose nothing. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { keptRow } from '../../../src/store/store.ts';
import {
  endpointHealthTable,
  endpointSecretsTable,
  generationRow,
} from '../../../src/webhooks/sending/sending-tables.ts';
import { engines, openEmbedded } from '../../harness/stores.ts';
import { goodUrl, type WalkedEndpoints, walkEndpoints } from './walked-endpoints.ts';

const opened = openEmbedded();
let room: WalkedEndpoints;

before(async () => {
  room = await walkEndpoints(await opened);
});

test('shows the secret of a new endpoint in the 201 and nowhere else', async () => {
  const json = { url: goodUrl, events: ['products.*'], description: 'the shop' };
  const made = await room.ask('ada', 'POST', 'endpoints', { json });
  assert.equal(made.status, 201);
  const { secret, ...endpoint } = made.json;
  assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  assert.match(endpoint.id, /^ep_/);
  assert.equal(made.field('location'), `/api/v1/endpoints/${endpoint.id}`);
  assert.deepEqual([endpoint.scheme, endpoint.status, endpoint.mode], ['standard', 'enabled', undefined]);
  const read = await room.ask('ada', 'GET', `endpoints/${endpoint.id}`);
  assert.deepEqual(read.json, endpoint);
  assert.equal(read.field('etag'), made.field('etag'));
  const { json: list } = await room.ask('ada', 'GET', 'endpoints');
  assert.deepEqual(list.items, [endpoint]);
  const row = await room.store.read(endpointSecretsTable, endpoint.id);
  assert.deepEqual(JSON.parse(row?.doc ?? ''), {
    secrets: [{ secret, until: null }],
    scopes: ['read', 'write', 'webhooks'],
  });
});

test('makes one endpoint for an Idempotency-Key, and shows its secret again to no other credential', async () => {
  const json = { url: goodUrl, events: ['*'] };
  const headers = { 'Idempotency-Key': '"k1"', Prefer: 'return=minimal, respond-async' };
  const one = await room.ask('bob', 'POST', 'endpoints', { json, headers });
  const other = await room.ask('bob', 'POST', 'endpoints', { json, headers });
  // The requests of this test carry no credential that the answer could be sealed under.
  assert.deepEqual([one.status, other.status], [201, 409]);
  assert.equal(other.json.code, 'idempotency_result_sealed');
  assert.equal(other.json.secret, undefined);
});

const faults: readonly (readonly [title: string, fields: object, status: number, pointer: string])[] = [
  ['a relative URL', { url: '/hooks' }, 422, '/url'],
  ['another scheme than http and https', { url: 'ftp://shop.example/' }, 422, '/url'],
  ['credentials in the URL', { url: 'https://a:b@shop.example/' }, 422, '/url'],
  ['a fragment in the URL', { url: 'https://shop.example/#x' }, 422, '/url'],
  ['a forbidden port', { url: 'https://shop.example:25/' }, 422, '/url'],
  ['a private address', { url: 'http://10.1.2.3/' }, 422, '/url'],
  ['a loopback address in another notation', { url: 'http://0x7f.1/' }, 422, '/url'],
  ['a pattern that is none', { events: ['products.*', 'pro*ducts'] }, 422, '/events/1'],
  ['no pattern', { events: [] }, 422, '/events'],
  ['a header field that injects another', { headers: { 'X-A': 'a\r\nX-B: b' } }, 422, '/headers/X-A'],
  ['a header name that is no token', { headers: { 'X A': 'a' } }, 422, '/headers/X A'],
  [
    'a header field of the sender',
    { headers: { 'Webhook-Signature': 'a' } },
    422,
    '/headers/Webhook-Signature',
  ],
  [
    'a header field that frames the message',
    { headers: { 'Transfer-Encoding': 'chunked' } },
    422,
    '/headers/Transfer-Encoding',
  ],
  ['a header value beyond its bound', { headers: { 'X-A': 'a'.repeat(4097) } }, 422, '/headers/X-A'],
  [
    'too many header fields',
    { headers: Object.fromEntries(Array.from({ length: 33 }, (_, at) => [`X-${at}`, ''])) },
    422,
    '/headers',
  ],
  ['a mode of a scheme without modes', { scheme: 'plain', mode: 'live' }, 422, '/mode'],
  ['signatures of a scheme without versions', { scheme: 'plain', signatures: ['v1'] }, 422, '/signatures'],
  ['signatures without v1', { signatures: ['v1a'] }, 422, '/signatures'],
  ['a signature twice', { signatures: ['v1', 'v1'] }, 422, '/signatures'],
  ['a signature version that there is not', { signatures: ['v1', 'v2'] }, 422, '/signatures/1'],
  ['a scheme that there is not', { scheme: 'other' }, 422, '/scheme'],
  ['a template that is no JSON', { template: 'slak' }, 422, '/template'],
  ['a template beyond its bound', { template: `"${'a'.repeat(8191)}"` }, 422, '/template'],
  ['a member that is omitted twice', { omit: ['cost', 'cost'] }, 422, '/omit'],
  ['more in flight than may be', { maxInFlight: 1025 }, 422, '/maxInFlight'],
  ['an unknown member', { secret: 'whsec_mine' }, 422, '/secret'],
  ['a missing URL', { url: undefined }, 400, '/url'],
  [
    'a reason that only the sender gives',
    { status: 'disabled', disabledReason: 'gone' },
    400,
    '/disabledReason',
  ],
];

for (const [title, fields, status, pointer] of faults) {
  test(`refuses ${title}`, async () => {
    const json = { url: goodUrl, events: ['*'], ...fields };
    for (const who of ['ada', 'root']) {
      const { status: got, json: body } = await room.ask(who, 'POST', 'endpoints', { json });
      assert.equal(got, status, JSON.stringify(body));
      assert.deepEqual(
        body.errors.map((error: { pointer: string }) => error.pointer),
        [pointer],
      );
    }
  });
}

test('takes a header value and a number of header fields at their bounds', async () => {
  const headers = Object.fromEntries(Array.from({ length: 32 }, (_, at) => [`X-${at}`, 'a'.repeat(4096)]));
  const made = await room.make('ada', { headers });
  await room.directory.refresh();
  assert.deepEqual(room.directory.get(made.id)?.headers, headers);
});

test('hides the endpoint of another, and lets nothing be done to it', async () => {
  const { id } = await room.make('ada');
  const since = new Date(0).toISOString();
  const asks = [
    ['GET', ''],
    ['PATCH', '', { status: 'disabled' }],
    ['PUT', '', { url: goodUrl, events: ['*'] }],
    ['DELETE', ''],
    ['POST', '/rotate-secret', {}],
    ['POST', '/test', {}],
    ['POST', '/recover', { since }],
  ] as const;
  for (const [method, path, json] of asks) {
    const target = `endpoints/${id}${path}`;
    assert.equal((await room.ask('bob', method, target, { json })).status, 404, `${method} ${path}`);
    assert.equal((await room.ask('writer', method, target, { json })).status, 403, `${method} ${path}`);
    assert.equal((await room.ask(undefined, method, target, { json })).status, 401, `${method} ${path}`);
  }
  const { json: list } = await room.ask('bob', 'GET', 'endpoints');
  assert.ok(list.items.every((endpoint: { id: string }) => endpoint.id !== id));
  assert.equal((await room.ask('root', 'GET', `endpoints/${id}`)).status, 200);
});

test('lets no credential lead elsewhere what one that may do more is told', async () => {
  const { id } = await room.make('ada');
  const path = `endpoints/${id}`;
  const json = { url: `${goodUrl}/elsewhere` };
  assert.equal((await room.ask('adasHook', 'PATCH', path, { json: { events: ['a.*'] } })).status, 200);
  assert.equal((await room.ask('adasHook', 'PATCH', path, { json })).status, 403);
  const own = await room.make('adasHook');
  assert.equal((await room.ask('adasHook', 'PATCH', `endpoints/${own.id}`, { json })).status, 200);
  for (const who of ['ada', 'root']) {
    assert.equal((await room.ask(who, 'PATCH', path, { json: { url: `${goodUrl}/${who}` } })).status, 200);
  }
});

test('gives the endpoints of a member its own tenant, and refuses another', async () => {
  const own = await room.make('nora');
  assert.equal(own.tenant, 'north');
  const json = { url: goodUrl, events: ['*'], tenant: 'south' };
  const refused = await room.ask('nora', 'POST', 'endpoints', { json });
  assert.deepEqual([refused.status, refused.json.errors[0].pointer], [422, '/tenant']);
  const path = `endpoints/${own.id}`;
  const moved = await room.ask('nora', 'PATCH', path, { json: { tenant: 'south' } });
  assert.equal(moved.status, 422);
  const widened = await room.ask('nora', 'PATCH', path, { json: { tenant: null } });
  assert.deepEqual([widened.status, widened.json.tenant], [200, 'north']);
  assert.equal((await room.make('ada', { tenant: 'south' })).tenant, 'south');
});

test('gives a timestamped endpoint the mode live, and takes the mode away with the scheme', async () => {
  const made = await room.make('ada', { scheme: 'timestamped' });
  assert.equal(made.mode, 'live');
  const path = `endpoints/${made.id}`;
  const sandbox = await room.ask('ada', 'PATCH', path, { json: { mode: 'sandbox' } });
  assert.equal(sandbox.json.mode, 'sandbox');
  const plain = await room.ask('ada', 'PATCH', path, { json: { scheme: 'plain' } });
  assert.deepEqual([plain.status, plain.json.scheme, plain.json.mode], [200, 'plain', undefined]);
  assert.equal((await room.ask('ada', 'PATCH', path, { json: { mode: 'live' } })).status, 422);
});

test('keeps the signature versions of a standard endpoint, and takes them away with the scheme', async () => {
  const made = await room.make('ada', { signatures: ['v1'] });
  assert.deepEqual(made.signatures, ['v1']);
  const path = `endpoints/${made.id}`;
  const both = await room.ask('ada', 'PATCH', path, { json: { signatures: ['v1', 'v1a'] } });
  assert.deepEqual(both.json.signatures, ['v1', 'v1a']);
  const plain = await room.ask('ada', 'PATCH', path, { json: { scheme: 'plain' } });
  assert.deepEqual([plain.status, plain.json.scheme, plain.json.signatures], [200, 'plain', undefined]);
  assert.equal((await room.ask('ada', 'PATCH', path, { json: { signatures: ['v1'] } })).status, 422);
});

test('judges what stands not anew', async () => {
  const made = await room.make('ada');
  await plant(made.id, { url: 'http://10.1.2.3/' });
  const path = `endpoints/${made.id}`;
  assert.equal((await room.ask('ada', 'PATCH', path, { json: { status: 'disabled' } })).status, 200);
  assert.equal((await room.ask('ada', 'PATCH', path, { json: { url: 'http://10.1.2.4/' } })).status, 422);
});

test('clears the reason and the health of an endpoint that is enabled again', async () => {
  const { id } = await room.make('ada');
  await plant(id, { status: 'disabled', disabledReason: 'failing' });
  const health = keptRow('{"failingSince":1,"failures":9,"warnedAt":null}', 'usr_ada', 1, 1);
  const change = { table: endpointHealthTable, id, expect: { absent: true }, next: health } as const;
  await room.store.commit({ changes: [change], events: [] });
  const path = `endpoints/${id}`;
  const still = { url: goodUrl, events: ['*'], status: 'disabled', description: 'x' };
  for (const who of ['ada', 'root']) {
    const put = await room.ask(who, 'PUT', path, { json: still });
    assert.deepEqual([put.status, put.json.disabledReason], [200, 'failing'], who);
    const other = await room.ask(who, 'PATCH', path, { json: { disabledReason: 'gone' } });
    assert.deepEqual([other.status, other.json.errors?.[0]?.pointer], [400, '/disabledReason'], who);
  }
  assert.ok(await room.store.read(endpointHealthTable, id));
  const enabled = await room.ask('ada', 'PATCH', path, { json: { status: 'enabled' } });
  assert.deepEqual([enabled.status, enabled.json.disabledReason], [200, undefined]);
  assert.equal(await room.store.read(endpointHealthTable, id), undefined);
  const disabled = await room.ask('ada', 'PATCH', path, { json: { status: 'disabled' } });
  assert.equal(disabled.json.disabledReason, undefined);
});

test('takes secrets and health along with the endpoints that are removed', async () => {
  const ids: string[] = [];
  for (let at = 0; at < 4; at += 1) ids.push((await room.make('bob')).id);
  const [first = '', ...others] = ids;
  assert.equal((await room.ask('bob', 'DELETE', `endpoints/${first}`)).status, 204);
  assert.equal((await room.ask('bob', 'GET', `endpoints/${first}`)).status, 404);
  const before = await generation();
  const bulk = await room.ask('bob', 'POST', 'endpoints/bulk-delete', { json: { ids: others } });
  assert.deepEqual([bulk.status, bulk.json], [200, { deleted: 3 }]);
  assert.equal(await generation(), before + 1);
  for (const id of ids) assert.equal(await room.store.read(endpointSecretsTable, id), undefined);
});

test('makes another generation of every change, which names the endpoint', async () => {
  const { id } = await room.make('ada');
  const cases = [
    [{ description: 'x' }, 1],
    [{ maxInFlight: 3, headers: { 'X-A': 'b' } }, 1],
    [{ events: ['a.*'] }, 1],
    [{ url: `${goodUrl}/2` }, 1],
    [{ tenant: 'north' }, 1],
    [{ scheme: 'plain' }, 1],
    [{ status: 'disabled' }, 1],
  ] as const;
  for (const [json, steps] of cases) {
    const before = await generation();
    const { status, json: body } = await room.ask('ada', 'PATCH', `endpoints/${id}`, { json });
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal(await endedSince(before), steps, JSON.stringify(json));
  }
});

test('tells what failed of a unit in the numbering of the unit', async () => {
  const { directory } = room;
  const { store } = room;
  const generations = directory.generationChanges();
  const stale = { table: endpointHealthTable, id: 'ep_none', expect: { rev: 1 }, next: null };
  const before = await generation();
  const failed = await store.commit({ changes: [...generations, stale], events: [] });
  assert.partialDeepStrictEqual(failed, { outcome: 'superseded', change: generations.length });
  const event = { id: 'evt_twice', type: 'a.b', collection: '', owner: null, doc: '{}', createdAt: 1 };
  assert.equal((await store.commit({ changes: generations, events: [event] })).outcome, 'committed');
  const again = await store.commit({ changes: generations, events: [event] });
  assert.partialDeepStrictEqual(again, { outcome: 'superseded', change: generations.length });
  assert.equal(await endedSince(before), 1, 'what failed changed nothing');
});

test('refuses endpoints beyond the bound', async (context) => {
  const count = [...room.directory.all()].length;
  const small = await walkEndpoints(await opened, context, { endpointsMax: count + 1 });
  const json = { url: goodUrl, events: ['*'] };
  assert.equal((await small.ask('ada', 'POST', 'endpoints', { json })).status, 201);
  await small.directory.refresh();
  const refused = await small.ask('ada', 'POST', 'endpoints', { json });
  assert.deepEqual([refused.status, refused.json.code], [409, 'endpoints_exhausted']);
});

test('refuses endpoints of one owner beyond the bound, also of requests at once, and none of others', async (context) => {
  const own = room.directory.countOf('usr_bob');
  const small = await walkEndpoints(await opened, context, { endpointsPerOwnerMax: own + 3 });
  assert.equal(small.directory.countOf('usr_bob'), own);
  const json = { url: goodUrl, events: ['*'] };
  const asked = await Promise.all(
    Array.from({ length: 8 }, () => small.ask('bob', 'POST', 'endpoints', { json })),
  );
  const refused = asked.filter(({ status }) => status !== 201);
  assert.equal(refused.length, 5);
  for (const { status, json: problem } of refused) {
    assert.equal(status, 409);
    assert.equal(
      problem.error,
      `the limit of ${own + 3} endpoints is reached (COMITY_ENDPOINTS_PER_OWNER_MAX)`,
    );
  }
  assert.equal((await small.ask('nora', 'POST', 'endpoints', { json })).status, 201);
});

for (const [engine, open] of engines) {
  test(`makes every endpoint of many at once, and fails no condition for it (${engine})`, async (context) => {
    const stores = await open(context);
    const [one, other] = [await walkEndpoints(stores[0], context), await walkEndpoints(stores[1], context)];
    const standing = await one.make('ada');
    const tag = (await one.ask('ada', 'GET', `endpoints/${standing.id}`)).field('etag') ?? '';
    const before = await generation(one);
    const json = { url: goodUrl, events: ['*'] };
    const makes = [one, other].flatMap((room) =>
      Array.from({ length: 16 }, () => room.ask('ada', 'POST', 'endpoints', { json })),
    );
    const change = { json: { events: ['a.*'] }, headers: { 'If-Match': tag } };
    const changed = other.ask('ada', 'PATCH', `endpoints/${standing.id}`, change);
    assert.deepEqual(new Set((await Promise.all(makes)).map(({ status }) => status)), new Set([201]));
    assert.equal((await changed).status, 200);
    assert.equal(await endedSince(before, one), 33);
    const stale = await one.ask('ada', 'PATCH', `endpoints/${standing.id}`, change);
    assert.equal(stale.status, 412);
  });
}

async function plant(id: string, members: object): Promise<void> {
  await room.directory.refresh();
  const row = await room.store.read('endpoints', id);
  assert.ok(row);
  const next = {
    ...row,
    doc: JSON.stringify({ ...JSON.parse(row.doc), ...members }),
    search: '',
    references: [],
  };
  const change = { table: 'endpoints', id, expect: { rev: row.rev }, next };
  const commit = await room.store.commit({
    changes: [change, ...room.directory.generationChanges()],
    events: [],
  });
  assert.equal(commit.outcome, 'committed');
  await room.directory.refresh();
}

async function generation({ store }: Pick<WalkedEndpoints, 'store'> = room): Promise<number> {
  const row = await store.read(generationRow.table, generationRow.id);
  return row?.rev ?? 0;
}

/** Number of generations that ended since one of the last. */
async function endedSince(rev: number, { store }: Pick<WalkedEndpoints, 'store'> = room): Promise<number> {
  const row = await store.read(generationRow.table, generationRow.id);
  if (row?.rev === rev) return 0;
  const { ended } = JSON.parse(row?.doc ?? '') as { readonly ended: readonly { readonly rev: number }[] };
  const from = ended.findIndex((each) => each.rev === rev);
  assert.ok(from >= 0, 'one of the last');
  return ended.length - from;
}
