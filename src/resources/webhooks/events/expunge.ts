/**
 * POST to `/events/expunge` (§6), for administrators: every event about one resource, or of one
 * owner, leaves the log, and with it the beginnings of answers that receivers gave to its deliveries. What was not delivered yet never is.
 * The deliveries themselves stay: they name the event and hold nothing of it.
 *
 * Bounded, and resumed by asking again: an event leaves last, so one that was begun is found again. An attempt that is under way meanwhile
 * still sends what it holds, and may log its answer. The record of an Idempotency-Key may repeat a posted event until its time is over.
 */
import { Type } from 'typebox';
import { permission } from '../../../model/access.ts';
import { type Field, ownerField } from '../../../model/field.ts';
import { allOf, type Filter } from '../../../model/filter.ts';
import { isTailFull } from '../../../store/page-of-rows.ts';
import { eventsTable, type Store, type TailEntry } from '../../../store/store.ts';
import { type ActionOptions, actionResource, type Done } from '../../action/action.ts';
import { eventFields } from '../../events/visibility.ts';
import type { Resource } from '../../resource.ts';
import { type Expunged, expungeDeliveries } from './expunge-deliveries.ts';

export type ExpungeOptions = {
  readonly store: Store;
  /** `/api/v1/events` */
  readonly path: string;
  readonly clock: () => number;
  readonly limits: ActionOptions['limits'];
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

const name = Type.Optional(Type.String({ minLength: 1, maxLength: idCharactersMax }));
const schema = Type.Object({ object: name, owner: name });

export function expungeResource(options: ExpungeOptions): Resource {
  return actionResource({
    path: `${options.path}/expunge`,
    schema,
    limits: options.limits,
    permission: (principal) => permission('administrator', 'read', principal),
    act: (_ask, { object, owner }) => {
      const subject = subjectOf(object, owner);
      return subject === undefined ? Promise.resolve(oneOfTwo) : expunge(options, subject);
    },
  });
}

const oneOfTwo: Done = {
  refused: {
    code: 'validation_failed',
    errors: [{ pointer: '', message: 'must name either `object`, the id of a resource, or `owner`' }],
  },
};

function subjectOf(object: unknown, owner: unknown): Filter | undefined {
  if ((object === undefined) === (owner === undefined)) return undefined;
  if (typeof owner === 'string') return { op: 'eq', field: ownerField, value: owner };
  const field = eventFields.get('data.object.id');
  if (field === undefined || typeof object !== 'string') return undefined;
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
