/**
 * Owed deliveries: a unit that matches more endpoints than one unit may hold writes which endpoints receive which
 * events, in rows of a table of their own (docs/decisions/0053). The process that committed it makes the deliveries
 * afterwards, a few hundred in a step; other processes find the parts of a process that has ended.
 *
 * A part is a list of blocks; a block stands for a delivery of each of its events to each of its endpoints.
 */
import type { Endpoint } from '../../../model/endpoint.ts';
import { always, byId } from '../../../model/filter.ts';
import type { Services } from '../../../store/capabilities.ts';
import { rowBatches } from '../../../store/in-batches.ts';
import {
  type Change,
  type EventEntry,
  eventsTable,
  keptRow,
  type ListQuery,
  type Row,
  type Store,
} from '../../../store/store.ts';
import { orderKeyOf } from '../delivery-order.ts';
import type { EndpointDirectory, KnownEndpoint } from '../known-endpoint.ts';
import { deliveryChanges } from '../new-deliveries.ts';
import { deliveriesPerUnitMax, fanOutTable } from '../sending-tables.ts';
import { type Step, Steps } from '../steps.ts';
import type { Wakes } from '../wakes.ts';

/** Events in one block: each unit of deliveries rewrites its part. */
const eventsPerBlockMax = 64;
/** Parts made in one turn of the event loop, at most 20 KiB each. */
const partsPerTurn = 64;
/** Parts in memory at once. */
const partsPerReadMax = 8;

/** `at`: when its deliveries are due, in milliseconds since the epoch. */
type OwedEvent = { readonly id: string; readonly type: string; readonly at: number };

type Block = { readonly events: readonly OwedEvent[]; readonly endpointIds: readonly string[] };

type FanOutPart = {
  /** The process that created the part, and makes its deliveries unless it ends. */
  readonly processId: string;
  readonly blocks: readonly Block[];
  /** The revision of the unit that owes them; absent: that of the row. */
  readonly rev?: number;
};

/** Events by list of endpoints; events with the same endpoints share one list. */
type MatchedLists = ReadonlyMap<readonly KnownEndpoint[], readonly EventEntry[]>;

/**
 * Returns the rows of owed deliveries. Yields to the event loop in between.
 * @param newId returns increasing ids without a prefix
 */
