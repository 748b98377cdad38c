/**
 * Recoveries (§6.6): what an endpoint missed is sent again. The row of a recovery is its only state:
 *
 *   running    it has a place in the log, and advances by steps (steps.ts), each with a chunk of the log
 *   finished   it reached its end
 *   stopped    its endpoint was removed meanwhile
 *
 * A recovery that is deleted while it runs ends there. The process that sends for the endpoint runs it; if two believe
 * that they hold the lane, the revision of the row lets one of them commit each step. Recovered deliveries are due at
 * once; the delivery engine limits how fast they are sent.
 */
import { type Delivery, deliveryDocument } from '../../../model/delivery.ts';
import { always, byId } from '../../../model/filter.ts';
import type { Services } from '../../../store/capabilities.ts';
import { createdOf, findPlace, isAfter, slackMs } from '../../../store/follow-log.ts';
import { rowBatches } from '../../../store/in-batches.ts';
import { isTailFull } from '../../../store/page-of-rows.ts';
import { judged, RelatedRows } from '../../../store/related-rows.ts';
import {
  type Change,
  keptRow,
  type ListQuery,
  type LogPosition,
  type NextRow,
  type Row,
  type Store,
  type TailEntry,
} from '../../../store/store.ts';
import type { Lanes } from '../../../work/lanes.ts';
import { orderKeyOf } from '../delivery-order.ts';
import { owedTo } from '../fan-out/owed-deliveries.ts';
import type { EndpointDirectory, KnownEndpoint } from '../known-endpoint.ts';
import { deliveryChanges, isTestEvent } from '../new-deliveries.ts';
import { deliveriesCollection, endpointsCollection, recoveriesCollection } from '../sending-tables.ts';
import { type Step, Steps } from '../steps.ts';
import type { Wakes } from '../wakes.ts';

type RecoveryCounts = {
  readonly examined: number;
  readonly matching: number;
  readonly resent: number;
  readonly created: number;
};

export type Recovery = RecoveryCounts & {
  /** `rcv_...` */
  readonly id: string;
  readonly endpointId: string;
  /** ISO 8601, as are all times here; both ends are included. */
  readonly since: string;
  readonly until: string;
  readonly dryRun: boolean;
  readonly status: 'running' | 'finished' | 'stopped';
  readonly finishedAt: string | null;
  /** Absent before the first event was examined, and after the end. */
  readonly logAfter?: LogPlace;
  readonly logLast?: LogPlace;
  readonly runningFor?: string;
  readonly createdAt: string;
  readonly updatedAt: string;
};

export type NewRecovery = Pick<Recovery, 'id' | 'endpointId' | 'since' | 'until' | 'dryRun'> & {
  /** The newest event at the time of the request: later ones are delivered anyway. */
  readonly last: LogPosition;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly owner: string | null;
};

/**
 * Returns the change that begins a recovery. If another one runs for the endpoint, the commit's outcome is `taken`,
 * because of `runningFor`.
 */
export function beginRecovery({ last, at, owner, ...parts }: NewRecovery): {
  readonly change: Change;
  readonly recovery: Recovery;
} {
  const time = new Date(at).toISOString();
  const recovery: Recovery = {
    ...parts,
    status: 'running',
    ...{ examined: 0, matching: 0, resent: 0, created: 0 },
    finishedAt: null,
    logLast: formatLogPlace(last),
    runningFor: parts.endpointId,
    createdAt: time,
    updatedAt: time,
  };
  const next = keptRow(JSON.stringify(recovery), owner, at, at);
  return { change: { table: recoveriesTable, id: recovery.id, expect: { absent: true }, next }, recovery };
}

export const recoveriesTable = recoveriesCollection.name;

/** Returns the recovery without internal members. */
export function shownRecovery(recovery: Recovery): Omit<Recovery, 'logAfter' | 'logLast' | 'runningFor'> {
  const { logAfter, logLast, runningFor, ...shown } = recovery;
  return shown;
}

function placeOf({ logAfter }: Recovery): LogPosition | undefined {
  return logAfter === undefined ? undefined : readLogPlace(logAfter);
}

function endOf({ logLast }: Recovery): LogPosition {
  return logLast === undefined ? { rev: 0, id: '' } : readLogPlace(logLast);
}

/** A place in the event log as a text: `{rev} {id}`. */
type LogPlace = string;

function formatLogPlace({ rev, id }: LogPosition): LogPlace {
  return `${rev} ${id}`;
}

function readLogPlace(place: LogPlace): LogPosition {
  const space = place.indexOf(' ');
  return { rev: Number(place.slice(0, space)), id: place.slice(space + 1) };
}

/* Runs recoveries. */

type Recovering = Services & {
  readonly directory: Pick<EndpointDirectory, 'get' | 'refresh'>;
  readonly wants: Wants;
};

/** Recoveries of one read. */
const recoveriesPerReadMax = 100;

/**
 * Carries recoveries out from `start` on. It takes those signals, which say that one began or that lanes came.
 * @param wants decides which events the endpoint gets
 */
