/** Processes that die on one database, for COMITY_SOAK_SECONDS (600): see test/full/many/show.ts. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { show } from '../full/many/show.ts';

const seconds = Number(process.env.COMITY_SOAK_SECONDS ?? 600);
const secondsBetweenRestarts = 20;

it('keeps every promise for a long time', async (context) => {
  const { violations, figures } = await show({
    processes: 3,
    workers: 16,
    tails: 4,
    loadMs: seconds * 1000,
    killsMin: 4,
    brokenMin: 1,
    operations: true,
    databaseRestarts: Math.max(1, Math.floor(seconds / secondsBetweenRestarts)),
  });
  context.diagnostic(JSON.stringify(figures));
  assert.deepEqual(violations.slice(0, 20), []);
  assert.ok((figures.kills ?? 0) > 0 && (figures.versions ?? 0) > 0, JSON.stringify(figures));
});
