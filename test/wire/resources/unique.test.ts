/** Members that are unique together or without regard to case (§2.1.7), and filters without regard to case, over the running program. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import type { RunningServer } from '../../harness/running-server.ts';
import { serversOn } from '../../harness/servers-on.ts';

const config = fileURLToPath(new URL('../fixtures/stock.config.ts', import.meta.url));
const path = '/api/v1/parts';

describeOnEachStore('unique members', (engine) => {
  const start = serversOn(engine, config);
  let program: RunningServer;
  before(async () => {
    program = await start();
  });
  const post = (json: object) => program.send('POST', path, { json });

  test('refuses values that are taken together, and names each member', async () => {
    assert.equal((await post({ tenantId: 'a', sku: 's' })).status, 201);
    const again = await post({ tenantId: 'a', sku: 's' });
    assert.equal(again.status, 409);
    assert.deepEqual(again.json(), {
      error: 'tenantId and sku are already in use together',
      code: 'unique_taken',
      errors: [
        { pointer: '/tenantId', message: 'already in use together with sku' },
        { pointer: '/sku', message: 'already in use together with tenantId' },
      ],
    });
    for (const json of [{ sku: 'S' }, { sku: null }, { sku: null }, {}, {}])
      assert.equal((await post({ tenantId: 'a', ...json })).status, 201);
    const bulk = {
      items: [
        { tenantId: 'b', sku: 's' },
        { tenantId: 'b', sku: 's' },
      ],
    };
    const both = await program.send('POST', `${path}/bulk`, { json: bulk });
    const pointers = (both.json().errors as { pointer: string }[]).map(({ pointer }) => pointer);
    assert.deepEqual([both.status, pointers], [409, ['/items/1/tenantId', '/items/1/sku']]);
  });

  test('disregards case where it is declared, also of letters beyond ASCII', async () => {
    const made = await post({ tenantId: 'c', name: 'Örtliche ΣΤΟΆ' });
    assert.equal(made.json().name, 'Örtliche ΣΤΟΆ');
    const again = await post({ tenantId: 'd', name: 'öRTLICHE στοά' });
    assert.deepEqual(
      [again.status, again.json().errors],
      [409, [{ pointer: '/name', message: 'already in use' }]],
    );
    const respelt = await program.send('PATCH', `${path}/${made.json().id}`, {
      json: { name: 'örtliche ΣΤΟΆ' },
    });
    assert.equal(respelt.status, 200, 'its own value is free');
  });

  test('filters without regard to case in every language of queries', async () => {
    for (const name of ['Schräge Mutter', 'SCHRÄGE Bolzen', 'Gerade Mutter', '50%'])
      assert.equal((await post({ tenantId: 'f', name })).status, 201);
    const found = (answer: Awaited<ReturnType<typeof post>>) => {
      assert.equal(answer.status, 200, answer.body);
      return (answer.json().items as { name: string }[]).map(({ name }) => name).sort();
    };
    const get = async (query: string) => found(await program.send('GET', `${path}?tenantId=f&${query}`));
    const query = async (type: string, body: string) =>
      found(await program.send('QUERY', path, { headers: { 'Content-Type': type }, body }));
    const nut = ['Schräge Mutter'];
    const slanted = ['SCHRÄGE Bolzen', 'Schräge Mutter'];
    assert.deepEqual(await get(`name[eqi]=${encodeURIComponent('SCHRÄGE MUTTER')}`), nut);
    assert.deepEqual(await get(`name[ilike]=${encodeURIComponent('schrä%')}`), slanted);
    assert.deepEqual(await get(`name[ilike]=${encodeURIComponent('50\\%')}`), ['50%']);
    const json = (filter: object) => query('application/json', JSON.stringify({ filter }));
    assert.deepEqual(await json({ name: { eqi: 'schräge mutter' } }), nut);
    assert.deepEqual(await json({ tenantId: { eqi: 'F' }, not: { name: { ilike: '%MUTTER' } } }), [
      '50%',
      'SCHRÄGE Bolzen',
    ]);
    const sql = (where: string) => query('application/sql', `SELECT * FROM parts WHERE ${where}`);
    assert.deepEqual(await sql(`name ILIKE 'SCHRÄ%'`), slanted);
    assert.deepEqual(await sql(`tenantId = 'f' AND name NOT ILIKE '%mutter'`), ['50%', 'SCHRÄGE Bolzen']);
    const refused = await program.send('GET', `${path}?price[eqi]=1`);
    assert.match(String(refused.json().error), /unknown operator "eqi" for "price"/);
    const plan = await program.send('GET', `${path}?name[eqi]=x`, { headers: { Prefer: 'plan' } });
    assert.equal(plan.headers['comity-plan'], 'one;words="Looks up at most one document by name."');
  });
});
