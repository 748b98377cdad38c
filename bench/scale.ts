/**
 * One Comity process against two on one PostgreSQL: reads by id and durable creates. Each process has a fixed share of a
 * processor, so that the database and the load generator have what is left even where two processors are all there is.
 */
import { spreadOf } from './cell.ts';
import type { Engine, Subject } from './engine.ts';
import { generateLoad } from './load/generate.ts';
import type { LoadPlan } from './load/plan.ts';
import { type Run, say } from './measured-run.ts';
import { createCategory, planFor } from './pairs.ts';
import { processorShare } from './processor-share.ts';
import { spreadText, verdict } from './table.ts';

/** Of a processor for each process: two of them leave the database and the generator most of two processors. */
const share = 0.25;
const scaleLeast = 1.6;
const rows = 10_000;
const kinds = ['read', 'create'] as const;

export async function measureScale(run: Run, startShared: NonNullable<Engine['startShared']>): Promise<void> {
  const shares = [processorShare('one', share), processorShare('two', share)].filter(
    (each) => each !== undefined,
  );
  const [one, two] = shares;
  if (one === undefined || two === undefined) {
    say(run, 'two processes against one: not measured, control groups cannot be written here');
    return;
  }
  const subjects = await startShared(rows, [one, two]);
  try {
    await measureKinds(run, subjects);
  } finally {
    await Promise.all(subjects.map(({ server }) => server.stop()));
    for (const each of shares) each.remove();
  }
}

async function measureKinds(run: Run, subjects: readonly Subject[]): Promise<void> {
  const [first, second] = subjects;
  if (first === undefined || second === undefined) throw new Error('scaling needs two processes');
  const categoryId = await createCategory(first);
  let createFrom = 5_000_000_000;
  for (const kind of kinds) {
    const rate = async (of: readonly Subject[]): Promise<number> => {
      const results = await Promise.all(
        of.map((subject) => {
          createFrom += 10_000_000;
          const plan: LoadPlan = { ...planFor(run, subject, rows, kind), createFrom, categoryId };
          return generateLoad({ ...run.pinning, pinned: false }, plan);
        }),
      );
      return results.reduce((sum, { requestsPerSecond }) => sum + requestsPerSecond, 0);
    };
    const ratios: number[] = [];
    const singles: number[] = [];
    for (let round = -1; round < run.options.rounds; round += 1) {
      const alone = await rate([first]);
      const together = await rate([first, second]);
      // The first round warms up what the second process has compiled.
      if (round < 0) continue;
      singles.push(alone);
      ratios.push(together / alone);
    }
    const ratio = spreadOf(ratios);
    say(
      run,
      `two processes against one, ${kind}, ${share} of a processor each: ${spreadText(ratio)} times ` +
        `(one alone: ${Math.round(spreadOf(singles).median)}/s), target >= ${scaleLeast} ${verdict(ratio.median >= scaleLeast)}`,
    );
  }
}
