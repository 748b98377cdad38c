/** Meets the events of all processes in the log, and tells which endpoints they go to. */
import { always } from '../../../model/filter.ts';
import { isTailFull } from '../../../store/page-of-rows.ts';
import type { EndpointDirectory } from '../known-endpoint.ts';
import { deliveriesPerUnitMax } from './fan-out-parts.ts';
import { createFollower, type Followed, type Follower } from './follower.ts';

/** Events of one reading, and octets of their documents, which are all in memory. */
const eventsPerReadMax = 256;
const bytesPerReadMax = 1024 * 1024;

/** From the head of the log on. @throws StoreUnavailable */
export async function followEvents(
  { store, directory, observe }: Followed & { readonly directory: Pick<EndpointDirectory, 'matching'> },
  announce: (endpointIds: Iterable<string>) => void,
): Promise<Follower> {
  let position = await store.head();

  async function read(): Promise<void> {
    for (let isFull = true; isFull; ) {
      const entries = await store.tail(position, always, eventsPerReadMax, { bytesMax: bytesPerReadMax });
      const endpoints = new Set<string>();
      for (const entry of entries) {
        const { groups } = directory.matching(entry);
        const count = groups.reduce((sum, group) => sum + group.length, 0);
        // Their deliveries were owed, and were told of when they were made.
        if (count > deliveriesPerUnitMax) continue;
        for (const group of groups) for (const { endpoint } of group) endpoints.add(endpoint.id);
      }
      position = entries.at(-1) ?? position;
      isFull = isTailFull(entries, eventsPerReadMax, bytesPerReadMax);
      announce(endpoints);
    }
  }

  return createFollower({
    subscribe: (listener) => store.onAppend(listener),
    read,
    what: 'event log',
    observe,
  });
}
