/**
 * The benchmark itself, in its short form, over each store: it starts the real program and the floors, checks the answers that it
 * measures, and prints each row. The ratios of so short a run mean nothing, so none is asserted.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { isPairName, type RowName, type StoreName } from '../../../bench/options.ts';
import { titles } from '../../../bench/targets.ts';
import { drainNames } from '../../../bench/webhooks/drains.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));

test('measures rows of each kind against their floors over SQLite without a wrong answer', async () => {
  // One row of each kind; the others differ from these in the request that they send, or take more rows, a peer or a second load.
  const output = await bench('sqlite', [
    'read',
    'query',
    'create',
    'busy-row',
    'busy-own-rows',
    'authenticated',
    'webhooks',
    'received',
    'functions',
  ]);
  for (const credential of ['API key', 'access token', 'session cookie', 'password', 'another key each']) {
    assert.match(output, new RegExp(`^\\| ${credential} \\| 1,000 \\| \\d`, 'm'));
  }
  assert.match(output, /^changes of one row by 1000 clients, none refused: \d/m);
  assert.match(output, /^refreshes of sessions of one account: \d/m);
  assert.match(output, /^an action that writes two documents against the two writes: \d/m);
  assert.match(output, /idle memory with 1,000 rows: \d+ MB/);
  assert.match(output, /process start to ready, ms: \d/);
  for (const drain of drainNames) assert.match(output, new RegExp(`^\\| ${drain} \\| \\d`, 'm'));
  assert.match(output, /from the post of an event to its arrival at \d+\/s: p50 \d/);
  assert.match(output, /of the healthy ones while 20 hang/);
  assert.match(output, /^\| standard, each sent twice \| 1,000 \| \d/m);
  assert.match(output, /given to a function that keeps its thread: answered after p50 \d/);
});

test('measures creates and commits over PostgreSQL without a wrong answer', async () => {
  const output = await bench('postgres', ['create', 'commits']);
  assert.match(output, /^a batch of 512 creates with their events: \d/m);
  assert.match(output, /each flush 10 ms longer: \d+ creates a second in one schema, \d/);
});

test('compares two commits, and says of each request whether it costs more', async () => {
  const args = ['--quick', '--store', 'sqlite', '--only', 'read,create', '--compare', 'HEAD'];
  // So short a run of two equal programs may find a loss: 1 is a result too.
  const { output } = await run(args, [0, 1]);
  assert.match(output, /This tree against HEAD/);
  for (const title of ['read by id', 'durable create \\+ event']) {
    assert.match(output, new RegExp(`^\\| ${title} \\| 1,000 \\| \\d+\\.\\d\\d \\(`, 'm'));
  }
});

async function bench(store: StoreName, rows: readonly RowName[]): Promise<string> {
  const { output } = await run(['--quick', '--store', store, '--only', rows.join(',')], [0]);
  assert.ok(!output.includes('Comity is not measured'), output);
  for (const name of rows.filter(isPairName)) {
    assert.ok(output.includes(`| ${titles[name]} |`), `${titles[name]}\n${output}`);
  }
  return output;
}

/** Runs the benchmark, which must end with one of the statuses. */
async function run(
  args: readonly string[],
  statuses: readonly number[],
): Promise<{ readonly output: string }> {
  const child = spawn(process.execPath, ['bench/run.ts', ...args], { cwd: root, stdio: 'pipe' });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const code = await new Promise<number>((resolve) => child.once('exit', (status) => resolve(status ?? -1)));
  assert.ok(statuses.includes(code), output);
  return { output };
}
