/** Groups by the day, week, month and year of a time zone (§4.18.6), in each language and from functions, over the running program. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import type { RunningServer } from '../../harness/running-server.ts';
import { serversOn } from '../../harness/servers-on.ts';

const config = fileURLToPath(new URL('../fixtures/stock.config.ts', import.meta.url));
const path = '/api/v1/parts';
const sales = [
  ['a', '2026-03-31T21:59:59Z', 1],
  ['a', '2026-03-31T22:00:00Z', 10],
  ['a', '2026-04-01T00:00:00+02:00', 100],
  ['b', '2026-03-29T00:59:59.999Z', 0.1],
  ['b', '2026-03-29T01:00:00Z', 0.2],
  ['b', undefined, 7],
] as const;

describeOnEachStore('groups by periods', (engine) => {
  const start = serversOn(engine, config);
  let program: RunningServer;
  before(async () => {
    program = await start();
    const items = sales.map(([tenantId, soldAt, price]) => ({ tenantId, price, ...(soldAt && { soldAt }) }));
    assert.equal((await program.send('POST', `${path}/bulk`, { json: { items } })).status, 200);
  });
  const asked = async (type: string, body: string) => {
    const answer = await program.send('QUERY', path, { headers: { 'Content-Type': type }, body });
    return answer.status === 200 ? answer.json().items : answer.json();
  };
  const json = (query: object) => asked('application/json', JSON.stringify(query));
  const byMonth = { by: 'soldAt', unit: 'month', timeZone: 'Europe/Berlin' };

  test('groups a time by its period in a time zone, in JSON and in SQL', async () => {
    const expected = [
      { soldAt: null, count: 1, sum_price: 7 },
      { soldAt: '2026-03-01', count: 3, sum_price: 1.3 },
      { soldAt: '2026-04-01', count: 2, sum_price: 110 },
    ];
    assert.deepEqual(
      await json({ groupBy: [byMonth], aggregate: { count: true, sum: ['price'] } }),
      expected,
    );
    const month = `date_trunc('month', soldAt, 'Europe/Berlin')`;
    const sql = `SELECT ${month}, count(*), sum(price) FROM parts GROUP BY ${month} ORDER BY ${month}`;
    assert.deepEqual(await asked('application/sql', sql), expected);
    const utc = await json({
      groupBy: [{ by: 'soldAt', unit: 'day', as: 'day' }],
      aggregate: { count: true },
      having: { day: { gte: '2026-03-30' } },
    });
    assert.deepEqual(utc, [{ day: '2026-03-31', count: 3 }]);
    const both = await json({
      groupBy: [
        { ...byMonth, as: 'month' },
        { ...byMonth, unit: 'week', as: 'week' },
      ],
      sort: ['-week'],
      aggregate: { count: true },
      limit: 2,
    });
    assert.deepEqual(both, [
      { month: '2026-03-01', week: '2026-03-30', count: 1 },
      { month: '2026-04-01', week: '2026-03-30', count: 2 },
    ]);
    const made = await json({
      groupBy: [{ by: 'createdAt', unit: 'year', timeZone: 'Pacific/Auckland' }],
      aggregate: { count: true },
    });
    assert.equal(
      (made as { count: number }[]).reduce((sum, { count }) => sum + count, 0),
      sales.length,
    );
  });

  test('says what a group by a period takes', async () => {
    for (const [group, said] of [
      [{ ...byMonth, unit: 'hour' }, /^unit takes day, week, month, year, not "hour"/],
      [{ ...byMonth, timeZone: 'Mars/Olympus' }, /^timeZone takes a name of the IANA database/],
      [{ ...byMonth, timeZone: "x'; DROP TABLE parts" }, /^timeZone takes a name/],
      [{ ...byMonth, by: 'name' }, /^"name" has no times/],
      [{ ...byMonth, zone: 'x' }, /^unknown member "zone"/],
      [7, /^groupBy takes field names/],
    ] as const) {
      const answer = (await json({
        groupBy: ['tenantId', group, {}].slice(0, 2),
        aggregate: { count: true },
      })) as { error: string };
      assert.match(String(answer.error), said);
    }
    const sql = `SELECT date_trunc('week', soldAt), count(*) FROM parts GROUP BY tenantId`;
    assert.match(
      String(((await asked('application/sql', sql)) as { error: string }).error),
      /must be in GROUP BY/,
    );
  });

  test('are computed for functions, of committed documents alone', async () => {
    const answer = await program.send('POST', '/api/v1/sold', { json: { timeZone: 'Europe/Berlin' } });
    assert.deepEqual(answer.json(), [
      { tenantId: 'a', month: '2026-04-01', count: 2, sum_price: 110 },
      { tenantId: 'b', month: '2026-03-01', count: 2, sum_price: 0.3 },
    ]);
    const refused = await program.send('POST', '/api/v1/sold', { json: { timeZone: 'Nowhere' } });
    assert.equal(refused.status, 422, refused.body);
    const written = await program.send('POST', '/api/v1/sold', { json: { timeZone: 'UTC', writes: true } });
    assert.equal(written.status, 500);
  });
});
