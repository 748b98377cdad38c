/** One step of one recovery: the next chunk with the progress that it makes, committed together, or its end. */

import { type Delivery, deliveryDocument } from '../../../model/delivery.ts';
import { always, byId } from '../../../model/filter.ts';
import type { Services } from '../../../store/capabilities.ts';
import { keptRow } from '../../../store/kept-row.ts';
import { isTailFull } from '../../../store/page-of-rows.ts';
import type { Change, LogPosition, Row, Store, TailEntry } from '../../../store/store.ts';
import { deliveryChange } from '../fan-out/delivery-row.ts';
import { owedTo } from '../fan-out/owed-deliveries.ts';
import type { EndpointDirectory, KnownEndpoint } from '../known-endpoint.ts';
import { deliveriesCollection, endpointsCollection } from '../sending-tables.ts';
import { isTestEvent } from '../test-events.ts';
import type { Wakes } from '../wakes.ts';
import {
  ended,
  endOf,
  isBeyond,
  placeOf,
  progressed,
  type Recovery,
  type RecoveryCounts,
  recoveriesTable,
} from './recovery.ts';

export type StepParts = Omit<ChunkParts, 'store'> &
  Pick<Services, 'store' | 'clock'> & {
    readonly directory: Pick<EndpointDirectory, 'get' | 'refresh'>;
    readonly wakes: Pick<Wakes, 'changesFor' | 'announce'>;
  };

/** `lost`: something that it rests on changed meanwhile, and nothing was done. */
export type Stepped = 'made' | 'lost' | 'over';

/** @throws StoreUnavailable */
export async function recoverStep(parts: StepParts, id: string): Promise<Stepped> {
  const { store, clock } = parts;
  const row = await store.read(recoveriesTable, id);
  if (row === undefined) return 'over';
  const recovery = JSON.parse(row.doc) as Recovery;
  if (recovery.status !== 'running') return 'over';
  const known = await findEndpoint(parts, recovery.endpointId);
  if (known === 'gone') return endWith(store, [ended(row, recovery, 'stopped', clock())]);
  if (known === 'unknown') return 'lost';
  return advance(parts, row, recovery, known);
}

async function advance(
  parts: StepParts,
  row: Row,
  recovery: Recovery,
  known: KnownEndpoint,
): Promise<Stepped> {
  const { store, wakes, clock } = parts;
  const at = clock();
  const { counts, changes, after, isLast } = await nextChunk(parts, recovery, known, at);
  const progress = progressed(row, recovery, { counts, after }, at);
  const last = isLast ? finished(row, progress, at) : progress;
  const woken = changes.length > 0 ? wakes.changesFor(recovery.endpointId) : [];
  const commit = await store.commit({ changes: [last, ...changes, ...woken], events: [] });
  if (commit.outcome !== 'committed') return 'lost';
  if (changes.length > 0) wakes.announce([recovery.endpointId]);
  return isLast ? 'over' : 'made';
}

/** The last progress and the end are one change. */
function finished(row: Row, { next }: Change, at: number): Change {
  if (next === null) throw new Error('progress that removes its recovery');
  return ended(row, JSON.parse(next.doc) as Recovery, 'finished', at);
}

async function endWith(store: Store, changes: readonly Change[]): Promise<Stepped> {
  const commit = await store.commit({ changes, events: [] });
  return commit.outcome === 'committed' ? 'over' : 'lost';
}

/** The directory follows the store, so one that it does not know may just have been made, or be gone. */
async function findEndpoint(
  { store, directory }: StepParts,
  id: string,
): Promise<KnownEndpoint | 'gone' | 'unknown'> {
  const known = directory.get(id);
  if (known !== undefined) return known;
  if ((await store.read(endpointsCollection.name, id)) === undefined) return 'gone';
  await directory.refresh();
  return directory.get(id) ?? 'unknown';
}

/*
 * One step of a recovery: some events of the log, which of them the endpoint wants, and what is done about each. Everything that
 * it changes commits as one unit with its progress, so a step is made once, whoever makes it.
 *
 *   no delivery           the event was missed, as while the endpoint was disabled: there is a delivery now
 *   failed, tried later   or never again: it is tried now, as if asked for by hand, and its schedule stays where it was
 *   delivered, or due     left alone; so is one that the unit of the event owes and that is about to be made
 *
 * Events for one endpoint alone, which tests make, are not for recoveries.
 */

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

type ChunkParts = {
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
async function nextChunk(
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

/*
 * Where a time lies in the event log. The log is ordered by revision and tells times only in the events themselves; they grow with it but
 * for clocks that differ and units that wait for their commit, and so by less than the slack. A search by halves takes a read of one
 * event for each bit of the revision, however long the log.
 */

/** How far the times of neighbours in the log may be out of order. */
export const slackMs = 5 * 60_000;

/**
 * @param since milliseconds since the epoch
 * @returns a place that every event of that time or later, give or take the slack, lies behind
 */
export async function findPlace(store: Pick<Store, 'tail' | 'head'>, since: number): Promise<LogPosition> {
  const threshold = since - slackMs;
  let low = 0;
  let high = (await store.head()).rev + 1;
  // Every event before `low` is too old; none from `high` on is.
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const [event] = await store.tail({ rev: middle, id: '' }, always, 1);
    if (event === undefined || createdOf(event.doc) >= threshold) high = middle;
    else low = event.rev + 1;
  }
  return { rev: low, id: '' };
}

const createdMember = '"created":';

/**
 * When an event was made, in milliseconds since the epoch, to the second (§6.2). No text before the member can hold its name: a quotation
 * mark within a text is escaped.
 */
export function createdOf(doc: string): number {
  const start = doc.indexOf(createdMember) + createdMember.length;
  return Number.parseInt(doc.slice(start, start + 16), 10) * 1000;
}
