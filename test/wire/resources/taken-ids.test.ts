/** Ids that are paths of the operations and actions of a collection (§2.1.5): no document gets one, by whichever way it is made. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serverOfFile } from '../../harness/running-server.ts';

const program = await serverOfFile({
  config: new URL('./fixtures/taken-ids.config.ts', import.meta.url).pathname,
});
const path = '/api/v1/pages';
const json = { text: 'a page' };
const taken = ['bulk', 'bulk-delete', 'import', 'cleaning', 'write'];
const reason = (id: string): string =>
  `"${id}" cannot be an id, because it is the path of an operation of the collection: ${taken.join(', ')}`;

test('PUT to the path of an operation creates nothing, however the path is written', async () => {
  for (const id of ['bulk', 'bulk-delete', 'import', 'write', '%62ulk', 'bul%6B-delete']) {
    const answer = await program.send('PUT', `${path}/${id}`, { json });
    assert.equal(answer.status, 405, `${id}: ${answer.body}`);
    assert.match(String(answer.headers.allow), /POST/);
  }
  const other = await program.send('PUT', `${path}/cleaning`, { json });
  assert.equal(other.status, 422, other.body);
  assert.deepEqual(other.json().errors, [{ pointer: '/id', message: reason('cleaning') }]);
  for (const id of ['Bulk', 'bulks', 'bulk.', 'history', 'export']) {
    assert.equal((await program.send('PUT', `${path}/${id}`, { json })).status, 201, id);
    assert.equal((await program.send('GET', `${path}/${id}`)).status, 200, id);
  }
});

test('an import refuses an item whose id is such a path, and a function cannot create one', async () => {
  for (const id of taken) {
    const items = [
      { id: `beside-${id}`, ...json },
      { id, ...json },
    ];
    const refused = await program.send('POST', `${path}/bulk`, { json: { items, import: true } });
    assert.equal(refused.status, 422, refused.body);
    assert.deepEqual(refused.json().errors, [{ pointer: '/items/1/id', message: reason(id) }]);
    const each = await program.send('POST', `${path}/bulk`, {
      json: { items, import: { existing: 'skip' }, atomic: false },
    });
    const results = each.json().items as { status: number; code?: string }[];
    assert.deepEqual(
      results.map(({ status }) => status),
      [201, 422],
    );
    const made = await program.send('POST', `${path}/write`, { json: { id } });
    assert.equal(made.status, 422, made.body);
    assert.match(made.body, /cannot be an id, because it is the path of an operation/);
  }
  const list = await program.send('GET', `${path}?limit=1000`);
  const ids = (list.json().items as { id: string }[]).map(({ id }) => id);
  assert.deepEqual(
    ids.filter((id) => taken.includes(id)),
    [],
  );
});
