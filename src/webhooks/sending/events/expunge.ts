/**
 * POST to `/events/expunge` (§6), for administrators: removes every event about one resource, or of one owner, from the
 * log, and the stored responses of receivers to its deliveries. Pending deliveries of these events are never sent. The
 * deliveries themselves stay: they name the event and hold nothing of it.
 *
 * The work is bounded, and a repeated request resumes it: an event is removed last, so one that was begun is found
 * again. An attempt under way still sends what it holds, and may log its response. The record of an Idempotency-Key may
 * repeat a posted event until the record expires.
 */
import { Type } from 'typebox';
import type { AuditExpunction } from '../../../accounts/audit.ts';
import { actionResource, type Done } from '../../../kernel/action.ts';
import type { Resource } from '../../../kernel/resource.ts';
import { permission } from '../../../model/access.ts';
import { type Delivery, deliveryDocument } from '../../../model/delivery.ts';
import { type Field, ownerField } from '../../../model/field.ts';
import { allOf, always, byId, type Filter } from '../../../model/filter.ts';
import { timeAfter } from '../../../resources/collection/row.ts';
import { eventsTag } from '../../../resources/events/event-log-routes.ts';
import { eventFields } from '../../../resources/events/visible-events.ts';
import type { Services } from '../../../store/capabilities.ts';
import { rowBatches } from '../../../store/in-batches.ts';
import { tryCommit } from '../../../store/lines.ts';
import { isTailFull } from '../../../store/page-of-rows.ts';
import {
  type Change,
  eventsTable,
  keptRow,
  type ListQuery,
  Overtaken,
  type Row,
  type Store,
  type TailEntry,
} from '../../../store/store.ts';
import { attemptsAfter } from '../../../work/settlement.ts';
import { expungedError } from '../conclude-delivery.ts';
import { attemptsTable, deliveriesCollection } from '../sending-tables.ts';
import type { Attempt } from '../settle-delivery.ts';

export type Expunction = {
  /** Returns the audit entry of the removal, which is committed before anything is removed. */
  readonly audited?: AuditExpunction | undefined;
  /** Removes the files of a deleted document, and returns their number. Absent: no collection has files. */
  readonly expungeFiles?: ((object: string) => Promise<number>) | undefined;
  /** Drops the event from the memory of this process's sender. */
  readonly forget: (eventId: string) => void;
  /** Events that one request removes at most. Default 10,000. */
  readonly eventsMax?: number;
};

const eventsMaxDefault = 10_000;
const idCharactersMax = 255;
/** Events read and removed concurrently: the store commits waiting units together. */
const batchEvents = 64;
const batchBytesMax = 1024 * 1024;
/** Revisions that one statement scans: scans are bounded in time. */
const windowRevisions = 100_000;

const id = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: idCharactersMax, description }));
const schema = Type.Object(
  {
    object: id('Id of a resource: `data.object.id` of its events.'),
    owner: id('Id of an account or another principal.'),
  },
  { description: 'Exactly one of the members.' },
);

const count = { type: 'integer', minimum: 0 };
const expunged = {
  schema: {
    type: 'object',
    properties: {
      events: { ...count, description: 'Number of removed events.' },
      deliveries: { ...count, description: 'Number of changed deliveries.' },
      attempts: { ...count, description: 'Number of attempts whose responses were removed.' },
      files: { ...count, description: 'Number of removed files; only where collections have files.' },
      more: { type: 'boolean', description: '`true`: other events are left; repeat the request.' },
    },
    required: ['events', 'deliveries', 'attempts', 'more'],
  },
  example: { events: 3, deliveries: 6, attempts: 6, more: false },
};

