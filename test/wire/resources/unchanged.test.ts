/** A PATCH or PUT that changes nothing makes no version and no event (§4.5, §4.6), and is answered like any other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Answer } from '../../harness/exchange.ts';
import { serverOfFile } from '../../harness/running-server.ts';

const config = fileURLToPath(new URL('../fixtures/busy.config.ts', import.meta.url));
const base = '/api/v1';
const mergePatch = { 'Content-Type': 'application/merge-patch+json' };
const jsonPatch = { 'Content-Type': 'application/json-patch+json' };

const program = await serverOfFile({ config });

async function make(path: string, json: unknown): Promise<string> {
  const made = await program.send('POST', path, { json });
  assert.equal(made.status, 201, made.body);
  return `${path}/${String(made.json().id)}`;
}

async function eventsOf(path: string): Promise<number> {
  const list = await program.send('GET', `${base}/events?limit=200`);
  const id = path.split('/').at(-1);
  const items = list.json().items as readonly { readonly data?: { readonly object?: { id?: string } } }[];
  return items.filter((event) => event.data?.object?.id === id).length;
}

/** What a GET says, and how many events there were. */
async function stateOf(path: string): Promise<readonly unknown[]> {
  const got = await program.send('GET', path);
  return [got.headers.etag, got.headers['last-modified'], got.body, await eventsOf(path)];
}

type Change = readonly [title: string, send: (path: string) => Promise<Answer>, status: number];

const changes: readonly Change[] = [
  [
    'a merge patch',
    (path) => program.send('PATCH', path, { json: { title: 'same' }, headers: mergePatch }),
    200,
  ],
  ['an empty merge patch', (path) => program.send('PATCH', path, { json: {}, headers: mergePatch }), 200],
  [
    'a JSON Patch that puts back what it took away',
    (path) =>
      program.send('PATCH', path, {
        json: [
          { op: 'remove', path: '/marks/1' },
          { op: 'add', path: '/marks/-', value: 'b' },
        ],
        headers: jsonPatch,
      }),
    200,
  ],
  [
    'a PUT whose members stand in another order',
    (path) => program.send('PUT', path, { json: { title: 'same', marks: ['a', 'b'] } }),
    200,
  ],
  [
    'a PATCH with return=minimal',
    (path) =>
      program.send('PATCH', path, {
        json: { title: 'same' },
        headers: { ...mergePatch, Prefer: 'return=minimal' },
      }),
    204,
  ],
];

for (const [title, send, status] of changes) {
  test(`${title} that changes nothing keeps ETag, updatedAt and the event log`, async () => {
    const path = await make(`${base}/tallies`, { marks: ['a', 'b'], title: 'same' });
    const stood = await stateOf(path);
    const answer = await send(path);
    assert.equal(answer.status, status, answer.body);
    if (status === 200) assert.deepEqual(answer.json(), (await program.send('GET', path)).json());
    assert.deepEqual(await stateOf(path), stood);
  });
}

test('the answer to a PATCH that changes nothing has the present ETag, which a next change may name', async () => {
  const path = await make(`${base}/tallies`, { marks: [] });
  const { etag } = (await program.send('GET', path)).headers;
  const same = await program.send('PATCH', path, { json: { marks: [] }, headers: mergePatch });
  assert.equal(same.headers.etag, etag);
  const headers = { ...mergePatch, 'If-Match': String(etag) };
  assert.equal((await program.send('PATCH', path, { json: { title: 'new' }, headers })).status, 200);
});

test('a precondition that does not hold is 412 also where nothing would change', async () => {
  const path = await make(`${base}/tallies`, { marks: [] });
  const headers = { ...mergePatch, 'If-Match': '"0"' };
  assert.equal((await program.send('PATCH', path, { json: { marks: [] }, headers })).status, 412);
});

test('a repetition under one Idempotency-Key has the ETag of the first answer', async () => {
  const path = await make(`${base}/tallies`, { marks: [] });
  const { etag } = (await program.send('GET', path)).headers;
  const headers = { ...mergePatch, 'Idempotency-Key': '"nothing-changed"' };
  const ask = () => program.send('PATCH', path, { json: { marks: [] }, headers });
  assert.equal((await ask()).headers.etag, etag);
  const changed = await program.send('PATCH', path, { json: { title: 'new' }, headers: mergePatch });
  assert.notEqual(changed.headers.etag, etag);
  const again = await ask();
  assert.deepEqual([again.status, again.headers.etag], [200, etag]);
});

test('an asynchronous PATCH that changes nothing succeeds and makes no event', async () => {
  const path = await make(`${base}/tallies`, { marks: [] });
  const stood = await stateOf(path);
  const headers = { ...mergePatch, Prefer: 'respond-async' };
  const accepted = await program.send('PATCH', path, { json: { marks: [] }, headers });
  assert.equal(accepted.status, 202, accepted.body);
  let status = 200;
  while (status === 200) {
    const operation = await program.send('GET', String(accepted.headers.location));
    status = operation.status;
    if (status === 200) assert.equal(operation.json().status, 'pending', operation.body);
  }
  assert.equal(status, 303);
  assert.deepEqual(await stateOf(path), stood);
});

const hooks = 'https://hooks.example.com/';
const builtIn: readonly (readonly [string, () => Promise<string>, Readonly<Record<string, unknown>>])[] = [
  ['a key', () => make(`${base}/keys`, { name: 'same', kind: 'secret', scopes: ['read'] }), { name: 'same' }],
  [
    'an endpoint',
    () => make(`${base}/endpoints`, { url: hooks, events: ['a.b'] }),
    { events: ['a.b'], url: hooks },
  ],
  [
    'an endpoint with header fields',
    () => make(`${base}/endpoints`, { url: hooks, events: ['a.b'], headers: { 'X-Key': 'kept' } }),
    { url: hooks },
  ],
  [
    'an endpoint by the masks of its header fields',
    () => make(`${base}/endpoints`, { url: hooks, events: ['a.b'], headers: { 'X-Key': 'kept' } }),
    { headers: { 'X-Key': '********' } },
  ],
  ['an account', () => make(`${base}/users`, { email: 'same@example.com' }), { email: 'same@example.com' }],
];

for (const [what, makeOne, json] of builtIn) {
  test(`a PATCH of ${what} that changes nothing keeps ETag, updatedAt and the audit trail`, async () => {
    const path = await makeOne();
    const audited = async () => (await program.send('GET', `${base}/audit?limit=200`)).body;
    const stood = [...(await stateOf(path)), await audited()];
    const answer = await program.send('PATCH', path, { json, headers: mergePatch });
    assert.equal(answer.status, 200, answer.body);
    assert.deepEqual([...(await stateOf(path)), await audited()], stood);
  });
}
