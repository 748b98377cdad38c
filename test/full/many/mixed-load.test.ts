/** Seven seconds of what test/soak/many-processes.test.ts does for an hour: processes die, and nothing is lost or doubled. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { show } from './show.ts';

it('keeps every promise while processes are killed and the database is restarted', async (context) => {
  const { violations, figures } = await show({
    processes: 3,
    workers: 10,
    tails: 3,
    loadMs: 7000,
    killsMin: 2,
    brokenMin: 1,
    operations: false,
    databaseRestarts: 1,
  });
  context.diagnostic(JSON.stringify(figures));
  assert.deepEqual(violations.slice(0, 20), []);
  // It was a test only if there was something to lose.
  const {
    kills = 0,
    broken = 0,
    changesMade = 0,
    changesLost = 0,
    standing = 0,
    streamConnections = 0,
  } = figures;
  assert.ok(kills >= 2 && broken > 0 && streamConnections > 6, JSON.stringify(figures));
  assert.ok(changesMade > 20 && changesLost > 20 && standing > 50, JSON.stringify(figures));
});
