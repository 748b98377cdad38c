/** The lanes of this process: leased where others share the store, all of them where it has the store for itself. */
import type { Lanes } from '../lanes.ts';
import { type LanesOptions, Leases } from './leases.ts';

/**
 * @returns when it has asked for its lanes once; with a store that is away it goes on asking
 * @throws RangeError when the lease is no longer than an attempt
 */
export async function createLanes(options: LanesOptions): Promise<Lanes> {
  if (!options.store.shared) return everyLane;
  const leases = new Leases(options);
  await leases.open();
  return leases;
}

/** Those of a process that has the store for itself. */
const everyLane: Lanes = {
  owns: () => true,
  hold: () => undefined,
  release: () => undefined,
  onChange: () => () => undefined,
  close: async () => undefined,
};
