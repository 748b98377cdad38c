/** All documents of a list, for every kind of function, on both stores: more than one page has. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createComity } from 'comity';
import { engineNames } from '../../harness/engine-names.ts';
import type { Answer } from '../../harness/exchange.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';
import configuration from './fixtures/read-all.config.ts';

const config = fileURLToPath(new URL('./fixtures/read-all.config.ts', import.meta.url));
/** Five pages of ten are as many as a function may read. */
const limits = {
  COMITY_LIST_LIMIT_DEFAULT: '5',
  COMITY_LIST_LIMIT_MAX: '10',
  COMITY_HANDLER_READS_MAX: '5',
};
const numbers = Array.from({ length: 45 }, (_, at) => at);

for (const engine of engineNames) {
  describe(`all documents on ${engine}`, () => {
    let server: RunningServer;

    before(async () => {
      const database = engine === 'SQLite' ? undefined : await databaseOfProgram(config);
      const store = database === undefined ? {} : { COMITY_DATABASE_URL: database.url };
      server = await startServer({ config, env: { ...limits, ...store } });
      if (database !== undefined) after(() => database.dispose());
    });

    after(() => server.stop());

    const post = (path: string, json: unknown): Promise<Answer> =>
      server.send('POST', `/api/v1/${path}`, { json });
    const get = (path: string): Promise<Answer> => server.send('GET', `/api/v1/${path}`);
    const fill = async (group: string, count: number): Promise<void> => {
      const made = await Promise.all(numbers.slice(0, count).map((n) => post('items', { group, n })));
      assert.deepEqual(new Set(made.map(({ status }) => status)), new Set([201]));
    };
    const countOf = async (group: string): Promise<number> => {
      const headers = { Prefer: 'count=exact' };
      const counted = await server.send('GET', `/api/v1/items?group=${group}&limit=1`, { headers });
      return Number(counted.headers['x-total-count']);
    };

    test('come in their order, each once, while the function changes them', async () => {
      await fill('here', 45);
      const moved = await post('move', { from: 'here', to: 'there' });
      assert.equal(moved.status, 200);
      assert.deepEqual(moved.json(), { moved: numbers.toReversed() });
      assert.deepEqual([await countOf('here'), await countOf('there')], [0, 45]);
      assert.deepEqual((await post('move', { from: 'here', to: 'there' })).json(), { moved: [] });
    });

    test('come in hooks, streams and jobs', async () => {
      await fill('dust', 23);
      const counted = await post('counts', { group: 'dust' });
      assert.deepEqual([counted.status, counted.json().items], [201, (23 * 22) / 2]);
      const streamed = (await get('numbers?group=dust')).body.trim().split('\n');
      assert.deepEqual(
        streamed.map(Number).sort((one, other) => one - other),
        numbers.slice(0, 23),
      );
      assert.equal((await post('jobs/sweep/run', {})).status, 202);
      await until(async () => (await countOf('swept')) === 23, 'the job changed them all');
      assert.equal(await countOf('dust'), 0);
    });

    test('are read no further than the function asks, a page as one read', async () => {
      await fill('many', 45);
      await fill('many', 10);
      assert.deepEqual((await get('first?group=many')).json(), { n: 0 });
      const refused = await post('move', { from: 'many', to: 'gone' });
      assert.deepEqual([refused.status, refused.json().code], [500, 'internal']);
      assert.deepEqual([await countOf('many'), await countOf('gone')], [55, 0]);
    });
  });
}

test('all documents come with the rights of the principal who calls', async () => {
  const environment = { ...limits, COMITY_DATA: temporaryFolder(), COMITY_LOG_LEVEL: 'error' };
  const module = new URL('./fixtures/read-all.config.ts', import.meta.url);
  const comity = await createComity(configuration, environment, { module });
  after(() => comity.close());
  const [ada, bob] = [{ id: 'usr_ada' }, { id: 'usr_bob' }].map((each) => comity.resources.as(each));
  for (const n of numbers) await (n < 25 ? ada : bob)?.items.create({ group: 'own', n });
  const seen: number[] = [];
  for await (const { id, n } of ada?.items.all({ filter: { group: 'own' } }) ?? []) {
    seen.push(n);
    await ada?.items.update(id, { group: 'seen' });
  }
  assert.deepEqual(seen, numbers.slice(0, 25));
  const every: number[] = [];
  for await (const { n } of comity.resources.items.all({ sort: ['n'] })) every.push(n);
  assert.deepEqual(every, numbers);
  const limited = comity.resources.items.all({ limit: 3 } as object)[Symbol.asyncIterator]();
  await assert.rejects(limited.next(), /all takes filter, sort and q, and no limit/);
});
