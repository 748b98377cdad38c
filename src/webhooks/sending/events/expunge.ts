/**
 * POST to `/events/expunge` (§6), for administrators: every event about one resource, or of one
 * owner, leaves the log, and with it the beginnings of answers that receivers gave to its deliveries. What was not delivered yet never is.
 * The deliveries themselves stay: they name the event and hold nothing of it.
 *
 * Bounded, and resumed by asking again: an event leaves last, so one that was begun is found again. An attempt that is under way meanwhile
 * still sends what it holds, and may log its answer. The record of an Idempotency-Key may repeat a posted event until its time is over.
 */
import { Type } from 'typebox';
import { type ActionLimits, actionResource, type Done } from '../../../kernel/action.ts';
import type { Resource } from '../../../kernel/resource.ts';
import { permission } from '../../../model/access.ts';
import { type Delivery, deliveryDocument } from '../../../model/delivery.ts';
import { type Field, ownerField } from '../../../model/field.ts';
import { allOf, byId, type Filter } from '../../../model/filter.ts';
import { timeAfter } from '../../../resources/collection/row.ts';
import { eventsTag } from '../../../resources/events/event-schema.ts';
import { eventFields } from '../../../resources/events/visibility.ts';
import type { Services } from '../../../store/capabilities.ts';
import { keptRow } from '../../../store/kept-row.ts';
import { tryCommit } from '../../../store/lines.ts';
import { isTailFull } from '../../../store/page-of-rows.ts';
import {
  type Change,
  eventsTable,
  type Keyset,
  type ListQuery,
  Overtaken,
  type Row,
  type Store,
  type TailEntry,
} from '../../../store/store.ts';
import { attemptId } from '../../work/attempt-log.ts';
import { expungedError } from '../conclude-delivery.ts';
import type { Attempt } from '../delivery-attempt-log.ts';
import { attemptsTable, deliveriesCollection } from '../sending-tables.ts';

export type ExpungeOptions = Pick<Services, 'store' | 'clock'> & {
  /** `/api/v1/events` */
  readonly path: string;
  readonly limits: ActionLimits;
  /** Tells this process's sender that an event it may have in memory is gone. */
  readonly forget?: ((eventId: string) => void) | undefined;
  /** Events that one request removes at most. Default 10,000. */
  readonly eventsMax?: number;
};

const eventsMaxDefault = 10_000;
const idCharactersMax = 255;
/** Events read and removed at once: units that are waiting together are committed together. */
const batchEvents = 64;
const batchBytesMax = 1024 * 1024;
/** Revisions of the log that one statement looks through: it scans, and scans are bounded in time. */
const windowRevisions = 100_000;

const id = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: idCharactersMax, description }));
const schema = Type.Object(
  {
    object: id('Id of a resource: `data.object.id` of its events.'),
    owner: id('Id of an account or another principal.'),
  },
  { description: 'One of the two.' },
);

const count = { type: 'integer', minimum: 0 };
const expunged = {
  schema: {
    type: 'object',
    properties: {
      events: { ...count, description: 'Events removed.' },
      deliveries: { ...count, description: 'Deliveries that were changed.' },
      attempts: { ...count, description: 'Attempts whose answers were removed.' },
      more: { type: 'boolean', description: 'Whether to ask again.' },
    },
    required: ['events', 'deliveries', 'attempts', 'more'],
  },
  example: { events: 3, deliveries: 6, attempts: 6, more: false },
};

export function expungeResource(options: ExpungeOptions): Resource {
  return actionResource(
    {
      path: `${options.path}/expunge`,
      tag: eventsTag,
      noun: 'the removal of events',
      id: 'expungeEvents',
      summary: 'Remove the events of one subject',
      description:
        'Administrators only. Every event about the resource, or of the owner, leaves the log, and with it what receivers answered; what is not delivered yet never is. A bounded number at a time: `more` says to ask again.',
      input: { name: 'EventExpunction', schema, example: { object: 'inv_1' } },
      output: expunged,
      codes: [],
      permission: (principal) => permission('administrator', 'read', principal),
      handler: (_ask, { object, owner }) => {
        const subject = subjectOf(object, owner);
        return subject === undefined ? oneOfTwo : expunge(options, subject);
      },
    },
    options.limits,
  );
}

const oneOfTwo: Done = {
  refused: {
    code: 'validation_failed',
    errors: [{ pointer: '', message: 'must name either `object`, the id of a resource, or `owner`' }],
  },
};

function subjectOf(object: string | undefined, owner: string | undefined): Filter | undefined {
  if ((object === undefined) === (owner === undefined)) return undefined;
  if (owner !== undefined) return { op: 'eq', field: ownerField, value: owner };
  const field = eventFields.get('data.object.id');
  if (field === undefined || object === undefined) return undefined;
  return { op: 'eq', field, value: object };
}

