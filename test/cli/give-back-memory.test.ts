/** The memory of the start is given back once, when no request would wait for it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { giveBackMemorySoon } from '../../src/cli/serving-process.ts';
import { until } from '../harness/until.ts';

test('gives the memory of the start back once the event loop is idle, and only once', async () => {
  let count = 0;
  giveBackMemorySoon(() => (count += 1), 50);
  const busyUntil = performance.now() + 500;
  while (performance.now() < busyUntil) await nextTurn();
  assert.equal(count, 0);
  await until(() => count > 0);
  await delay(200);
  assert.equal(count, 1);
});
