/**
 * What the page of a search visits: the first rows of the list, or those that the index of words finds, up to a bound, whether the server
 * knows anything of the words or not, with the plan that it keeps after five executions.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { rankFieldOf } from '../../../src/model/field.ts';
import type { Filter, Sort } from '../../../src/model/filter.ts';
import { shapeOfFilter } from '../../../src/store/postgres/compile/filter.ts';
import { compileFound, foundMostFor, searchedBy } from '../../../src/store/postgres/compile/found-page.ts';
import { bind } from '../../../src/store/postgres/compile/page-statement.ts';
import { addressOf } from '../../../src/store/postgres/connection/address.ts';
import type { Call } from '../../../src/store/postgres/connection/connection.ts';
import { openSchema } from '../../../src/store/postgres/schema/open-schema.ts';
import { layoutsOf } from '../../../src/store/postgres/schema/schema-layout.ts';
import { byId, fields } from '../../contract/fixture.ts';
import { articles, put, searchFor } from '../../contract/search.ts';
import { emptyDatabase, type TestDatabase } from '../../harness/postgres-database.ts';
import { execute, explain, nodesOf, scansOf, visited } from './explained.ts';

const schema = 'comity';
const rows = 20_000;
/** Of the first rows, six for each of the page. */
const firstMax = 6 * 21;

/** Each text has a word of all, one of half, of an eighteenth, of 20, and many that push the rare ones out of the statistics. */
function nameOf(index: number): string {
  const fillers = Array.from({ length: 20 }, (_, at) => `filler${(index * 31 + at * 97) % 900}`);
  const eighteenth = index % 18 === 17 ? ' eighteenth' : '';
  return `common ${index % 2 === 0 ? 'even' : 'odd'}${eighteenth} topic${index % (rows / 20)} ${fillers.join(' ')}`;
}

describe('pages of a search', () => {
  let server: TestDatabase;
  let client: pg.Client;

  before(async () => {
    server = await emptyDatabase();
    const options = { schema, tables: [articles], observe: () => undefined, connectTimeoutMs: 5000 };
    await openSchema(addressOf(server.url), options);
    client = new pg.Client({ connectionString: server.url });
    await client.connect();
    await client.query(`ALTER TABLE ${schema}.articles SET (autovacuum_enabled = off)`);
    const made = Array.from({ length: rows }, (_, index) => {
      const id = `row ${String(index).padStart(6, '0')}`;
      return put(articles, id, { name: nameOf(index), price: (index * 7919) % rows });
    });
    await client.query(
      `INSERT INTO ${schema}.articles (id, rev, created_at, updated_at, doc, search)
       SELECT id, 1, 1, 1, doc, search FROM unnest($1::text[], $2::text[], $3::text[]) AS t (id, doc, search)`,
      [made.map(({ id }) => id), made.map(({ next }) => next?.doc), made.map(({ next }) => next?.search)],
    );
  });

  after(async () => {
    await client.end();
    await server.dispose();
  });

  const byPrice: readonly Sort[] = [
    { field: fields.price, direction: 'asc' },
    { field: fields.id, direction: 'asc' },
  ];
  const best: readonly Sort[] = [
    { field: rankFieldOf(new Map()), direction: 'desc' },
    { field: fields.id, direction: 'desc' },
  ];
  const above: Filter = { op: 'gte', field: fields.price, value: rows / 2 };

  function callFor(q: string, sort: readonly Sort[], besides?: Filter): Call {
    const search = searchFor(articles, q);
    const filter: Filter = besides === undefined ? search : { op: 'and', filters: [search, besides] };
    const { shape, values } = shapeOfFilter(filter);
    const [layout] = layoutsOf([articles], schema);
    const searched = searchedBy(shape);
    assert.ok(layout !== undefined && searched !== undefined);
    const common = { layout, schema, tableNumber: 1, relatedNumbers: [], filter: shape, sort };
    const octets = { kind: 'capped', docBytesMax: 100_000 } as const;
    const selection = { ...common, rows: 21, whole: false, heads: false, octets };
    const page = compileFound(selection, searched, { from: 'start' });
    return bind(page, sort, { values, position: { from: 'start' } });
  }

  /** Rows of the table and of the first ones that a search may visit beside those that it finds. */
  const searches: readonly (readonly [q: string, found: number])[] = [
    ['topic7', 20],
    ['common topic7', 20],
    ['topic77*', 20 * 11],
    ['eighteenth', Math.floor(rows / 18)],
    ['even odd', 0],
    ['absent', 0],
    ['common', 0],
    ['even', 0],
  ];

  for (const when of ['just loaded', 'analysed'] as const) {
    test(`find the rows by their words, or ask the first rows of the list: ${when}`, async () => {
      if (when === 'analysed') await client.query('VACUUM ANALYZE');
      for (const [at, sort] of [byId, byPrice, best].entries()) {
        for (const besides of [undefined, above]) {
          for (const [q, found] of searches) {
            const call = callFor(q, sort, besides);
            const name = `${when} ${at} ${besides === undefined} ${q}`;
            await execute(client, call, name);
            const plan = await explain(client, call, name);
            for (const scan of scansOf(plan))
              assert.match(scan, /^(Index (Only )?Scan|Bitmap Heap Scan)$/, `${q}: ${call.sql}`);
            const isFrequent = q === 'common' || q === 'even';
            // A ranking of a frequent word takes the newest documents with it.
            const ofFrequent = firstMax + (sort === best ? rows : 0);
            const ofFound = firstMax + Math.min(found, foundMostFor(sort) + 1);
            const most = isFrequent ? ofFrequent : ofFound;
            assert.ok(
              visited(plan) <= most,
              `${visited(plan)} rows for ${q}, ${sort[0]?.field.name}: ${call.sql}`,
            );
            const isFound = nodesOf(plan).some(
              (node) => node['Node Type'] === 'Bitmap Index Scan' && node['Actual Loops'] > 0,
            );
            assert.equal(isFound, !isFrequent, q);
          }
        }
      }
    });
  }
});
