/**
 * Makes owed deliveries (owed-deliveries.ts), a few hundred per unit, so that other writes are committed in between.
 * Each unit removes from the part what it makes, and expects the part as read: each delivery is made once, by any
 * process, even if processes are killed.
 *
 * A process makes the deliveries of its own parts as soon as they are committed. Other processes find the parts of a
 * process that has ended, because each looks at all parts at its start and at intervals.
 */
import type { Services } from '../../../store/capabilities.ts';
import type { Row } from '../../../store/store.ts';
import { fanOutTable } from '../sending-tables.ts';
import { createFollower, type Wakes } from '../wakes.ts';
import type { FollowedDirectory } from './directory.ts';
import { type FanOutPart, partAfter, readParts, takeDeliveries } from './owed-deliveries.ts';

export type Expansion = {
  look(): void;
  /** Waits for the unit under way. Another process, or the next start, makes the rest. */
  close(): Promise<void>;
};

const lookMsDefault = 10_000;

/** @param lookMs interval of looks for parts of processes that have ended */
export function createExpansion(
  services: Services,
  directory: Pick<FollowedDirectory, 'get' | 'refresh'>,
  wakes: Pick<Wakes, 'changesForAll' | 'announce'>,
  lookMs = lookMsDefault,
): Expansion {
  const { store, newId, clock } = services;
  let look = (): void => undefined;
  let isClosed = false;

  /** @returns true if this process makes the deliveries of the part */
  async function isOurs({ processId }: FanOutPart): Promise<boolean> {
    if (processId === store.processId) return true;
    if (!(await store.hasEnded(processId))) return false;
    // Its endpoints may be newer than this process's directory.
    await directory.refresh();
    return true;
  }

  async function expand(row: Row, { processId, blocks }: FanOutPart): Promise<void> {
    let { rev } = row;
    for (let owed = blocks; owed.length > 0 && !isClosed; ) {
      const { deliveries, endpointIds, rest } = takeDeliveries(owed, directory.get, newId);
      const changes = [
        partAfter({ ...row, rev }, { processId, blocks: rest }, clock()),
        ...deliveries,
        ...wakes.changesForAll(endpointIds),
      ];
      const commit = await store.commit({ changes, events: [] });
      if (commit.outcome === 'committed') {
        wakes.announce(endpointIds);
        owed = rest;
        rev = commit.rev;
        continue;
      }
      // Another process made them, and may have ended since.
      const current = await store.read(fanOutTable, row.id);
      if (current === undefined) return;
      owed = (JSON.parse(current.doc) as FanOutPart).blocks;
      rev = current.rev;
    }
  }

  function subscribe(listener: () => void): () => void {
    look = listener;
    const timer = setInterval(listener, lookMs);
    timer.unref();
    return () => clearInterval(timer);
  }

  async function read(): Promise<void> {
    for await (const { row, part } of readParts(store)) {
      if (isClosed) return;
      if (await isOurs(part)) await expand(row, part);
    }
  }

  const follower = createFollower(services, 'deliveries that are owed', subscribe, read);
  return {
    look: () => look(),
    async close() {
      isClosed = true;
      await follower.close();
    },
  };
}
