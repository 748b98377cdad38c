/**
 * How soon an event arrives that was posted over HTTP, from when the client sends it to the end of the request at the receiver: a bound from
 * above of the time since its commit. At a quarter of the rate of the drain; to one endpoint, and to a hundred of which
 * twenty hang or not.
 */
import { type Spread, spreadOf } from '../cell.ts';
import { adminKey } from '../engine.ts';
import type { Run } from '../measured-run.ts';
import type { Part } from './part.ts';
import type { Posting } from './post-events.ts';
import type { Program } from './program.ts';
import type { Arrivals } from './receiver.ts';
import { roundsOf } from './rounds.ts';
import type { SeededEndpoint } from './seed.ts';

export const fairEndpoints = 100;
export const hangingEndpoints = 20;
const arrivalsMsMax = 20_000;
/** The program is warm already. */
const settlingMost = 1;
const warmUpOutstanding = 32;

export type Timed = { readonly p50Ms: Spread; readonly p95Ms: Spread };
export type Fairness = { readonly quiet: Timed; readonly hanging: Timed; readonly ratio: Spread };

/** @param ports of the receiver: each is one endpoint's, those that hang first */
export function arrivalSeeds(url: string, ports: readonly number[]): readonly SeededEndpoint[] {
  const rest = { scheme: 'timestamped', status: 'enabled' } as const;
  return [
    { id: 'ep_arrivals', url, events: ['arrivals.one'], maxInFlight: 64, ...rest },
    ...ports.map((port, at) => ({
      ...{ id: `ep_fair${at}`, url: `http://127.0.0.1:${port}/`, events: [`fair.e${at}`], ...rest },
    })),
  ];
}

export type ArrivalParts = {
  readonly run: Run;
  readonly receiver: Part;
  readonly program: Program;
  readonly perSecond: number;
};

export async function measureArrivals(parts: ArrivalParts): Promise<Timed> {
  const samples: Arrivals[] = [];
  for (const { isMeasured } of roundsOf(parts.run, settlingMost)) {
    const sample = await postAndCount(parts, ['arrivals.one'], 0);
    if (isMeasured) samples.push(sample);
  }
  return timed(samples);
}

export async function measureFairness(parts: ArrivalParts): Promise<Fairness> {
  const types = Array.from({ length: fairEndpoints }, (_, at) => `fair.e${at}`);
  const quiet: Arrivals[] = [];
  const hanging: Arrivals[] = [];
  for (const { round, isMeasured } of roundsOf(parts.run, settlingMost)) {
    const sides: (readonly [Arrivals[], number])[] = [
      [quiet, 0],
      [hanging, hangingEndpoints],
    ];
    for (const [list, hang] of round % 2 === 0 ? sides : sides.reverse()) {
      const sample = await postAndCount(parts, types, hang);
      if (isMeasured) list.push(sample);
    }
  }
  const ratio = spreadOf(hanging.map(({ p95Ms }, round) => p95Ms / (quiet[round]?.p95Ms ?? Number.NaN)));
  return { quiet: timed(quiet), hanging: timed(hanging), ratio };
}

/** As many events as the program takes, until its compiler has done with what a post goes through. */
export async function warmUp({ run, receiver, program }: Omit<ArrivalParts, 'perSecond'>): Promise<void> {
  const before = await program.settled();
  const { settlingRounds, measuredMs } = run.options;
  if (settlingRounds === 0) return;
  await receiver.ask({ do: 'reset' });
  const { posted } = await receiver.ask<Posting>({
    ...{ do: 'post', origin: program.origin, adminKey, types: ['arrivals.one'], perSecond: 1_000_000 },
    ...{ durationMs: settlingRounds * measuredMs, outstandingMax: warmUpOutstanding },
  });
  await receiver.ask<Arrivals>({ do: 'await', count: posted, timeoutMs: arrivalsMsMax });
  await program.awaitSettled(before.delivered + posted);
}

async function postAndCount(
  { run, receiver, program, perSecond }: ArrivalParts,
  types: readonly string[],
  hang: number,
): Promise<Arrivals> {
  const before = await program.settled();
  await receiver.ask({ do: 'reset' });
  await receiver.ask({ do: 'hang', ports: hang });
  const { posted } = await receiver.ask<Posting>({
    ...{ do: 'post', origin: program.origin, adminKey, types, perSecond },
    durationMs: run.options.measuredMs,
  });
  // What waits behind the hanging ones comes after this, and is not measured.
  if (hang > 0) await receiver.ask({ do: 'hang', ports: 0 });
  const arrivals = await receiver.ask<Arrivals>({ do: 'await', count: posted, timeoutMs: arrivalsMsMax });
  await program.awaitSettled(before.delivered + posted);
  if (arrivals.count !== posted) throw new Error(`${arrivals.count} events arrived, not ${posted}`);
  return arrivals;
}

function timed(samples: readonly Arrivals[]): Timed {
  return {
    p50Ms: spreadOf(samples.map(({ p50Ms }) => p50Ms)),
    p95Ms: spreadOf(samples.map(({ p95Ms }) => p95Ms)),
  };
}
