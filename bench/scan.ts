/**
 * Reads by id at a fixed rate, with and without a search over all rows running: one connection repeats `q=` searches
 * that find nothing, so that each visits every row. The rate is fixed since a saturated server would show nothing but
 * its own queue.
 */
import { type Spread, spreadOf } from './cell.ts';
import { generateLoad } from './load/generate.ts';
import type { LoadPlan } from './load/plan.ts';
import type { Pinning } from './pin.ts';

export type ScanFigures = {
  readonly quietP99Us: Spread;
  readonly scannedP99Us: Spread;
  /** Round by round. */
  readonly ratio: Spread;
  readonly searches: number;
};

/** Measures both in each round; `plan` is a read plan with its rate. */
export async function measureScan(pinning: Pinning, plan: LoadPlan, rounds: number): Promise<ScanFigures> {
  const quiet: number[] = [];
  const scanned: number[] = [];
  let searches = 0;
  for (let round = 0; round < rounds; round += 1) {
    const measureQuiet = async () => quiet.push((await generateLoad(pinning, plan)).latency.p99Us);
    if (round % 2 === 0) await measureQuiet();
    const ending = new AbortController();
    const background = searchUntil(plan, ending.signal);
    scanned.push((await generateLoad(pinning, plan)).latency.p99Us);
    ending.abort();
    searches += await background;
    if (round % 2 === 1) await measureQuiet();
  }
  const ratio = spreadOf(scanned.map((p99, round) => p99 / (quiet[round] ?? Number.NaN)));
  return { quietP99Us: spreadOf(quiet), scannedP99Us: spreadOf(scanned), ratio, searches };
}

/** Repeats searches until told to end, and says how many were answered; a wrong answer throws. */
async function searchUntil(plan: LoadPlan, ending: AbortSignal): Promise<number> {
  let answered = 0;
  while (!ending.aborted) {
    const url = `http://${plan.host}:${plan.port}${plan.path}?q=nothing-like-this-${answered}`;
    try {
      const response = await fetch(url, { signal: ending });
      if (response.status !== 200) throw new Error(`a search was answered with status ${response.status}`);
      const found = (await response.json()) as { items: unknown[] };
      if (found.items.length !== 0) throw new Error('a search found what is not there');
      answered += 1;
    } catch (error) {
      // The last search is cut off when the measurement ends.
      if (!ending.aborted) throw error;
    }
  }
  return answered;
}
