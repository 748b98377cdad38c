/** `/meta/slow-lists` (§4.21.7) over the running program. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openClient, register } from '../../harness/account-client.ts';
import { serverOfFile, startServer } from '../../harness/running-server.ts';

const path = '/api/v1/meta/slow-lists';
const program = await serverOfFile({ env: { COMITY_SLOW_LIST_MS: '0' } });

type Slow = { list: string; filter: string; sort: string; plan: string; count: number; maxMs: number };

async function listed(at = program): Promise<readonly Slow[]> {
  const { status, body } = await at.send('GET', path);
  assert.equal(status, 200, body);
  return (JSON.parse(body) as { items: Slow[] }).items;
}

test('lists the shapes of GET and QUERY with their plan and times, without values', async () => {
  const target = '/api/v1/products';
  for (const name of ['one', 'two', 'three']) await program.send('GET', `${target}?name=${name}&sort=-price`);
  await program.send('QUERY', target, { json: { filter: { name: 'four' }, sort: ['-price'] } });
  await program.send('QUERY', target, { json: { aggregate: { count: true }, groupBy: ['name'] } });
  const items = await listed();
  const scanned = items.find(({ filter }) => filter === 'name eq');
  assert.deepEqual(
    [scanned?.list, scanned?.sort, scanned?.plan, scanned?.count],
    ['products', '-price,-id', 'scan', 4],
  );
  assert.ok((scanned?.maxMs ?? -1) >= 0);
  assert.ok(items.some(({ plan, sort }) => plan === 'groups' && sort === 'groups by name'));
  for (const value of ['one', 'four']) assert.ok(!JSON.stringify(items).includes(value));
});

test('notes no list that took less than COMITY_SLOW_LIST_MS', async (t) => {
  const patient = await startServer({ env: { COMITY_SLOW_LIST_MS: '3600000' } });
  t.after(() => patient.stop());
  await patient.send('GET', '/api/v1/products?name=a');
  assert.deepEqual(await listed(patient), []);
});

test('shows slow lists to administrators alone', async (t) => {
  const client = openClient(program.port);
  t.after(() => client.close());
  const { token } = await register(client, 'ada@slow.example', 'correct horse battery staple');
  assert.equal((await client.ask('GET', path)).status, 401);
  const headers = { Authorization: `Bearer ${token}` };
  assert.equal((await client.ask('GET', path, { headers })).status, 403);
});