/** @param path `/api/v1/events` */
export function expungeResource(services: Services, path: string, expunction: Expunction): Resource {
  return actionResource(
    {
      path: `${path}/expunge`,
      tag: { ...eventsTag, audience: 'operator' },
      id: 'expungeEvents',
      summary: 'Remove the events of one subject',
      description:
        'Administrators only. Removes every event about the resource, or of the owner, from the log, and the responses of receivers with it; pending deliveries of these events are not sent. The files of a deleted document go too. A request removes a bounded number of events: repeat it while `more` is true.',
      input: { name: 'EventExpunction', schema, example: { object: 'inv_1' } },
      output: expunged,
      codes: [],
      permission: (principal) => permission('administrator', 'read', principal),
      handler: async (ask, { object, owner }) => {
        const subject = subjectOf(object, owner);
        if (subject === undefined) return oneOfTwo;
        const of = object === undefined ? 'owner' : 'object';
        const entry = expunction.audited?.(ask, object ?? owner ?? '', of);
        if (entry !== undefined) await services.store.commit({ changes: [entry], events: [] });
        const files = object === undefined ? undefined : await expunction.expungeFiles?.(object);
        const done = await expunge(services, expunction, subject);
        return files === undefined || !('content' in done) ? done : { content: { ...done.content, files } };
      },
    },
    services.settings,
  );
}

const oneOfTwo: Done = {
  refused: {
    code: 'validation_failed',
    errors: [{ pointer: '', message: 'must have either `object`, the id of a resource, or `owner`' }],
  },
};

function subjectOf(object: string | undefined, owner: string | undefined): Filter | undefined {
  if ((object === undefined) === (owner === undefined)) return undefined;
  if (owner !== undefined) return { op: 'eq', field: ownerField, value: owner };
  const field = eventFields.get('data.object.id');
  if (field === undefined || object === undefined) return undefined;
  return { op: 'eq', field, value: object };
}

async function expunge(
  services: Services,
  { forget, eventsMax = eventsMaxDefault }: Expunction,
  subject: Filter,
): Promise<Done> {
  const counted: Expunged = { deliveries: 0, attempts: 0 };
  let events = 0;
  for await (const batch of batchesOf(services.store, subject)) {
    const wanted = batch.slice(0, eventsMax - events);
    await Promise.all(wanted.map((entry) => expungeEvent(services, forget, entry, counted)));
    events += wanted.length;
    if (events >= eventsMax) return { content: { events, ...counted, more: true } };
  }
  return { content: { events, ...counted, more: false } };
}

async function expungeEvent(
  { store, clock }: Services,
  forget: Expunction['forget'],
  { id, rev }: TailEntry,
  counted: Expunged,
) {
  await expungeDeliveries({ store, clock }, id, counted);
  // Superseded: retention, or a concurrent request for the same, removed it first.
  await store.commit({ changes: [{ table: eventsTable, id, expect: { rev }, next: null }], events: [] });
  forget(id);
  // Deliveries that a recovery created meanwhile, and log entries of attempts that were under way.
  await expungeDeliveries({ store, clock }, id, counted);
}

const revField: Field = { name: 'rev', path: ['rev'], type: 'integer', column: 'rev' };

/** The subject's events up to the newest at the start, in the order of the log. */
async function* batchesOf(store: Store, subject: Filter): AsyncGenerator<readonly TailEntry[]> {
  const head = await store.head();
  let from = 0;
  for (;;) {
    // Between two units there may be any number of revisions that none has.
    const [next] = await store.tail({ rev: from, id: '' }, always, 1);
    if (next === undefined || next.rev > head.rev) return;
    from = next.rev;
    const within: Filter = { op: 'lt', field: revField, value: from + windowRevisions };
    const filter = allOf([subject, within]);
    let after = { rev: from, id: '' };
    for (;;) {
      const batch = await store.tail(after, filter, batchEvents, { bytesMax: batchBytesMax });
      if (batch.length > 0) yield batch;
      const last = batch.at(-1);
      if (last === undefined || !isTailFull(batch, batchEvents, batchBytesMax)) break;
      after = { rev: last.rev, id: last.id };
    }
    from += windowRevisions;
  }
}

