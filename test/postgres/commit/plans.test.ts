/** The plans of the statements of commits: made while tables are tiny, kept while they grow. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { commitTables } from '../../../src/store/postgres/commit/commit-table.ts';
import { transactionFrame } from '../../../src/store/postgres/commit/transaction.ts';
import type { Call } from '../../../src/store/postgres/connection/connection.ts';
import { layoutsOf } from '../../../src/store/postgres/schema/schema-layout.ts';
import { tables as declared } from '../../contract/fixture.ts';
import { channel, freshPlace, type Place, schema } from './fixture.ts';

const tables = commitTables(
  layoutsOf(declared, schema),
  new Map([
    ['things', 1],
    ['categories', 2],
    ['events', 3],
  ]),
  schema,
);
const frame = transactionFrame(schema, 'planner', channel);

describe('plans of commits', () => {
  const disposals: (() => unknown)[] = [];
  let place: Place;

  before(async () => {
    place = await freshPlace({ after: (dispose: () => unknown) => void disposals.unshift(dispose) });
    await place.look.query(`
      INSERT INTO comity.categories SELECT 'c' || n, n, NULL, 1, 1, NULL, '{}' FROM generate_series(1, 3) AS n;
      INSERT INTO comity.things SELECT 't' || n, n, NULL, 1, 1, NULL, '{}' FROM generate_series(1, 3) AS n;
      INSERT INTO comity.events SELECT 'e' || n, n, NULL, 1, 1, NULL, 't', 'c', 'd', NULL, '{}' FROM generate_series(1, 3) AS n;
      INSERT INTO comity.comity_writers VALUES ('planner', 1, 0, 0, 0, 0);
      ANALYZE`);
  });

  after(async () => {
    for (const dispose of disposals) await dispose();
  });

  for (const { layout, statements } of tables) {
    for (const [name, sql] of Object.entries(statements)) {
      for (const text of Array.isArray(sql) ? sql : [sql]) {
        if (text === '') continue;
        test(`walks an index for ${name} of ${layout.table.name}, however small the table was`, async () => {
          const plan = await planOf(place, text);
          assert.doesNotMatch(plan, /Seq Scan|Merge|Materialize|Bitmap/, plan);
          // Every row is looked up by a condition: an index that is read from end to end shows none.
          const scans = plan.split('\n').filter((line) => /Index (Only )?Scan/.test(line)).length;
          assert.equal(plan.split('Index Cond:').length - 1, scans, plan);
        });
      }
    }
  }
});

async function planOf({ look }: Place, text: string): Promise<string> {
  await look.query('BEGIN');
  await run(look, frame.open({ epoch: 1, server: null }, 5000));
  await run(look, frame.draw(1));
  const parameters = text.match(/\$\d+/g)?.map((parameter) => Number(parameter.slice(1))) ?? [];
  await look.query(`PREPARE planned AS ${text}`);
  const nulls = Array.from({ length: Math.max(...parameters) }, () => 'NULL').join(', ');
  const { rows } = await look.query(`EXPLAIN EXECUTE planned(${nulls})`);
  await look.query('ROLLBACK; DEALLOCATE planned');
  return rows.map((row) => row['QUERY PLAN']).join('\n');
}

async function run(look: Place['look'], { sql, values }: Call): Promise<void> {
  await look.query(sql, [...values]);
}
