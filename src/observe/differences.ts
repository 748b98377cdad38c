/** A sink for what this process noticed of others that were started with another configuration: the newest time of each, for administrators. */
import type { Observe } from './observation.ts';

/** Kinds of differences are few (store/postgres/peers.ts). */
const differencesMax = 16;

export type Difference = { readonly what: string; readonly noticedAt: string };

export type Differences = {
  readonly observe: Observe;
  readonly list: () => readonly Difference[];
};

export function createDifferences(clock: () => number): Differences {
  const noticed = new Map<string, string>();
  return {
    observe: (observation) => {
      if (observation.kind !== 'processes-differ' || noticed.size >= differencesMax) return;
      noticed.set(observation.what, new Date(clock()).toISOString());
    },
    list: () => [...noticed].map(([what, noticedAt]) => ({ what, noticedAt })),
  };
}
