/** Figures as text: Markdown tables, which read as well in a terminal. */
import { type Cell, medianOf, ratioSpread, type Spread } from './cell.ts';
import type { PairName, StoreName } from './options.ts';
import { growthMost, leastRatio, noiseMost, titles } from './targets.ts';

export type Pair = {
  readonly name: PairName;
  readonly rows: number;
  readonly comity: Cell;
  readonly floor: Cell;
};

const rate = (cell: Cell) => String(Math.round(medianOf(cell, (sample) => sample.requestsPerSecond)));
const processor = (cell: Cell) =>
  medianOf(cell, (sample) => sample.processorUsPerRequest ?? Number.NaN).toFixed(1);

/** Comity against the floor, one line for each kind and number of rows. */
export function ratioTable(pairs: readonly Pair[], store: StoreName, noise: boolean): readonly string[] {
  const measured = noise ? 'second floor' : 'Comity';
  const lines = [
    `| request | rows | ${measured}/floor (spread) | target | ${measured} req/s | floor req/s | ${measured} p50/p90/p99/max ms | floor p50/p90/p99/max ms | CPU us ${measured}, floor | RSS MB ${measured}, floor |`,
    '|---|---|---|---|---|---|---|---|---|---|',
  ];
  for (const { name, rows, comity, floor } of pairs) {
    const ratio = ratioSpread(comity, floor, (sample) => sample.requestsPerSecond);
    const met = noise ? Math.abs(ratio.median - 1) <= noiseMost : ratio.median >= leastRatio[store][name];
    const target = noise ? `1 +- ${noiseMost}` : `>= ${leastRatio[store][name]}`;
    const cells = [
      titles[name],
      rows.toLocaleString('en'),
      spreadText(ratio),
      `${target} ${verdict(met)}`,
      rate(comity),
      rate(floor),
      latencies(comity),
      latencies(floor),
      `${processor(comity)}, ${processor(floor)}`,
      `${megabytes(comity.memoryBytes())}, ${megabytes(floor.memoryBytes())}`,
    ];
    lines.push(`| ${cells.join(' | ')} |`);
  }
  return lines;
}

/** The cost of a request with the most rows against the fewest, for Comity and for the floor. */
export function growthTable(pairs: readonly Pair[], noise: boolean): readonly string[] {
  const measured = noise ? 'second floor' : 'Comity';
  const lines = [
    `| request | from rows | to rows | ${measured} cost ratio (spread) | target | floor cost ratio |`,
    '|---|---|---|---|---|---|',
  ];
  for (const name of new Set(pairs.map((pair) => pair.name))) {
    const ofName = pairs.filter((pair) => pair.name === name);
    const few = ofName[0];
    const many = ofName.at(-1);
    if (few === undefined || many === undefined || few === many) continue;
    const grown = ratioSpread(few.comity, many.comity, (sample) => sample.requestsPerSecond);
    const floorGrown = ratioSpread(few.floor, many.floor, (sample) => sample.requestsPerSecond);
    lines.push(
      `| ${titles[name]} | ${few.rows.toLocaleString('en')} | ${many.rows.toLocaleString('en')} | ${spreadText(grown)} | ` +
        `<= ${growthMost} ${verdict(grown.median <= growthMost)} | ${spreadText(floorGrown)} |`,
    );
  }
  return lines.length > 2 ? lines : [];
}

export function spreadText(spread: Spread): string {
  return `${spread.median.toFixed(2)} (${spread.least.toFixed(2)}-${spread.most.toFixed(2)})`;
}

export function verdict(met: boolean): string {
  return met ? 'met' : 'MISSED';
}

export function megabytes(bytes: number | undefined): string {
  return bytes === undefined ? '?' : (bytes / 1_000_000).toFixed(0);
}

/** p50, p90, p99 and most, in ms. */
export function latencies(cell: Cell): string {
  const at = (figure: 'p50Us' | 'p90Us' | 'p99Us' | 'maxUs') =>
    (medianOf(cell, (sample) => sample.latency[figure]) / 1000).toFixed(2);
  return `${at('p50Us')} / ${at('p90Us')} / ${at('p99Us')} / ${at('maxUs')}`;
}
