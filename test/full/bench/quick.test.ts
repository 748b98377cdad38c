/**
 * The benchmark's rows of requests in their short form over SQLite. The ratios of so short a run mean nothing, so none is asserted.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { measure } from './run-benchmark.ts';

test('measures rows of each kind against their floors over SQLite without a wrong answer', async () => {
  // One row of each kind; the others differ from these in the request that they send, or take more rows, a peer or a second load.
  const output = await measure('sqlite', [
    'read',
    'query',
    'create',
    'busy-row',
    'busy-own-rows',
    'authenticated',
  ]);
  for (const credential of ['API key', 'access token', 'session cookie', 'password', 'another key each']) {
    assert.match(output, new RegExp(`^\\| ${credential} \\| 1,000 \\| \\d`, 'm'));
  }
  assert.match(output, /^changes of one row by 1000 clients, none refused: \d/m);
  assert.match(output, /^refreshes of sessions of one account: \d/m);
  assert.match(output, /idle memory with 1,000 rows: \d+ MB/);
  assert.match(output, /process start to ready, ms: \d/);
});
