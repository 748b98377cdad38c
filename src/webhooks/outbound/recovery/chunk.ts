/**
 * One step of a recovery: some events of the log, which of them the endpoint wants, and what is done about each. Everything that
 * it changes commits as one unit with its progress, so a step is made once, whoever makes it.
 *
 *   no delivery           the event was missed, as while the endpoint was disabled: there is a delivery now
 *   failed, tried later   or never again: it is tried now, as if asked for by hand, and its schedule stays where it was
 *   delivered, or due     left alone; so is one that the unit of the event owes and that is about to be made
 *
 * Events for one endpoint alone, which tests make, are not for recoveries.
 */
import { type Delivery, deliveryDocument } from '../../../model/delivery.ts';
import { always, byId } from '../../../model/filter.ts';
import { keptRow } from '../../../store/kept-row.ts';
import { isTailFull } from '../../../store/page-of-rows.ts';
import type { Change, LogPosition, Row, Store, TailEntry } from '../../../store/store.ts';
import { deliveriesCollection } from '../collections.ts';
import { deliveryChange } from '../fan-out/delivery-row.ts';
import { owedTo } from '../fan-out/fan-out-parts.ts';
import type { KnownEndpoint } from '../known-endpoint.ts';
import { createdOf, findPlace, slackMs } from './find-place.ts';
import { isBeyond } from './log-place.ts';
import { endOf, placeOf, type Recovery, type RecoveryCounts } from './recovery.ts';
import { isTestEvent } from './test-event.ts';

/** Events of one step, each of which may give one change to the unit, and octets of their payloads, which are all in memory. */
export const chunkEventsMax = 100;
const chunkBytesMax = 1024 * 1024;
/** Deliveries of one event that are read at once; an event has as many as endpoints want it. */
const deliveriesPerReadMax = 100;

/** Whether the endpoint's patterns, its tenant and its owner's rights let the event through. */
export type Wants = (
  known: KnownEndpoint,
  event: Pick<TailEntry, 'type' | 'collection' | 'owner' | 'doc'>,
) => boolean;

export type ChunkParts = {
  readonly store: Pick<Store, 'tail' | 'head' | 'plan'>;
  readonly wants: Wants;
  readonly newId: () => string;
};

export type Chunk = {
  readonly counts: RecoveryCounts;
  /** Of deliveries; none in a dry run. */
  readonly changes: readonly Change[];
  readonly after: LogPosition;
  /** Nothing is left to look at. */
  readonly isLast: boolean;
};

/** @param at milliseconds since the epoch: when what it changes is due */
export async function nextChunk(
  parts: ChunkParts,
  recovery: Recovery,
  known: KnownEndpoint,
  at: number,
): Promise<Chunk> {
  const { store, wants } = parts;
  const since = wholeSecond(recovery.since);
  const until = Date.parse(recovery.until);
  const from = placeOf(recovery) ?? (await findPlace(store, since));
  const entries = await store.tail(from, always, chunkEventsMax, { bytesMax: chunkBytesMax });
  const counts = { examined: 0, matching: 0, resent: 0, created: 0 };
  const changes: Change[] = [];
  let after = from;
  let owed: ReadonlySet<string> | undefined;
  let isLast = !isTailFull(entries, chunkEventsMax, chunkBytesMax);
  for (const entry of entries) {
    const created = createdOf(entry.doc);
    if (isBeyond(entry, endOf(recovery)) || created > until + slackMs) {
      isLast = true;
      break;
    }
    after = { rev: entry.rev, id: entry.id };
    if (created < since || created > until) continue;
    counts.examined += 1;
    if (isTestEvent(entry) || !wants(known, entry)) continue;
    counts.matching += 1;
    owed ??= await owedTo(store, known.endpoint.id);
    if (owed.has(entry.id)) continue;
    const { kind, change } = await remedy(parts, entry, known, at);
    if (kind !== 'none') counts[kind] += 1;
    if (change !== undefined && !recovery.dryRun) changes.push(change);
  }
  return { counts, changes, after, isLast };
}

/** Events tell the second that they were made in. */
function wholeSecond(time: string): number {
  return Math.floor(Date.parse(time) / 1000) * 1000;
}

type Remedy =
  | { readonly kind: 'none'; readonly change?: undefined }
  | { readonly kind: 'resent' | 'created'; readonly change: Change };

async function remedy(
  { store, newId }: ChunkParts,
  event: TailEntry,
  known: KnownEndpoint,
  at: number,
): Promise<Remedy> {
  const row = await findDelivery(store, event.id, known.endpoint.id);
  if (row === undefined) {
    const made = { id: event.id, type: event.type };
    return { kind: 'created', change: deliveryChange(made, known, at, newId) };
  }
  const delivery = JSON.parse(row.doc) as Delivery;
  if (delivery.status !== 'not_delivered' || isDue(delivery, at)) return { kind: 'none' };
  const time = new Date(Math.max(at, row.updatedAt)).toISOString();
  const doc = deliveryDocument({ ...delivery, status: 'pending', dueAt: time, updatedAt: time });
  const next = keptRow(doc, row.owner, row.createdAt, Date.parse(time));
  return { kind: 'resent', change: { table, id: row.id, expect: { rev: row.rev }, next } };
}

function isDue({ dueAt }: Delivery, at: number): boolean {
  return dueAt !== null && Date.parse(dueAt) <= at;
}

const table = deliveriesCollection.name;
const eventIdField = deliveriesCollection.fields.get('eventId');

/** Along the index by event: what an event led to is mostly a handful of rows. */
async function findDelivery(
  store: Pick<Store, 'plan'>,
  eventId: string,
  endpointId: string,
): Promise<Row | undefined> {
  if (eventIdField === undefined) throw new Error('deliveries have no eventId');
  const filter = { op: 'eq', field: eventIdField, value: eventId } as const;
  const plan = store.plan({ table, filter, sort: byId, limit: deliveriesPerReadMax });
  const marked = `"endpointId":"${endpointId}"`;
  let rows = await plan.rows({ from: 'start' });
  for (;;) {
    const found = rows.find(({ doc }) => doc.includes(marked));
    const last = rows.at(-1);
    if (found !== undefined || last === undefined || rows.length < deliveriesPerReadMax) return found;
    await givesWay();
    rows = await plan.rows({ from: 'after', key: [last.id] });
  }
}

/** The embedded store answers at once, so a loop over it would hold up everything else. */
function givesWay(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
