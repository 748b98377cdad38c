/**
 * Changes of one row by many clients at once, against the same changes spread over 200 rows, on the same server: 64 clients, then 1,000,
 * of which none may be refused (a refusal ends the load with an error).
 */
import { type Spread, spreadOf } from './cell.ts';
import { generateLoad } from './load/generate.ts';
import type { LoadPlan, LoadResult } from './load/plan.ts';
import type { Pinning } from './pin.ts';

export type BusyRowFigures = {
  readonly one: Spread;
  readonly many: Spread;
  /** Round by round. */
  readonly ratio: Spread;
  /** Of the clients below, requests a second and the p99 by the median. */
  readonly crowd: Spread;
  readonly crowdP99ByMedian: Spread;
};

const rowsOfMany = 200;
export const crowdOfClients = 1000;

/** @param plan of the kind `change` */
export async function measureBusyRow(
  pinning: Pinning,
  plan: LoadPlan,
  rounds: number,
): Promise<BusyRowFigures> {
  const one: LoadResult[] = [];
  const many: LoadResult[] = [];
  const crowd: LoadResult[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const measureOne = async () => one.push(await generateLoad(pinning, { ...plan, rows: 1 }));
    if (round % 2 === 0) await measureOne();
    many.push(await generateLoad(pinning, { ...plan, rows: rowsOfMany }));
    if (round % 2 === 1) await measureOne();
    crowd.push(await generateLoad(pinning, { ...plan, rows: 1, connections: crowdOfClients }));
  }
  const rate = ({ requestsPerSecond }: LoadResult): number => requestsPerSecond;
  return {
    one: spreadOf(one.map(rate)),
    many: spreadOf(many.map(rate)),
    ratio: spreadOf(
      one.map((result, round) => rate(result) / (many[round]?.requestsPerSecond ?? Number.NaN)),
    ),
    crowd: spreadOf(crowd.map(rate)),
    crowdP99ByMedian: spreadOf(crowd.map(({ latency }) => latency.p99Us / latency.p50Us)),
  };
}
