/** The bounds of aggregates (§4.18.5), at their edges. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serverOfFile } from '../../harness/running-server.ts';

const program = await serverOfFile({
  env: {
    COMITY_AGGREGATE_GROUPS_MAX: '3',
    COMITY_PAGE_BYTES_MAX: '1024',
  },
  bounds: { aggregateColumnsMax: 2 },
});
const path = '/api/v1/notes';
const query = (json: unknown) => program.send('QUERY', path, { json });
const grouped = { groupBy: ['text'], aggregate: { count: true } };

async function note(text: string): Promise<void> {
  assert.equal((await program.send('POST', path, { json: { text } })).status, 201);
}

test('takes as many groups as the setting allows, and refuses one more with 422', async () => {
  for (const text of ['a', 'b', 'c']) await note(text);
  assert.equal((await query(grouped)).status, 200);
  await note('d');
  const refused = await query(grouped);
  assert.equal(refused.status, 422);
  assert.equal(refused.json().code, 'query_unprocessable');
  assert.match(refused.body, /more than 3 groups/);
  assert.equal(
    (await query({ ...grouped, having: { count: 2 } })).status,
    422,
    'having comes after the bound',
  );
  assert.equal((await query({ ...grouped, filter: { text: { ne: 'd' } } })).status, 200);
});

test('takes as many groups and results as the setting allows, and refuses one more with 422', async () => {
  assert.equal((await query({ aggregate: { count: true, max: ['text'] } })).status, 200);
  const refused = await query({ aggregate: { count: true, max: ['text', 'createdAt'] } });
  assert.equal(refused.status, 422);
  assert.match(refused.body, /at most 2 groups and results/);
});

test('refuses groups whose texts have more octets than a page may have', async () => {
  const aggregate = { max: { most: 'text' } };
  await note('z'.repeat(1024));
  assert.equal((await query({ aggregate })).status, 200);
  await note('z'.repeat(1025));
  const refused = await query({ aggregate });
  assert.equal(refused.status, 422);
  assert.match(refused.body, /more than 1024 octets/);
});
