/**
 * Owed deliveries: a unit that matches more endpoints than one unit may hold writes which endpoints receive which
 * events, in rows of a table of their own (docs/decisions/0053). make-owed-deliveries.ts makes the deliveries.
 *
 * A part is a list of blocks; a block stands for a delivery of each of its events to each of its endpoints.
 */
import { always, byId } from '../../../model/filter.ts';
import { rowBatches } from '../../../store/in-batches.ts';
import { type Change, type EventEntry, keptRow, type Row, type Store } from '../../../store/store.ts';
import type { KnownEndpoint } from '../known-endpoint.ts';
import { fanOutTable } from '../sending-tables.ts';
import { deliveryChange } from './delivery-row.ts';

/** Deliveries in one unit: about 5 ms of the writer, and 2 ms of the event loop. */
export const deliveriesPerUnitMax = 256;

/** Events in one block: each unit of deliveries rewrites its part. */
const eventsPerBlockMax = 64;
/** Parts made in one turn of the event loop, at most 20 KiB each. */
const partsPerTurn = 64;
/** Parts in memory at once. */
const partsPerReadMax = 8;

/** `at`: when its deliveries are due, in milliseconds since the epoch. */
export type OwedEvent = { readonly id: string; readonly type: string; readonly at: number };

export type Block = { readonly events: readonly OwedEvent[]; readonly endpointIds: readonly string[] };

export type FanOutPart = {
  /** The process that created the part, and makes its deliveries unless it ends. */
  readonly processId: string;
  readonly blocks: readonly Block[];
};

/** Events by list of endpoints; events with the same endpoints share one list. */
export type MatchedLists = ReadonlyMap<readonly KnownEndpoint[], readonly EventEntry[]>;

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

export type Taken = {
  readonly deliveries: readonly Change[];
  readonly endpointIds: ReadonlySet<string>;
  readonly rest: readonly Block[];
};

/**
 * Takes as many deliveries as one unit holds, and returns what is still owed.
 * @param find returns the current endpoint; undefined: it was removed, and is owed nothing
 */
export function takeDeliveries(
  blocks: readonly Block[],
  find: (id: string) => KnownEndpoint | undefined,
  newId: () => string,
): Taken {
  const deliveries: Change[] = [];
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
        deliveries.push(deliveryChange(event, known, event.at, newId));
      }
    }
    if (count < block.events.length) rest.push({ ...block, events: block.events.slice(count) });
  }
  return { deliveries, endpointIds, rest };
}

/** Returns the change of the part for a unit that makes these deliveries. */
export function partAfter(row: Pick<Row, 'id' | 'rev' | 'createdAt'>, part: FanOutPart, at: number): Change {
  const { id, rev, createdAt } = row;
  const next =
    part.blocks.length === 0 ? null : keptRow(JSON.stringify(part), null, createdAt, Math.max(at, createdAt));
  return { table: fanOutTable, id, expect: { rev }, next };
}

/** Oldest first. @throws StoreUnavailable */
export async function* readParts(
  store: Pick<Store, 'plan'>,
): AsyncGenerator<{ readonly row: Row; readonly part: FanOutPart }> {
  const plan = store.plan({ table: fanOutTable, filter: always, sort: byId, limit: partsPerReadMax });
  for await (const rows of rowBatches(plan, partsPerReadMax)) {
    for (const row of rows) yield { row, part: JSON.parse(row.doc) as FanOutPart };
  }
}

/**
 * Returns the events of which the endpoint is owed a delivery. A caller that reads deliveries afterwards misses none.
 * @throws StoreUnavailable
 */
export async function owedTo(store: Pick<Store, 'plan'>, endpointId: string): Promise<ReadonlySet<string>> {
  const owed = new Set<string>();
  for await (const { part } of readParts(store)) {
    for (const { events, endpointIds } of part.blocks) {
      if (endpointIds.includes(endpointId)) for (const { id } of events) owed.add(id);
    }
  }
  return owed;
}
