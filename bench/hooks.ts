/** Creates in a collection with an empty `beforeWrite` against the same creates without one, on the same server in the same round. */
import { type Spread, spreadOf } from './cell.ts';
import type { Subject } from './engine.ts';
import { generateLoad } from './load/generate.ts';
import { type Run, say } from './measured-run.ts';
import { createCategory, planFor } from './pairs.ts';
import { spreadText, verdict } from './table.ts';
import { hookLeast } from './targets.ts';

const paths = { plain: '/api/v1/products', hooked: '/api/v1/hooked-products' } as const;
/** More than one load creates: the units of stock must differ between loads. */
const createdPerLoadMost = 10_000_000;

type Figures = { readonly rates: number[]; readonly processorUs: number[] };

export async function measureHooks(run: Run, subject: Subject, rows: number): Promise<void> {
  const { options, pinning } = run;
  const plan = { ...planFor(run, subject, rows, 'create'), categoryId: await createCategory(subject) };
  const figures = { plain: empty(), hooked: empty() };
  for (let round = -options.settlingRounds; round < options.rounds; round += 1) {
    const order = round % 2 === 0 ? (['plain', 'hooked'] as const) : (['hooked', 'plain'] as const);
    for (const side of order) {
      const before = subject.server.processorUs() ?? Number.NaN;
      const load = (round + options.settlingRounds + 1) * createdPerLoadMost;
      const { requestsPerSecond, answersTotal } = await generateLoad(pinning, {
        ...plan,
        path: paths[side],
        createFrom: plan.createFrom + load,
      });
      if (round < 0) continue;
      figures[side].rates.push(requestsPerSecond);
      figures[side].processorUs.push(((subject.server.processorUs() ?? Number.NaN) - before) / answersTotal);
    }
  }
  const { plain, hooked } = figures;
  const rate = ratioOf(hooked.rates, plain.rates);
  const processor = ratioOf(plain.processorUs, hooked.processorUs);
  say(
    run,
    `creates with an empty beforeWrite against creates without one: ${spreadText(rate)} by rate, ${spreadText(processor)} by ` +
      `processor time (${spreadText(spreadOf(hooked.processorUs))} against ${spreadText(spreadOf(plain.processorUs))} us), ` +
      `target >= ${hookLeast} ${verdict(rate.median >= hookLeast)}`,
  );
}

function empty(): Figures {
  return { rates: [], processorUs: [] };
}

function ratioOf(above: readonly number[], below: readonly number[]): Spread {
  return spreadOf(above.map((value, round) => value / (below[round] ?? Number.NaN)));
}