export async function partChanges(
  lists: MatchedLists,
  processId: string,
  at: number,
  newId: () => string,
): Promise<readonly Change[]> {
  const changes: Change[] = [];
  let blocks: Block[] = [];
  let size = 0;

  function close(): void {
    const part: FanOutPart = { processId, blocks };
    const next = keptRow(JSON.stringify(part), null, at, at);
    changes.push({ table: fanOutTable, id: newId(), expect: { absent: true }, next });
    blocks = [];
    size = 0;
  }

  for (const block of blocksOf(lists)) {
    const adds = block.events.length + block.endpointIds.length;
    if (size > 0 && size + adds > deliveriesPerUnitMax + eventsPerBlockMax) {
      close();
      if (changes.length % partsPerTurn === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    blocks.push(block);
    size += adds;
  }
  if (size > 0) close();
  return changes;
}

function* blocksOf(lists: MatchedLists): Generator<Block> {
  for (const [endpoints, events] of lists) {
    for (let from = 0; from < endpoints.length; from += deliveriesPerUnitMax) {
      const ids = endpoints.slice(from, from + deliveriesPerUnitMax).map(({ endpoint }) => endpoint.id);
      for (let first = 0; first < events.length; first += eventsPerBlockMax) {
        const some = events.slice(first, first + eventsPerBlockMax);
        yield {
          events: some.map(({ id, type, createdAt }) => ({ id, type, at: createdAt })),
          endpointIds: ids,
        };
      }
    }
  }
}

const parts: ListQuery = { table: fanOutTable, filter: always, sort: byId, limit: partsPerReadMax };
const lookMsDefault = 10_000;

/**
 * Makes owed deliveries.
 * @param lookMs interval of looks for parts of processes that have ended
 */
export function makeOwedDeliveries(
  services: Services,
  directory: Pick<EndpointDirectory, 'get' | 'refresh'>,
  wakes: Pick<Wakes, 'changesForAll' | 'announce'>,
  lookMs = lookMsDefault,
): Pick<Steps, 'look' | 'close'> {
  const { store, newId, clock } = services;
  const steps = new Steps(services, wakes, {
    what: 'deliveries that are owed',
    query: parts,
    isInOrder: true,
    everyMs: lookMs,
    async isOurs({ doc }) {
      const { processId } = readPart(doc);
      if (processId === store.processId) return true;
      if (!(await store.hasEnded(processId))) return false;
      // Its endpoints may be newer than this process's directory.
      await directory.refresh();
      return true;
    },
    async step(row): Promise<Step> {
      const { doc, createdAt } = row;
      const { processId, blocks } = readPart(doc);
      const rev = revOf(row);
      const taken = takeDeliveries(blocks, directory.get);
      const { deliveries, endpointIds, rest } = { ...taken, deliveries: [] as Change[] };
      for (const { event, known } of taken.owed) {
        const key =
          known.endpoint.orderBy === undefined ? undefined : await keyOf(store, known.endpoint, event.id);
        const order = key === undefined ? undefined : { key, rev };
        deliveries.push(...deliveryChanges({ event, at: event.at, order }, known, newId));
      }
      const made = { deliveries, endpointIds };
      if (rest.length === 0) return { ...made, next: null };
      const part: FanOutPart = { processId, blocks: rest, rev };
      return { ...made, next: keptRow(JSON.stringify(part), null, createdAt, Math.max(clock(), createdAt)) };
    },
  });
  steps.start();
  return steps;
}

function readPart(doc: string): FanOutPart {
  return JSON.parse(doc) as FanOutPart;
}

/** An event that is gone, or was expunged, needs no order. */
async function keyOf(
  store: Pick<Store, 'read'>,
  endpoint: Endpoint,
  eventId: string,
): Promise<string | undefined> {
  const row = await store.read(eventsTable, eventId);
  return row === undefined ? undefined : orderKeyOf(endpoint, row.doc);
}

function revOf({ doc, rev }: Row): number {
  return readPart(doc).rev ?? rev;
}

type Taken = Pick<Step, 'endpointIds'> & {
  readonly owed: readonly { readonly event: OwedEvent; readonly known: KnownEndpoint }[];
  readonly rest: readonly Block[];
};

/**
 * Takes as many deliveries as one unit holds, and returns what is still owed.
 * @param find returns the current endpoint; undefined: it was removed, and is owed nothing
 */
function takeDeliveries(blocks: readonly Block[], find: (id: string) => KnownEndpoint | undefined): Taken {
  const owed: Taken['owed'][number][] = [];
  const endpointIds = new Set<string>();
  let left = deliveriesPerUnitMax;
  const rest: Block[] = [];
  for (const block of blocks) {
    const count = Math.min(block.events.length, Math.floor(left / block.endpointIds.length));
    left = count < block.events.length ? 0 : left - count * block.endpointIds.length;
    for (const event of block.events.slice(0, count)) {
      for (const id of block.endpointIds) {
        const known = find(id);
        if (known === undefined) continue;
        endpointIds.add(id);
        owed.push({ event, known });
      }
    }
    if (count < block.events.length) rest.push({ ...block, events: block.events.slice(count) });
  }
  return { owed, endpointIds, rest };
}

/**
 * Returns true if a unit up to the revision owes the endpoint deliveries. A caller that reads lines afterwards misses none.
 * @throws StoreUnavailable
 */
export async function isOwedBefore(
  store: Pick<Store, 'plan'>,
  endpointId: string,
  rev: number,
): Promise<boolean> {
  for await (const rows of rowBatches(store.plan(parts), partsPerReadMax)) {
    if (rows.some((row) => row.doc.includes(`"${endpointId}"`) && revOf(row) <= rev)) return true;
  }
  return false;
}

/**
 * Returns the events of which the endpoint is owed a delivery. A caller that reads deliveries afterwards misses none.
 * @throws StoreUnavailable
 */
export async function owedTo(store: Pick<Store, 'plan'>, endpointId: string): Promise<ReadonlySet<string>> {
  const owed = new Set<string>();
  for await (const rows of rowBatches(store.plan(parts), partsPerReadMax)) {
    for (const { events, endpointIds } of rows.flatMap(({ doc }: Row) => readPart(doc).blocks)) {
      if (endpointIds.includes(endpointId)) for (const { id } of events) owed.add(id);
    }
  }
  return owed;
}
