/** Bulk items that name documents by id or by unique members (§4.19.7), created, replaced or patched, over the running program. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import type { RunningServer } from '../../harness/running-server.ts';
import { serversOn } from '../../harness/servers-on.ts';

const config = fileURLToPath(new URL('../fixtures/stock.config.ts', import.meta.url));
const path = '/api/v1/parts';
const key = ['tenantId', 'sku'];

type Result = {
  readonly status: number;
  readonly id?: string;
  readonly unchanged?: true;
  readonly code?: string;
};

describeOnEachStore('bulk items that name documents', (engine) => {
  const start = serversOn(engine, config);
  let program: RunningServer;
  before(async () => {
    program = await start();
  });
  const bulk = (json: object) => program.send('POST', `${path}/bulk`, { json });
  const results = async (json: object): Promise<readonly Result[]> => {
    const answer = await bulk(json);
    assert.equal(answer.status, 200, answer.body);
    return answer.json().items as Result[];
  };
  const read = async (id = '') => {
    const {
      id: _,
      createdAt: __,
      updatedAt: ___,
      ...fields
    } = (await program.send('GET', `${path}/${id}`)).json();
    return fields;
  };

  test('with the same key twice in one unit are refused in words of the request, and nothing is written', async () => {
    for (const [name, items, members] of [
      [
        'new',
        [
          { tenantId: 'twice', sku: '1' },
          { tenantId: 'twice', sku: '1', price: 2 },
        ],
        key,
      ],
      [
        'in another case',
        [
          { tenantId: 'x', name: 'Ab' },
          { tenantId: 'x', name: 'aB' },
        ],
        ['name'],
      ],
    ] as const) {
      for (const mode of ['upsert', 'replace']) {
        const refused = await bulk({ items, mode, key: members });
        assert.deepEqual([refused.status, refused.json().code], [422, 'validation_failed'], name);
        assert.deepEqual(
          refused.json().errors.map(({ pointer }: { pointer: string }) => pointer),
          members.map((member) => `/items/1/${member}`),
        );
        assert.match(refused.json().error, /another item of the request has the same/);
      }
    }
    const { items } = (await program.send('GET', `${path}?tenantId=twice`)).json();
    assert.deepEqual(items, []);
    const csv = await program.send('POST', `${path}/import?atomic=true&mode=upsert&key=tenantId,sku`, {
      headers: { 'Content-Type': 'text/csv' },
      body: 'tenantId,sku\ntwice,1\ntwice,1\n',
    });
    assert.deepEqual(
      [csv.status, csv.json().errors[0].line, csv.json().errors[0].column],
      [422, 3, 1],
      csv.body,
    );
  });

  test('create what is not there, and replace or patch what is, by a unique key and by id', async () => {
    const items = [
      { tenantId: 'a', sku: '1', price: 1, name: 'one' },
      { tenantId: 'a', sku: '2' },
    ];
    const made = await results({ items, mode: 'upsert', key });
    assert.deepEqual(
      made.map(({ status }) => status),
      [201, 201],
    );
    const merged = await results({
      items: [
        { tenantId: 'a', sku: '1', price: 2, name: null },
        { tenantId: 'a', sku: '2' },
        { tenantId: 'a', sku: '3' },
      ],
      ...{ mode: 'upsert', key },
    });
    assert.deepEqual(
      merged.map(({ status, unchanged }) => [status, unchanged]),
      [
        [200, undefined],
        [200, true],
        [201, undefined],
      ],
    );
    assert.equal(merged[0]?.id, made[0]?.id);
    assert.deepEqual(await read(made[0]?.id), { tenantId: 'a', sku: '1', price: 2, count: 0 });
    const replaced = await results({
      items: [{ tenantId: 'a', sku: '1', live: true }],
      mode: 'replace',
      key: ['sku', 'tenantId'],
    });
    assert.deepEqual(
      [replaced[0]?.status, await read(made[0]?.id)],
      [200, { tenantId: 'a', sku: '1', live: true, count: 0 }],
    );
    const [byId, gone] = await results({
      items: [
        { id: made[1]?.id, price: 9 },
        { id: 'none', price: 9 },
      ],
      mode: 'upsert',
      atomic: false,
    });
    assert.deepEqual(
      [byId?.status, gone?.code, await read(made[1]?.id)],
      [200, 'not_found', { tenantId: 'a', sku: '2', price: 9, count: 0 }],
    );
  });

  test('are refused by merge where they name nothing that exists, and patch what does', async () => {
    const [made] = await results({ items: [{ tenantId: 'm', sku: '1', price: 1 }] });
    const merged = await results({
      items: [
        { tenantId: 'm', sku: '1', price: 2 },
        { tenantId: 'm', sku: '2' },
      ],
      ...{ mode: 'merge', key, atomic: false },
    });
    assert.deepEqual(
      [merged[0]?.id, merged.map(({ status, code }) => [status, code])],
      [
        made?.id,
        [
          [200, undefined],
          [404, 'not_found'],
        ],
      ],
    );
    const byId = await results({
      items: [{ id: made?.id, price: 3 }, { id: 'none', price: 3 }, { price: 3 }],
      ...{ mode: 'merge', atomic: false },
    });
    assert.deepEqual(
      byId.map(({ status, code }) => [status, code]),
      [
        [200, undefined],
        [404, 'not_found'],
        [422, 'validation_failed'],
      ],
    );
    const whole = await bulk({
      items: [
        { tenantId: 'm', sku: '1', price: 4 },
        { tenantId: 'm', sku: '2' },
      ],
      mode: 'merge',
      key,
    });
    assert.deepEqual([whole.status, (await read(made?.id)).price], [404, 3]);
  });

  test('are refused as single requests are, each fault with its item', async () => {
    const [held] = await results({ items: [{ tenantId: 'r', sku: '1' }] });
    for (const [json, status, code, pointer] of [
      [
        { items: [{ tenantId: 'r', sku: '1', price: -1 }], mode: 'upsert', key },
        422,
        'validation_failed',
        '/items/0/price',
      ],
      [
        { items: [{ id: held?.id, tenantId: 's' }], mode: 'upsert' },
        400,
        'field_unpatchable',
        '/items/0/tenantId',
      ],
      [{ items: [{ tenantId: 'r' }], mode: 'upsert', key }, 422, 'validation_failed', '/items/0/sku'],
      [
        { items: [{ tenantId: 'q', sku: '1', price: 'x' }], mode: 'replace', key },
        422,
        'validation_failed',
        '/items/0/price',
      ],
      [{ items: [], mode: 'upsert', key: ['price'] }, 422, 'validation_failed', '/key'],
      [{ items: [], key }, 422, 'validation_failed', '/key'],
      [{ items: [], mode: 'update' }, 422, 'validation_failed', '/mode'],
      [{ items: [], mode: 'upsert', import: true }, 422, 'validation_failed', '/mode'],
    ] as const) {
      const answer = await bulk(json);
      const [error] = answer.json().errors as { pointer: string }[];
      assert.deepEqual(
        [answer.status, answer.json().code, error?.pointer],
        [status, code, pointer],
        answer.body,
      );
    }
  });

  test('of one key that many send at once change one document, and none is refused', async () => {
    const many = Array.from({ length: 200 }, (_, count) => ({ tenantId: 'race', sku: 's', count }));
    const answers = await Promise.all(
      many.map((item, at) => bulk({ items: [item], mode: 'upsert', key, atomic: at % 2 === 0 })),
    );
    const statuses = answers.map((answer) =>
      answer.status === 200 ? (answer.json().items as Result[])[0]?.status : answer.body,
    );
    assert.deepEqual(
      statuses.filter((status) => status !== 200 && status !== 201),
      [],
    );
    assert.equal(statuses.filter((status) => status === 201).length, 1);
    const found = await program.send('GET', `${path}?tenantId=race`);
    assert.equal((found.json().items as unknown[]).length, 1);
  });
});
