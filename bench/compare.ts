/**
 * `npm run bench -- --compare REF`: the program of this tree against that of another commit, in alternating rounds on the same machine. The
 * cost of a request is the processor time of the server, which depends less on other programs than requests a second do. A change counts
 * where every round agrees on its direction and the median is beyond the noise of two equal programs.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Cell, measureRounds, ratioSpread, type Spread } from './cell.ts';
import { machine, type Run, say } from './measured-run.ts';
import { isPairName } from './options.ts';
import { createCategory, requestCell } from './pairs.ts';
import { categoryId } from './product.ts';
import { spreadText } from './table.ts';
import { comparisonNoise, lossMost, titles } from './targets.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

type Compared = { readonly here: Cell; readonly there: Cell };

/** @returns the requests that cost more than a fifth more than at the other commit */
export async function compareCommits(run: Run, ref: string): Promise<readonly string[]> {
  const tree = checkOut(ref, run.folder);
  try {
    say(
      run,
      ...machine(run),
      '',
      `This tree against ${ref}: processor time a request, and requests a second.`,
    );
    const cells = await startBoth(run, tree);
    await measureRounds(
      cells.flatMap(({ here, there }) => [there, here]),
      run.options.rounds,
      run.options.settlingRounds,
      (round) => process.stderr.write(`${run.store}: round ${round + 1} of ${run.options.rounds}\n`),
    );
    say(run, '', ...comparisonTable(cells));
    return cells.filter(isLoss).map(({ here }) => `${here.name}, ${here.rows} rows`);
  } finally {
    // The programs that just ended may still write their compiled code there, which `git worktree remove` takes for a failure.
    rmSync(tree, { recursive: true, force: true, maxRetries: 10 });
    git('worktree', 'prune');
  }
}

/** A worktree of the commit, set up with the packages that its lockfile names. @throws {Error} if there is no such commit */
function checkOut(ref: string, folder: string): string {
  const tree = join(folder, 'compared');
  git('worktree', 'add', '--quiet', '--detach', tree, ref);
  const lockfile = (of: string): string => readFileSync(join(of, 'package-lock.json'), 'utf8');
  if (lockfile(tree) === lockfile(root)) symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'));
  execFileSync(process.execPath, ['scripts/setup.mjs'], { cwd: tree, stdio: 'inherit' });
  return tree;
}

function git(...args: readonly string[]): void {
  execFileSync('git', [...args], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
}

async function startBoth(run: Run, tree: string): Promise<readonly Compared[]> {
  const compared: Compared[] = [];
  const names = run.options.only.filter(isPairName);
  for (const rows of run.options.rows[run.store]) {
    const here = await run.engine.startComity(rows);
    run.subjects.push(here);
    const there = await run.engine.startComity(rows, tree);
    run.subjects.push(there);
    for (const name of names) {
      const category = async (of: typeof here) => (name === 'create' ? await createCategory(of) : categoryId);
      compared.push({
        here: requestCell(run, name, rows, here, 'comity', await category(here)),
        there: requestCell(run, name, rows, there, 'floor', await category(there)),
      });
    }
  }
  // Creates come last in each round: they add rows to what the others read.
  return compared.sort(
    (one, other) => Number(one.here.name === 'create') - Number(other.here.name === 'create'),
  );
}

function costOf({ here, there }: Compared): Spread {
  return ratioSpread(
    here,
    there,
    ({ processorUsPerRequest, requestsPerSecond }) =>
      // Where the system does not tell the processor time, the time between two requests stands for it.
      processorUsPerRequest ?? 1 / requestsPerSecond,
  );
}

function isLoss(compared: Compared): boolean {
  const { median, least } = costOf(compared);
  return median > lossMost && least > 1;
}

function comparisonTable(cells: readonly Compared[]): readonly string[] {
  const lines = [
    '| request | rows | cost here/there (spread) | requests a second here/there (spread) | |',
    '|---|---|---|---|---|',
  ];
  for (const compared of cells) {
    const { here, there } = compared;
    const rate = ratioSpread(here, there, (sample) => sample.requestsPerSecond);
    const cost = costOf(compared);
    lines.push(
      `| ${titles[here.name as keyof typeof titles]} | ${here.rows.toLocaleString('en')} | ${spreadText(cost)} | ${spreadText(rate)} | ${wordOf(cost)} |`,
    );
  }
  return lines;
}

function wordOf({ median, least, most }: Spread): string {
  if (median > 1 + comparisonNoise && least > 1) return 'costs more';
  if (median < 1 - comparisonNoise && most < 1) return 'costs less';
  return 'no difference beyond noise';
}
