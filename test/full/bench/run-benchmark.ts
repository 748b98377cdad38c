/** The benchmark itself as a process, in its short form: the real program and the floors, with the answers that it measures checked. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { isPairName, type RowName, type StoreName } from '../../../bench/options.ts';
import { titles } from '../../../bench/targets.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** Measures the rows over the store, and returns the tables, each row of which is there. */
export async function measure(store: StoreName, rows: readonly RowName[]): Promise<string> {
  const { output } = await runBenchmark(['--quick', '--store', store, '--only', rows.join(',')], [0]);
  assert.ok(!output.includes('Comity is not measured'), output);
  for (const name of rows.filter(isPairName)) {
    assert.ok(output.includes(`| ${titles[name]} |`), `${titles[name]}\n${output}`);
  }
  return output;
}

/** Runs the benchmark, which must end with one of the statuses. */
export async function runBenchmark(
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
