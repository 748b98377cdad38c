/**
 * Comity twice against once, on one store: two processes on PostgreSQL, two workers on SQLite; reads by id and durable creates. Each has a
 * fixed share of a processor, so that the database and the load generator have what is left even where two processors are all there is.
 */
import { spreadOf } from './cell.ts';
import type { Scaled, Subject } from './engine.ts';
import { generateLoad } from './load/generate.ts';
import type { LoadPlan } from './load/plan.ts';
import { type Run, say } from './measured-run.ts';
import { createCategory, planFor } from './pairs.ts';
import { type ProcessorShare, processorShare } from './processor-share.ts';
import { spreadText, verdict } from './table.ts';
import { scaleLeast } from './targets.ts';

/** Of a processor for each: two of them leave the database and the generator most of two processors. */
const share = 0.25;
const rows = 10_000;
const kinds = ['read', 'create'] as const;

export async function measureScale(run: Run): Promise<void> {
  const shares: ProcessorShare[] = [];
  const shareOf = (parts: number): ProcessorShare => {
    const made = processorShare(`part-${shares.length}`, parts * share);
    if (made === undefined) throw new Error('control groups cannot be written here');
    shares.push(made);
    return made;
  };
  let scaled: Scaled | undefined;
  try {
    scaled = await run.engine.startScaled(rows, shareOf);
    await measureKinds(run, scaled);
  } catch (error) {
    if (scaled !== undefined) throw error;
    say(run, `twice against once: not measured, ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    const servers = new Set(scaled === undefined ? [] : [scaled.one, ...scaled.two]);
    await Promise.all([...servers].map(({ server }) => server.stop()));
    for (const each of shares) each.remove();
  }
}

async function measureKinds(run: Run, { words, one, two }: Scaled): Promise<void> {
  const categories = new Map<Subject, string>();
  for (const subject of new Set([one, ...two])) categories.set(subject, await createCategory(subject));
  let createFrom = 5_000_000_000;
  for (const kind of kinds) {
    const rate = async (of: readonly Subject[]): Promise<number> => {
      const results = await Promise.all(
        of.map((subject) => {
          createFrom += 10_000_000;
          const categoryId = categories.get(subject) ?? '';
          const plan: LoadPlan = { ...planFor(run, subject, rows, kind), createFrom, categoryId };
          return generateLoad({ ...run.pinning, pinned: false }, plan);
        }),
      );
      return results.reduce((sum, { requestsPerSecond }) => sum + requestsPerSecond, 0);
    };
    const ratios: number[] = [];
    const singles: number[] = [];
    for (let round = -1; round < run.options.rounds; round += 1) {
      const alone = await rate([one]);
      const together = await rate(two);
      // The first round warms up what each has compiled.
      if (round < 0) continue;
      singles.push(alone);
      ratios.push(together / alone);
    }
    const ratio = spreadOf(ratios);
    const least = scaleLeast[run.store][kind];
    say(
      run,
      `${words}, ${kind}, ${share} of a processor each: ${spreadText(ratio)} times ` +
        `(one alone: ${Math.round(spreadOf(singles).median)}/s), target >= ${least} ${verdict(ratio.median >= least)}`,
    );
  }
}
