/**
 * The benchmark's rows of webhooks, functions, searches and migrations in their short form over SQLite. The ratios of so short a run mean nothing, so
 * none is asserted.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { drainNames } from '../../../bench/webhooks/drains.ts';
import { measure } from './run-benchmark.ts';

test('measures webhooks out and in without a wrong answer', async () => {
  const output = await measure('sqlite', ['webhooks', 'received']);
  for (const drain of drainNames) assert.match(output, new RegExp(`^\\| ${drain} \\| \\d`, 'm'));
  assert.match(output, /from the post of an event to its arrival at \d+\/s: p50 \d/);
  assert.match(output, /of the healthy ones while 20 hang/);
  assert.match(output, /^\| standard, each sent twice \| 1,000 \| \d/m);
  assert.match(output, /given to a function that keeps its thread: answered after p50 \d/);
});

test('measures functions, searches and a migration without a wrong answer', async () => {
  const output = await measure('sqlite', ['functions', 'search', 'migrations']);
  assert.match(output, /^an action that writes two documents against the two writes: \d/m);
  assert.match(output, /^\| q of a rare word by rank \| \d+ \(/m);
  assert.match(output, /^1000 documents migrated beside 8 readers: \d/m);
});
