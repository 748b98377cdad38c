/**
 * The benchmark itself, in its short form: it starts the real program and every floor, checks the answers it measures,
 * and prints each row. The ratios of so short a run mean nothing, so none is asserted.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { rowNames } from '../../bench/options.ts';
import { titles } from '../../bench/targets.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

test('measures every row against its floor without a wrong answer', async () => {
  const child = spawn(process.execPath, ['bench/run.ts', '--quick'], { cwd: root, stdio: 'pipe' });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const code = await new Promise((resolve) => child.once('exit', resolve));
  assert.equal(code, 0, output);
  assert.ok(!output.includes('Comity is not measured'), output);
  for (const name of rowNames) {
    if (name !== 'scan' && name !== 'scale')
      assert.ok(output.includes(`| ${titles[name]} |`), `${titles[name]}\n${output}`);
  }
  assert.match(output, /under a scan/);
  assert.match(output, /idle memory with 1,000 rows: \d+ MB/);
  assert.match(output, /process start to ready, ms: \d/);
});
