/** PATCH of a collection (§4.19.8): every document that a filter finds, in one unit, with the rights of each, over the running program. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import type { RunningServer } from '../../harness/running-server.ts';
import { serversOn } from '../../harness/servers-on.ts';

const config = fileURLToPath(new URL('../fixtures/stock.config.ts', import.meta.url));
const path = '/api/v1/parts';
const itemsMax = 50;

describeOnEachStore('PATCH of a collection', (engine) => {
  const start = serversOn(engine, config);
  let program: RunningServer;
  before(async () => {
    program = await start({ COMITY_BULK_ITEMS_MAX: String(itemsMax) });
  });
  const fill = async (tenantId: string, count: number, headers = {}) => {
    const items = Array.from({ length: count }, (_, at) => ({ tenantId, sku: String(at), count: at }));
    const answer = await program.send('POST', `${path}/bulk`, { json: { items }, headers });
    assert.equal(answer.status, 200, answer.body);
  };
  const patch = (json: object, headers = {}) => program.send('PATCH', path, { json, headers });
  const counted = async (filter: object): Promise<unknown> => {
    const json = { filter, aggregate: { count: true } };
    const answer = await program.send('QUERY', path, { json });
    return (answer.json().items as { count: number }[])[0]?.count;
  };

  test('patches what the filter finds in one unit, up to the bound, and counts it before on request', async () => {
    await fill('many', itemsMax);
    const json = {
      filter: { tenantId: 'many', count: { gte: 10 } },
      patch: { live: true, box: { size: 2 } },
    };
    const dry = await patch({ ...json, dryRun: true });
    assert.deepEqual([dry.status, dry.json()], [200, { changed: 40, unchanged: 0, refused: 0 }]);
    assert.equal(await counted({ live: true }), 0);
    assert.deepEqual((await patch(json)).json(), { changed: 40, unchanged: 0, refused: 0 });
    assert.deepEqual((await patch(json)).json(), { changed: 0, unchanged: 40, refused: 0 });
    const events = await program.send('GET', '/api/v1/events?type=parts.updated&limit=1000');
    assert.equal((events.json().items as unknown[]).length, 40);
    assert.deepEqual((await patch({ filter: { tenantId: 'many' }, patch: { price: 1 } })).json(), {
      changed: itemsMax,
      unchanged: 0,
      refused: 0,
    });
    await fill('more', 1);
    const more = await patch({ filter: { tenantId: { in: ['many', 'more'] } }, patch: { price: 2 } });
    assert.deepEqual([more.status, more.json().code], [422, 'query_unprocessable']);
    assert.equal(await counted({ price: 2 }), 0);
  });

  test('changes nothing where one document refuses the patch, and names it', async () => {
    await fill('all', 5);
    for (const [change, status, code, pointer] of [
      [{ price: -1 }, 422, 'validation_failed', '/patch/price'],
      [{ tenantId: 'x' }, 400, 'field_unpatchable', '/patch/tenantId'],
      [{ sku: 'same' }, 409, 'unique_taken', '/patch/tenantId'],
    ] as const) {
      const answer = await patch({ filter: { tenantId: 'all' }, patch: change });
      const [error] = answer.json().errors as { pointer: string }[];
      assert.deepEqual(
        [answer.status, answer.json().code, error?.pointer],
        [status, code, pointer],
        answer.body,
      );
    }
    assert.equal(await counted({ tenantId: 'all', sku: 'same' }), 0);
    for (const [json, status] of [
      [{ patch: {} }, 400],
      [{ filter: { nope: 1 }, patch: {} }, 422],
      [{ filter: {}, patch: [] }, 422],
      [{ filter: {}, patch: {}, dry: true }, 422],
    ] as const)
      assert.equal((await patch(json)).status, status, JSON.stringify(json));
  });

  test('leaves and counts what the caller may not change', async () => {
    const account = async (email: string) => {
      const made = await program.send('POST', '/api/v1/auth/register', {
        json: { email, password: 'a long password 1' },
      });
      return { Authorization: `Bearer ${made.json().token}` };
    };
    const [ada, bob] = [await account('ada@example.com'), await account('bob@example.com')];
    await fill('ada', 3, ada);
    await fill('bob', 4, bob);
    const json = { filter: { tenantId: { in: ['ada', 'bob'] } }, patch: { price: 3 } };
    assert.deepEqual((await patch(json, ada)).json(), { changed: 3, unchanged: 0, refused: 4 });
    assert.equal(await counted({ tenantId: 'bob', price: 3 }), 0);
    const theirs = {
      items: [{ tenantId: 'bob', sku: '1', price: 9 }],
      mode: 'merge',
      key: ['tenantId', 'sku'],
    };
    assert.equal((await program.send('POST', `${path}/bulk`, { json: theirs, headers: ada })).status, 403);
  });

  test('loses no change of documents that others change meanwhile', async () => {
    await fill('busy', 20);
    const { items } = (await program.send('GET', `${path}?tenantId=busy&limit=20`)).json() as {
      items: { id: string }[];
    };
    const single = items.flatMap(({ id }) =>
      [1, 2, 3].map((price) => program.send('PATCH', `${path}/${id}`, { json: { price } })),
    );
    const all = [5, 6, 7].map((size) => patch({ filter: { tenantId: 'busy' }, patch: { box: { size } } }));
    for (const answer of await Promise.all([...single, ...all]))
      assert.equal(answer.status, 200, answer.body);
    assert.equal(
      await counted({ tenantId: 'busy', 'box.size': { in: [5, 6, 7] }, price: { in: [1, 2, 3] } }),
      20,
    );
    const sizes = await program.send('QUERY', path, {
      json: { filter: { tenantId: 'busy' }, groupBy: ['box.size'] },
    });
    assert.equal((sizes.json().items as unknown[]).length, 1, 'each is one unit');
  });
});
