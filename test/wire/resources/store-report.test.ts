/** `/meta/store` (§4.21.5) over the running program. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openClient, register } from '../../harness/account-client.ts';
import { serverOfFile } from '../../harness/running-server.ts';

const program = await serverOfFile();
const path = '/api/v1/meta/store';

test('tells the size of the store, the documents and the indexes of each collection', async () => {
  for (const name of ['a', 'b', 'c']) await program.send('POST', '/api/v1/categories', { json: { name } });
  const { status, body } = await program.send('GET', path);
  assert.equal(status, 200, body);
  const { engine, readAt, bytes, disk, schemaVersion, collections, migrations } = JSON.parse(body);
  const isOnPostgres = process.env.COMITY_TEST_STORE === 'postgres';
  assert.equal(engine, isOnPostgres ? 'postgresql' : 'sqlite');
  if (isOnPostgres) assert.equal(disk, null);
  else assert.ok(disk.freeBytes > 0 && disk.bytes >= disk.freeBytes, JSON.stringify(disk));
  assert.ok(Date.parse(readAt) <= Date.now() && bytes > 0 && schemaVersion >= 1);
  const of = (wanted: string) => collections.find(({ name }: { name: string }) => name === wanted);
  const { documents, isEstimate, bytes: size } = of('categories');
  assert.deepEqual([documents, isEstimate], [3, false]);
  assert.equal(size !== null, isOnPostgres);
  const { indexes } = of('products');
  assert.ok(
    indexes.some(
      ({ kind, fields }: { kind: string; fields: string[] }) => kind === 'unique' && fields[0] === 'sku',
    ),
  );
  for (const { stands } of indexes) assert.equal(stands, true);
  assert.notEqual(of('users'), undefined);
  assert.deepEqual(migrations, []);
});

test('shows the store to administrators alone', async (t) => {
  const client = openClient(program.port);
  t.after(() => client.close());
  const { token } = await register(client, 'ada@report.example', 'correct horse battery staple');
  assert.equal((await client.ask('GET', path)).status, 401);
  const headers = { Authorization: `Bearer ${token}` };
  assert.equal((await client.ask('GET', path, { headers })).status, 403);
});
