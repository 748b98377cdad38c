/**
 * What a request costs must not grow unseen: the processor time of reads, lists and creates against that of the least programs that do the
 * same I/O, counted in the same run. A loss of a fifth fails; `npm run bench -- --compare REF` tells which commit it came with.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import type { Cell } from '../../../bench/cell.ts';
import { processorRatios } from '../../../bench/targets.ts';
import { repositoryRoot } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const lossMost = 1.2;

type Figures = { readonly requests: { readonly cells: readonly Pick<Cell, 'name' | 'side' | 'samples'>[] } };

test('reads, lists and creates cost no fifth more than they did', { timeout: 170_000 }, async () => {
  const file = join(temporaryFolder(), 'figures.json');
  const names = Object.keys(processorRatios);
  const args = ['--store', 'sqlite', '--rows', '1000', '--only', names.join(','), '--seconds', '0.8'];
  await promisify(execFile)(process.execPath, ['bench/run.ts', ...args, '--rounds', '6', '--json', file], {
    cwd: repositoryRoot,
  });
  const [{ requests }] = JSON.parse(readFileSync(file, 'utf8')) as [Figures];
  for (const [name, recorded] of Object.entries(processorRatios)) {
    const ratios = ratiosOf(requests, name);
    // Other programs make single rounds dearer, never cheaper.
    const least = Math.min(...ratios);
    assert.ok(least > 0, `${name}: ${ratios}`);
    assert.ok(
      least <= recorded * lossMost,
      `${name} costs ${ratios.map((ratio) => ratio.toFixed(2)).join(', ')} times the floor, ${recorded} before`,
    );
  }
});

function ratiosOf({ cells }: Figures['requests'], name: string): readonly number[] {
  const samplesOf = (side: Cell['side']) =>
    cells.find((cell) => cell.name === name && cell.side === side)?.samples ?? [];
  const floor = samplesOf('floor');
  return samplesOf('comity').map(
    ({ processorUsPerRequest }, round) =>
      (processorUsPerRequest ?? Number.NaN) / (floor[round]?.processorUsPerRequest ?? Number.NaN),
  );
}
