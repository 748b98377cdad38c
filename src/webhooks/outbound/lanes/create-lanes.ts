/**
 * The lanes of this process: leased where others share the store, all of them where it has the store for itself. Nothing is leased before
 * there is an endpoint or something else that needs lanes, so a program that sends nothing writes nothing for it.
 */
import type { EndpointDirectory } from '../known-endpoint.ts';
import type { Lanes } from '../lanes.ts';
import { Leases, type LeasesOptions } from './leases.ts';

export type LanesOptions = LeasesOptions & {
  readonly directory: Pick<EndpointDirectory, 'all' | 'onChange'>;
};

/**
 * @returns when it has asked for its lanes once, where it needs any; with a store that is away it goes on asking
 * @throws RangeError when the lease is no longer than an attempt
 */
export async function createLanes(options: LanesOptions): Promise<Lanes> {
  if (!options.store.shared) return everyLane;
  const { directory } = options;
  const leases = new Leases(options);
  let opening: Promise<void> | undefined;
  const need = (): void => {
    opening ??= leases.open();
  };
  const openWhenNeeded = (): void => {
    if (hasAny(directory.all())) need();
  };
  const stopFollowing = directory.onChange(openWhenNeeded);
  openWhenNeeded();
  await opening;
  return {
    owns: (endpointId) => leases.owns(endpointId),
    need,
    hold: (endpointId) => leases.hold(endpointId),
    release: (endpointId) => leases.release(endpointId),
    onChange: (listener) => leases.onChange(listener),
    async close() {
      stopFollowing();
      if (opening === undefined) return;
      await opening;
      await leases.close();
    },
  };
}

function hasAny(all: Iterable<unknown>): boolean {
  for (const _each of all) return true;
  return false;
}

/** Those of a process that has the store for itself. */
const everyLane: Lanes = {
  owns: () => true,
  need: () => undefined,
  hold: () => undefined,
  release: () => undefined,
  onChange: () => () => undefined,
  close: async () => undefined,
};
