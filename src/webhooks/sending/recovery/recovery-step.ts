/** One step of a recovery: the next chunk and the progress, committed together, or its end. */
import { type Delivery, deliveryDocument } from '../../../model/delivery.ts';
import { always, byId } from '../../../model/filter.ts';
import type { Services } from '../../../store/capabilities.ts';
import { rowBatches } from '../../../store/in-batches.ts';
import { isTailFull } from '../../../store/page-of-rows.ts';
import { judged, RelatedRows } from '../../../store/related-rows.ts';
import {
  type Change,
  keptRow,
  type LogPosition,
  type Row,
  type Store,
  type TailEntry,
} from '../../../store/store.ts';
import type { Lanes } from '../../../work/lanes.ts';
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

export type RecoveryParts = Services & {
  readonly directory: Pick<EndpointDirectory, 'get' | 'refresh'>;
  readonly lanes: Pick<Lanes, 'owns' | 'onChange'>;
  readonly wakes: Pick<Wakes, 'changesFor' | 'announce'>;
  readonly wants: Wants;
};

/** `lost`: the step was superseded, and nothing was done. */
export type Stepped = 'made' | 'lost' | 'over';

/** @throws StoreUnavailable */
export async function recoverStep(parts: RecoveryParts, id: string): Promise<Stepped> {
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
  parts: RecoveryParts,
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
  if (next === null) throw new Error('a step of a recovery must not remove it');
  return ended(row, JSON.parse(next.doc) as Recovery, 'finished', at);
}

async function endWith(store: Store, changes: readonly Change[]): Promise<Stepped> {
  const commit = await store.commit({ changes, events: [] });
  return commit.outcome === 'committed' ? 'over' : 'lost';
}

/** The directory follows the store, so an unknown endpoint may be new or removed. */
async function findEndpoint(
  { store, directory }: RecoveryParts,
  id: string,
): Promise<KnownEndpoint | 'gone' | 'unknown'> {
  const known = directory.get(id);
  if (known !== undefined) return known;
  if ((await store.read(endpointsCollection.name, id)) === undefined) return 'gone';
  await directory.refresh();
  return directory.get(id) ?? 'unknown';
}

/*
 * The chunk of a step: some events of the log, those of them that the endpoint wants, and the change for each. All
 * changes commit with the progress as one unit, so each step is made once, by any process.
 *
 *   no delivery           the event was missed, for example while the endpoint was disabled: create a delivery
 *   failed                try it now, as if requested by hand; its schedule is unchanged
 *   delivered, or due     no change; likewise for a delivery that the unit of the event owes
 *
 * Recoveries skip test events, which are for one endpoint alone.
 */

/**
 * Bounds of a step: events, each of which may add one change to the unit, and octets of their payloads, which are all
 * in memory.
 */
export const chunkEventsMax = 100;
const chunkBytesMax = 1024 * 1024;
/** Deliveries of one event per read; an event has one for each endpoint that wants it. */
const deliveriesPerReadMax = 100;

/** Returns true if the endpoint's patterns, its tenant and its owner's rights admit the event. */
export type Wants = (
  known: KnownEndpoint,
  event: Pick<TailEntry, 'type' | 'collection' | 'owner' | 'doc'>,
  related?: RelatedRows['find'],
) => boolean;

export type Chunk = {
  readonly counts: RecoveryCounts;
  /** Changes of deliveries; none in a dry run. */
  readonly changes: readonly Change[];
  readonly after: LogPosition;
  readonly isLast: boolean;
};

/** @param at when the changed deliveries are due, in milliseconds since the epoch */
async function nextChunk(
  parts: RecoveryParts,
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
    const rows = new RelatedRows(store);
    const isWanted = judged(rows, () => wants(known, entry, rows.find));
    if (isTestEvent(entry) || !(await isWanted)) continue;
    counts.matching += 1;
    owed ??= await owedTo(store, known.endpoint.id);
    if (owed.has(entry.id)) continue;
    const { kind, change } = await remedy(parts, entry, known, at);
    if (kind !== 'none') counts[kind] += 1;
    if (change !== undefined && !recovery.dryRun) changes.push(change);
  }
  return { counts, changes, after, isLast };
}

/** Events record the second of their creation. */
function wholeSecond(time: string): number {
  return Math.floor(Date.parse(time) / 1000) * 1000;
}

type Remedy =
  | { readonly kind: 'none'; readonly change?: undefined }
  | { readonly kind: 'resent' | 'created'; readonly change: Change };

async function remedy(
  { store, newId }: RecoveryParts,
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

/** Uses the index by event: an event mostly has a handful of deliveries. */
async function findDelivery(
  store: Pick<Store, 'plan'>,
  eventId: string,
  endpointId: string,
): Promise<Row | undefined> {
  if (eventIdField === undefined) throw new Error('the collection deliveries lacks the field eventId');
  const filter = { op: 'eq', field: eventIdField, value: eventId } as const;
  const plan = store.plan({ table, filter, sort: byId, limit: deliveriesPerReadMax });
  const marked = `"endpointId":"${endpointId}"`;
  for await (const rows of rowBatches(plan, deliveriesPerReadMax)) {
    const found = rows.find(({ doc }) => doc.includes(marked));
    if (found !== undefined) return found;
  }
  return undefined;
}

/*
 * Finds a time in the event log. The log is ordered by revision, and only the events contain times; these grow with the
 * revision except for differing clocks and units that wait for their commit, and so within the slack. The binary search
 * reads one event for each bit of the revision.
 */

/** The greatest disorder of times in the log. */
export const slackMs = 5 * 60_000;

/**
 * @param since milliseconds since the epoch
 * @returns a place before every event of that time or later, within the slack
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
 * Returns the creation time of an event in milliseconds since the epoch, to the second (§6.2). No text before the
 * member can contain its name, because quotation marks in a text are escaped.
 */
export function createdOf(doc: string): number {
  const start = doc.indexOf(createdMember) + createdMember.length;
  return Number.parseInt(doc.slice(start, start + 16), 10) * 1000;
}
