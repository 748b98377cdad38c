/**
 * The endpoints that this process sends for now: enabled, told things for somebody, and in a lane of ours. Compares what the
 * directory and the lanes say with what they said before, and tells who came, changed or left.
 *
 * Changes are gathered for a moment, because one pass goes over all endpoints (1 ms for 10^4). Until then what begins an attempt asks
 * the directory and the lanes themselves, so nothing is sent on the word of an old roster.
 */
import type { EndpointDirectory, KnownEndpoint } from '../known-endpoint.ts';
import type { Lanes } from '../lanes.ts';
import { partyOf } from '../party.ts';
import type { Timers } from './timers.ts';

const gatherMs = 10;

export type RosterOptions = {
  readonly directory: Pick<EndpointDirectory, 'all' | 'get' | 'onChange'>;
  readonly lanes: Pick<Lanes, 'owns' | 'onChange'>;
  readonly timers: Timers;
  /** It is sent to from now on, or something of it changed. `returning`: it was disabled before. */
  readonly onCome: (id: string, returning: boolean) => void;
  readonly onLeave: (id: string) => void;
  /** The lanes changed: what was read for them may be stale. Called at once. */
  readonly onLanes: () => void;
};

export type Roster = {
  /** Compares now. */
  review(): void;
  ids(): Iterable<string>;
  /** Parties with endpoints that are ours. */
  readonly parties: number;
  close(): void;
};

/** Whether events may be sent to it at all, whosever lane it is in. */
export function isSendable(known: KnownEndpoint | undefined): known is KnownEndpoint {
  return known !== undefined && known.endpoint.status === 'enabled' && known.principal !== undefined;
}

export function createRoster({ directory, lanes, timers, onCome, onLeave, onLanes }: RosterOptions): Roster {
  /** Revisions of those that are ours. */
  const ours = new Map<string, number>();
  const disabled = new Set<string>();
  let parties = 0;
  let cancel: (() => void) | undefined;
  /** The lanes were others for a time: whoever is ours may have been given up meanwhile. */
  let lanesChanged = false;

  function review(): void {
    cancel?.();
    cancel = undefined;
    const seen = new Set<string>();
    for (const known of directory.all()) {
      const { id, status } = known.endpoint;
      const before = ours.get(id);
      if (isSendable(known) && lanes.owns(id)) {
        seen.add(partyOf(known));
        const returning = disabled.delete(id);
        if (before === known.rev && !returning && !lanesChanged) continue;
        ours.set(id, known.rev);
        onCome(id, returning);
      } else {
        if (status === 'disabled') disabled.add(id);
        if (ours.delete(id)) onLeave(id);
      }
    }
    for (const id of ours.keys()) {
      if (directory.get(id) !== undefined) continue;
      ours.delete(id);
      onLeave(id);
    }
    parties = seen.size;
    lanesChanged = false;
    for (const id of disabled) if (directory.get(id) === undefined) disabled.delete(id);
  }

  function soon(): void {
    cancel ??= timers.after(gatherMs, review);
  }

  const stops = [
    directory.onChange(soon),
    lanes.onChange(() => {
      lanesChanged = true;
      onLanes();
      soon();
    }),
  ];
  return {
    review,
    ids: () => ours.keys(),
    get parties() {
      return parties;
    },
    close() {
      cancel?.();
      for (const stop of stops) stop();
    },
  };
}
