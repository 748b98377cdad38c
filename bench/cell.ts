/**
 * One cell of the table: one kind of request against one server with so many rows, measured once a round. Rounds run
 * forwards and backwards in turn (ABBA), so that a drift of the machine falls on all cells alike; a ratio is taken
 * within each round, and the median of the rounds is reported with its spread.
 */
import type { LatencySummary } from './load/histogram.ts';
import type { RequestKind } from './load/plan.ts';

export type Side = 'comity' | 'floor';

export type Sample = {
  readonly requestsPerSecond: number;
  readonly latency: LatencySummary;
  readonly processorUsPerRequest: number | undefined;
  readonly generatorBusy: number;
  /** Processors that programs outside the measurement kept busy meanwhile; 0 on a quiet machine. */
  readonly otherBusy: number | undefined;
};

export type Cell = {
  readonly name: string;
  readonly kind: RequestKind;
  readonly side: Side;
  readonly rows: number;
  readonly samples: Sample[];
  measure(): Promise<Sample>;
  memoryBytes(): number | undefined;
};

/** Measures every cell once a round. */
export async function measureRounds(
  cells: readonly Cell[],
  rounds: number,
  settlingRounds: number,
  onRound: (round: number) => void,
): Promise<void> {
  // A server lives for weeks: what its compiler does in the first seconds of load is not what it costs (51 µs a read
  // in the first 60,000 reads, 27 µs after 400,000).
  for (const cell of cells) for (let round = 0; round < settlingRounds; round += 1) await cell.measure();
  for (let round = 0; round < rounds; round += 1) {
    onRound(round);
    const order = round % 2 === 0 ? cells : [...cells].reverse();
    for (const cell of order) cell.samples.push(await cell.measure());
  }
}

export type Spread = { readonly median: number; readonly least: number; readonly most: number };

export function spreadOf(values: readonly number[]): Spread {
  const sorted = [...values].sort((left, right) => left - right);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  const median = sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
  return { median, least: sorted[0] ?? Number.NaN, most: sorted.at(-1) ?? Number.NaN };
}

/** Round by round, `above` over `below` in a figure of the samples. */
export function ratioSpread(above: Cell, below: Cell, figure: (sample: Sample) => number): Spread {
  const ratios: number[] = [];
  above.samples.forEach((sample, round) => {
    const other = below.samples[round];
    if (other !== undefined) ratios.push(figure(sample) / figure(other));
  });
  return spreadOf(ratios);
}

export function medianOf(cell: Cell, figure: (sample: Sample) => number): number {
  return spreadOf(cell.samples.map(figure)).median;
}
