/** A sink for what this process noticed of others that were started with another configuration: the newest time of each, for administrators. */
import type { Observe } from './observation.ts';

/** Kinds of differences are few (store/postgres/peers.ts). */
const differencesMax = 16;

export type Difference = { readonly what: string; readonly noticedAt: string };

export type Differences = {
  readonly observe: Observe;
  /** The difference between this clock and another process's, as long as there is one. */
  readonly clockDifference: () => string | undefined;
  readonly differences: () => readonly Difference[];
};

export function createDifferences(clock: () => number): Differences {
  const noticed = new Map<string, string>();
  let clockDifference: Difference | undefined;
  return {
    observe: (observation) => {
      if (observation.kind === 'clocks-differ') {
        const { otherAheadMs } = observation;
        const noticedAt = new Date(clock()).toISOString();
        clockDifference = otherAheadMs === 0 ? undefined : { what: clockText(otherAheadMs), noticedAt };
        return;
      }
      if (observation.kind !== 'processes-differ' || noticed.size >= differencesMax) return;
      noticed.set(observation.what, new Date(clock()).toISOString());
    },
    clockDifference: () => clockDifference?.what,
    differences: () => [
      ...[...noticed].map(([what, noticedAt]) => ({ what, noticedAt })),
      ...(clockDifference === undefined ? [] : [clockDifference]),
    ],
  };
}

/** @param otherAheadMs behind, if negative */
export function clockText(otherAheadMs: number): string {
  const seconds = Math.round(Math.abs(otherAheadMs) / 1000);
  return `a clock that is ${seconds} s ${otherAheadMs > 0 ? 'ahead of' : 'behind'} this one's`;
}
