/**
 * The benchmark in its short form over PostgreSQL, and its comparison of two commits. The ratios of so short a run mean nothing, so none is
 * asserted.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { measure, runBenchmark } from './run-benchmark.ts';

test('measures creates and commits over PostgreSQL without a wrong answer', async () => {
  const output = await measure('postgres', ['create', 'commits']);
  assert.match(output, /^a batch of 512 creates with their events: \d/m);
  assert.match(output, /each flush 10 ms longer: \d+ creates a second in one schema, \d/);
});

test('compares two commits, and says of each request whether it costs more', async () => {
  const args = ['--quick', '--store', 'sqlite', '--only', 'read,create', '--compare', 'HEAD'];
  // So short a run of two equal programs may find a loss: 1 is a result too.
  const { output } = await runBenchmark(args, [0, 1]);
  assert.match(output, /This tree against HEAD/);
  for (const title of ['read by id', 'durable create \\+ event']) {
    assert.match(output, new RegExp(`^\\| ${title} \\| 1,000 \\| \\d+\\.\\d\\d \\(`, 'm'));
  }
});