async function expunge(options: ExpungeOptions, subject: Filter): Promise<Done> {
  const { store, eventsMax = eventsMaxDefault } = options;
  const counted: Expunged = { deliveries: 0, attempts: 0 };
  let events = 0;
  for await (const batch of batchesOf(store, subject)) {
    const wanted = batch.slice(0, eventsMax - events);
    await Promise.all(wanted.map((entry) => expungeEvent(options, entry, counted)));
    events += wanted.length;
    if (events >= eventsMax) return { content: { events, ...counted, more: true } };
  }
  return { content: { events, ...counted, more: false } };
}

async function expungeEvent(
  { store, clock, forget }: ExpungeOptions,
  { id, rev }: TailEntry,
  counted: Expunged,
) {
  await expungeDeliveries({ store, clock }, id, counted);
  // Superseded: retention, or somebody who asked for the same, was faster.
  await store.commit({ changes: [{ table: eventsTable, id, expect: { rev }, next: null }], events: [] });
  forget?.(id);
  // Deliveries that a recovery made meanwhile, and what attempts logged that were under way.
  await expungeDeliveries({ store, clock }, id, counted);
}

const revField: Field = { name: 'rev', path: ['rev'], type: 'integer', column: 'rev' };

/** The subject's events up to the newest that there is now, in the order of the log. */
async function* batchesOf(store: Store, subject: Filter): AsyncGenerator<readonly TailEntry[]> {
  const head = await store.head();
  for (let from = 0; from <= head.rev; from += windowRevisions) {
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
  }
}

/** What has been taken out so far. */
type Expunged = { deliveries: number; attempts: number };

type Sources = Pick<Services, 'store' | 'clock'>;

/** Deliveries of one event read and changed at once, and attempts in one unit. */
const rowsMax = 100;

/**
 * Takes out of the deliveries of one event what its receivers answered, and ends those that are not delivered (§6). Each delivery is one
 * unit, expected as it was read, so that it and an attempt under way cannot undo each other.
 */
async function expungeDeliveries(sources: Sources, eventId: string, counted: Expunged): Promise<void> {
  const field = deliveriesCollection.fields.get('eventId');
  if (field === undefined) throw new Error('deliveries have no events');
  const table = deliveriesCollection.name;
  const query: ListQuery = {
    table,
    filter: { op: 'eq', field, value: eventId },
    sort: byId,
    limit: rowsMax,
  };
  for await (const rows of pagesOf(sources.store, query))
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

/** @returns undefined where nothing is left to be taken out */
function deliveryChange({ clock }: Sources, row: Row, emptiesAttempts: boolean): Change | undefined {
  const stood = JSON.parse(row.doc) as Delivery;
  const isOver = stood.status === 'delivered' || stood.lastError === expungedError;
  if (isOver && !emptiesAttempts) return undefined;
  const at = timeAfter(clock, row.updatedAt);
  const ended = { status: 'not_delivered', nextAttemptAt: null, dueAt: null, lastStatusCode: null } as const;
  const next: Delivery = {
    ...stood,
    // What was delivered was delivered: that is no secret of the subject's.
    ...(stood.status === 'delivered' ? {} : { ...ended, lastError: expungedError }),
    updatedAt: new Date(at).toISOString(),
  };
  return {
    table: deliveriesCollection.name,
    id: row.id,
    expect: { rev: row.rev },
    next: keptRow(deliveryDocument(next), row.owner, row.createdAt, at),
  };
}

const idOfRow: Field = { name: 'id', path: ['id'], type: 'string', column: 'id' };

async function emptiedAttempts(store: Store, deliveryId: string): Promise<readonly Change[]> {
  const query: ListQuery = {
    table: attemptsTable,
    filter: {
      op: 'and',
      filters: [
        { op: 'gt', field: idOfRow, value: attemptId(deliveryId, 0) },
        // 0 is what follows the slash in the order of ids.
        { op: 'lt', field: idOfRow, value: `${deliveryId}0` },
      ],
    },
    sort: byId,
    limit: rowsMax,
  };
  const changes: Change[] = [];
  for await (const rows of pagesOf(store, query)) {
    for (const row of rows) {
      const change = emptied(row);
      if (change !== undefined) changes.push(change);
    }
    if (changes.length > rowsMax) break;
  }
  return changes;
}

/** What the receiver said is gone, that it answered stays. */
function emptied(row: Row): Change | undefined {
  const attempt = JSON.parse(row.doc) as Attempt;
  if (attempt.responseSnippet === '' && attempt.responseHeaders.length === 0) return undefined;
  const doc = JSON.stringify({ ...attempt, responseSnippet: '', responseHeaders: [] });
  const next = keptRow(doc, row.owner, row.createdAt, row.updatedAt);
  return { table: attemptsTable, id: row.id, expect: { rev: row.rev }, next };
}

async function* pagesOf(store: Store, query: ListQuery): AsyncGenerator<readonly Row[]> {
  const plan = store.plan(query);
  let position: Keyset = { from: 'start' };
  for (;;) {
    const rows = await plan.rows(position);
    if (rows.length > 0) yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < query.limit) return;
    position = { from: 'after', key: [last.id] };
  }
}