type Expunged = { deliveries: number; attempts: number };

type Sources = Pick<Services, 'store' | 'clock'>;

/** Deliveries of one event read and changed concurrently, and attempts in one unit. */
const rowsMax = 100;

/**
 * Removes the receivers' responses from the deliveries of one event, and ends pending ones (§6). Each delivery is one
 * unit that expects the row as read, so that this and an attempt under way cannot undo each other.
 */
async function expungeDeliveries(sources: Sources, eventId: string, counted: Expunged): Promise<void> {
  const field = deliveriesCollection.fields.get('eventId');
  if (field === undefined) throw new Error('the collection deliveries lacks the field eventId');
  const table = deliveriesCollection.name;
  const query: ListQuery = {
    table,
    filter: { op: 'eq', field, value: eventId },
    sort: byId,
    limit: rowsMax,
  };
  for await (const rows of rowBatches(sources.store.plan(query), query.limit))
    await Promise.all(rows.map((row) => expungeDelivery(sources, row, counted)));
}

async function expungeDelivery({ store, clock }: Sources, { id }: Row, counted: Expunged): Promise<void> {
  const name = { table: deliveriesCollection.name, id };
  let isDone = false;
  while (!isDone) {
    isDone = await store.lines.change(name, async () => {
      const row = await store.read(name.table, id);
      if (row === undefined) return true;
      const emptied = await emptiedAttempts(store, id);
      const changed = deliveryChange({ store, clock }, row, emptied.length > 0);
      if (changed === undefined) return true;
      const changes = [changed, ...emptied.slice(0, rowsMax)];
      const commit = await tryCommit(store, { changes, events: [] });
      if (commit instanceof Overtaken) return commit;
      const isWhole = emptied.length <= rowsMax;
      counted.deliveries += isWhole ? 1 : 0;
      counted.attempts += changes.length - 1;
      return isWhole;
    });
  }
}

/** @returns undefined if nothing is left to remove */
function deliveryChange({ clock }: Sources, row: Row, emptiesAttempts: boolean): Change | undefined {
  const current = JSON.parse(row.doc) as Delivery;
  const isOver = current.status === 'delivered' || current.lastError === expungedError;
  if (isOver && !emptiesAttempts) return undefined;
  const at = timeAfter(clock, row.updatedAt);
  const ended = { status: 'not_delivered', nextAttemptAt: null, dueAt: null, lastStatusCode: null } as const;
  const next: Delivery = {
    ...current,
    // A delivered state is kept: it reveals nothing about the subject.
    ...(current.status === 'delivered' ? {} : { ...ended, lastError: expungedError }),
    updatedAt: new Date(at).toISOString(),
  };
  return {
    table: deliveriesCollection.name,
    id: row.id,
    expect: { rev: row.rev },
    next: keptRow(deliveryDocument(next), row.owner, row.createdAt, at),
  };
}

async function emptiedAttempts(store: Store, deliveryId: string): Promise<readonly Change[]> {
  const filter = attemptsAfter(deliveryId, 0);
  const query: ListQuery = { table: attemptsTable, filter, sort: byId, limit: rowsMax };
  const changes: Change[] = [];
  for await (const rows of rowBatches(store.plan(query), query.limit)) {
    for (const row of rows) {
      const change = emptied(row);
      if (change !== undefined) changes.push(change);
    }
    if (changes.length > rowsMax) break;
  }
  return changes;
}

/** Removes the receiver's content and header fields, but keeps the status. */
function emptied(row: Row): Change | undefined {
  const attempt = JSON.parse(row.doc) as Attempt;
  if (attempt.responseSnippet === '' && attempt.responseHeaders.length === 0) return undefined;
  const doc = JSON.stringify({ ...attempt, responseSnippet: '', responseHeaders: [] });
  const next = keptRow(doc, row.owner, row.createdAt, row.updatedAt);
  return { table: attemptsTable, id: row.id, expect: { rev: row.rev }, next };
}
