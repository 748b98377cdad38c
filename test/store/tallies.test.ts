/** Counters of the embedded store: kept while they count, and bounded however many names clients make up. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryBounds } from '../../src/memory/bounds.ts';
import { createTallies } from '../../src/store/sqlite/home.ts';

const countersMax = memoryBounds.tallies.entries;

test('forgets of too many counters those with the least counts, and keeps one that was counted often', () => {
  const tally = createTallies(() => 0);
  const expiresAt = 1000;
  const ofVictim = { key: 'victim', expiresAt };
  for (let at = 0; at < 5; at += 1) tally([{ ...ofVictim, add: 1 }]);
  for (let at = 0; at < 2 * countersMax; at += 1) tally([{ key: `name ${at}`, add: 1, expiresAt }]);
  assert.deepEqual(tally([{ ...ofVictim, add: 0 }]), [5]);
  assert.deepEqual(tally([{ key: 'name 0', add: 0, expiresAt }]), [0]);
});

test('holds no more counters than its bound, when all count alike', () => {
  let looks = 0;
  // The clock is read once for each sweep.
  const tally = createTallies(() => {
    looks += 1;
    return 0;
  });
  const expiresAt = 1000;
  for (let at = 0; at < 3 * countersMax; at += 1) tally([{ key: `name ${at}`, add: 7, expiresAt }]);
  assert.ok(looks >= 3, `${looks} sweeps`);
  const kept = Array.from({ length: 3 * countersMax }, (_, at) => `name ${at}`).filter(
    (key) => tally([{ key, add: 0, expiresAt: 0 }])[0] === 7,
  );
  assert.ok(kept.length <= countersMax, `${kept.length} of ${countersMax}`);
});