export function createRecoveries(
  services: Services & Pick<Recovering, 'directory'>,
  lanes: Pick<Lanes, 'owns' | 'onChange'>,
  wakes: Pick<Wakes, 'changesForAll' | 'announce'>,
  wants: Wants,
): Pick<Steps, 'close'> & { start(): void } {
  const { store } = services;
  const steps = new Steps(services, wakes, {
    what: 'recovering',
    query: running(),
    isInOrder: false,
    isOurs(row) {
      const { status, endpointId } = JSON.parse(row.doc) as Recovery;
      return status === 'running' && lanes.owns(endpointId);
    },
    step: (row) => nextStep({ ...services, wants }, row),
  });
  return {
    start: () =>
      steps.start(
        (look) => store.onChange(recoveriesTable, look),
        (look) => lanes.onChange(look),
      ),
    close: () => steps.close(),
  };
}

function running(): ListQuery {
  const field = recoveriesCollection.fields.get('status');
  if (field === undefined) throw new Error('the collection recoveries lacks the field status');
  const filter = { op: 'eq', field, value: 'running' } as const;
  return { table: recoveriesTable, filter, sort: byId, limit: recoveriesPerReadMax };
}

async function nextStep(parts: Recovering, row: Row): Promise<Step | undefined> {
  const recovery = JSON.parse(row.doc) as Recovery;
  const known = await findEndpoint(parts, recovery.endpointId);
  if (known === 'unknown') return undefined;
  const at = parts.clock();
  const endpointIds = new Set<string>();
  if (known === 'gone') return { next: ended(row, recovery, 'stopped', at), deliveries: [], endpointIds };
  const { counts, changes: deliveries, after, isLast } = await nextChunk(parts, recovery, known, at);
  if (deliveries.length > 0) endpointIds.add(recovery.endpointId);
  const progress: Recovery = {
    ...recovery,
    examined: recovery.examined + counts.examined,
    matching: recovery.matching + counts.matching,
    resent: recovery.resent + counts.resent,
    created: recovery.created + counts.created,
    logAfter: formatLogPlace(after),
  };
  return {
    next: isLast ? ended(row, progress, 'finished', at) : rowAfter(row, progress, at),
    deliveries,
    endpointIds,
  };
}

function ended(row: Row, recovery: Recovery, status: 'finished' | 'stopped', at: number): NextRow {
  const finishedAt = new Date(Math.max(at, row.updatedAt)).toISOString();
  return rowAfter(row, { ...shownRecovery(recovery), status, finishedAt }, at);
}

function rowAfter(row: Row, recovery: Recovery, at: number): NextRow {
  const updatedAt = Math.max(at, row.updatedAt);
  const doc = JSON.stringify({ ...recovery, updatedAt: new Date(updatedAt).toISOString() });
  return keptRow(doc, row.owner, row.createdAt, updatedAt);
}

/** The directory follows the store, so an unknown endpoint may be new or removed. */
async function findEndpoint(
  { store, directory }: Recovering,
  id: string,
): Promise<KnownEndpoint | 'gone' | 'unknown'> {
  const known = directory.get(id);
  if (known !== undefined) return known;
  if ((await store.read(endpointsCollection.name, id)) === undefined) return 'gone';
  await directory.refresh();
  return directory.get(id) ?? 'unknown';
}

/*
 * The chunk of a step: some events of the log, those of them that the endpoint wants, and the change for each.
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

type Chunk = {
  readonly counts: RecoveryCounts;
  /** Changes of deliveries; none in a dry run. */
  readonly changes: readonly Change[];
  readonly after: LogPosition;
  readonly isLast: boolean;
};

/** @param at when the changed deliveries are due, in milliseconds since the epoch */
async function nextChunk(
  { store, newId, wants }: Recovering,
  recovery: Recovery,
  known: KnownEndpoint,
  at: number,
): Promise<Chunk> {
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
    if (isAfter(entry, endOf(recovery)) || created > until + slackMs) {
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
    const remedied = await remedy({ store, newId }, entry, known, at);
    if (remedied.kind !== 'none') counts[remedied.kind] += 1;
    if (!recovery.dryRun) changes.push(...remedied.changes);
  }
  return { counts, changes, after, isLast };
}

/** Events record the second of their creation. */
function wholeSecond(time: string): number {
  return Math.floor(Date.parse(time) / 1000) * 1000;
}

type Remedy =
  | { readonly kind: 'none'; readonly changes: readonly [] }
  | { readonly kind: 'resent' | 'created'; readonly changes: readonly Change[] };

async function remedy(
  { store, newId }: Pick<Services, 'store' | 'newId'>,
  event: TailEntry,
  known: KnownEndpoint,
  at: number,
): Promise<Remedy> {
  const row = await findDelivery(store, event.id, known.endpoint.id);
  if (row === undefined) {
    const made = { id: event.id, type: event.type };
    const key = orderKeyOf(known.endpoint, event.doc);
    const order = key === undefined ? undefined : { key, rev: event.rev };
    return { kind: 'created', changes: deliveryChanges({ event: made, at, order }, known, newId) };
  }
  const delivery = JSON.parse(row.doc) as Delivery;
  if (delivery.status !== 'not_delivered' || isDue(delivery, at)) return { kind: 'none', changes: [] };
  const time = new Date(Math.max(at, row.updatedAt)).toISOString();
  const doc = deliveryDocument({ ...delivery, status: 'pending', dueAt: time, updatedAt: time });
  const next = keptRow(doc, row.owner, row.createdAt, Date.parse(time));
  return { kind: 'resent', changes: [{ table, id: row.id, expect: { rev: row.rev }, next }] };
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
