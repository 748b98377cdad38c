/** `/subscribers`: the declared subscribers and how far they are, for administrators. Their messages are at `/received`. */
import { type Static, Type } from 'typebox';
import type { Configuration } from '../config/configuration.ts';
import type { DeclaredSubscriber } from '../config/inspect-functions.ts';
import type { Problem } from '../http/problem.ts';
import { actionResource } from '../kernel/action.ts';
import { type Item, json, named, pageSchema, pathParameter, type Tag } from '../kernel/documentation.ts';
import type { Resource } from '../kernel/resource.ts';
import { type Permission, permission } from '../model/access.ts';
import { matchesEventPattern } from '../model/event.ts';
import { always, type Filter } from '../model/filter.ts';
import { idFor } from '../model/id.ts';
import type { Principal } from '../model/principal.ts';
import type { Received } from '../model/received.ts';
import type { LoopTurns } from '../observe/event-loop.ts';
import type { Services } from '../store/capabilities.ts';
import { createdOf, findPlace } from '../store/follow-log.ts';
import { type Change, eventsTable, type LogPosition, type Store, type TailEntry } from '../store/store.ts';
import { ownMessageChanges } from '../webhooks/receiving/message-rows.ts';
import {
  contentId,
  type ReceivedContent,
  receivedCollection,
  receivedContentsTable,
} from '../webhooks/receiving/received-tables.ts';
import {
  type DeclaredItem,
  declaredList,
  missing,
  shown,
  shownResource,
} from '../webhooks/routes/declared-resources.ts';
import { DueRows, dueIndexOf } from '../work/due-queue.ts';
import { contentText, lineOf } from './with-messages.ts';

type DeclaredSubscribers = Pick<Configuration, 'base' | 'subscribers'>;

export type ShownSubscriber = {
  readonly name: string;
  readonly description: string;
  readonly events: readonly string[];
  readonly ordered: boolean;
  readonly schedule: readonly number[];
  readonly inFlightMax: number | null;
  readonly pending: number;
  readonly failed: number;
  readonly lagSeconds: number;
};

const subscribersTag: Tag = {
  name: 'subscribers',
  description: 'The declared subscribers and how far they are.',
  audience: 'operator',
};
const subscriberParameter = pathParameter('name', 'Name of the subscriber, as in the configuration.');

const count: Item = { type: 'integer', minimum: 0 };

const subscriberSchema = named('Subscriber', {
  description: 'A declared subscriber.',
  type: 'object',
  properties: {
    name: { type: 'string' },
    description: { type: 'string' },
    events: { type: 'array', items: { type: 'string' }, description: 'Patterns of event types.' },
    ordered: { type: 'boolean', description: '`true`: events with the same key are handled in their order.' },
    schedule: {
      type: 'array',
      items: { type: 'number' },
      description: 'Seconds from each failed attempt to the next.',
    },
    inFlightMax: {
      type: ['integer', 'null'],
      description: 'Null: `COMITY_SENDER_IN_FLIGHT_DEFAULT` applies.',
    },
    pending: { ...count, description: 'Messages that are not processed yet.' },
    failed: { ...count, description: 'Messages without a further attempt.' },
    lagSeconds: {
      type: 'number',
      minimum: 0,
      description: 'For how long the first of the pending messages has been due.',
    },
  },
  required: [
    ...['name', 'description', 'events', 'ordered', 'schedule', 'inFlightMax'],
    ...['pending', 'failed', 'lagSeconds'],
  ],
});

const subscriberExample: ShownSubscriber = {
  name: 'reopen',
  description: 'Reopens a ticket with a new comment.',
  events: ['comments.created'],
  ordered: true,
  schedule: [5, 30, 120, 300, 1800, 7200, 18_000, 72_000],
  inFlightMax: null,
  pending: 3,
  failed: 0,
  lagSeconds: 0.2,
};

export function subscriberResources(
  services: Services,
  { base, subscribers }: DeclaredSubscribers,
): readonly Resource[] {
  const path = `${base}/subscribers`;
  const textOf = subscriberTexts(services);
  const items = (): Promise<readonly DeclaredItem[]> =>
    Promise.all(
      [...subscribers.values()].map(async (each) => ({ name: each.name, text: await textOf(each) })),
    );
  return [
    declaredList(path, mayRead, items, services.settings, {
      ...{ name: 'Subscribers', tag: subscribersTag },
      list: {
        id: 'listSubscribers',
        summary: 'List the declared subscribers',
        gives: {
          representation: json(
            pageSchema('Subscribers', 'A page of declared subscribers.', subscriberSchema),
            {
              items: [subscriberExample],
              nextCursor: null,
            },
          ),
        },
      },
    }),
    shownResource(
      `${path}/{name}`,
      mayRead,
      async ({ captures: [name = ''] }) => {
        const subscriber = subscribers.get(name);
        return subscriber === undefined ? missing : shown(await textOf(subscriber));
      },
      {
        ...{ name: 'Subscriber', tag: subscribersTag },
        parameters: [subscriberParameter],
        read: {
          id: 'readSubscriber',
          summary: 'Read a subscriber',
          gives: { representation: json(subscriberSchema, subscriberExample) },
        },
      },
    ),
  ];
}

function mayRead(principal: Principal): Permission {
  return permission('administrator', 'read', principal);
}

function subscriberTexts({ store, clock }: Services): (subscriber: DeclaredSubscriber) => Promise<string> {
  const [sender, status] = [fieldOf('sender'), fieldOf('status')];
  const index = dueIndexOf(receivedCollection, 'sender', 1);
  const messagesOf = (source: string, value: string): Filter => ({
    op: 'and',
    filters: [
      { op: 'eq', field: sender, value: source },
      { op: 'eq', field: status, value },
    ],
  });
  return async ({ name, description, events, orderBy, source }) => {
    const { schedule, inFlightMax } = source;
    const [pending, failed, [first]] = await Promise.all([
      store.count(receivedCollection.name, messagesOf(source.name, 'pending')),
      store.count(receivedCollection.name, messagesOf(source.name, 'failed')),
      new DueRows(store, index, source.name).first(1),
    ]);
    const dueAt =
      first === undefined ? undefined : Date.parse((JSON.parse(first.doc) as Received).dueAt ?? '');
    const item: ShownSubscriber = {
      ...{ name, description, events, ordered: orderBy !== undefined, schedule },
      ...{ inFlightMax: inFlightMax ?? null, pending, failed },
      lagSeconds: dueAt === undefined ? 0 : Math.max(0, clock() - dueAt) / 1000,
    };
    return JSON.stringify(item);
  };
}

function fieldOf(name: string) {
  const field = receivedCollection.fields.get(name);
  if (field === undefined) throw new Error(`the inbox has no field ${name}`);
  return field;
}

/*
 * POST to `/subscribers/{name}/replay`: events of the log, from a time on, become messages of the subscriber again, also
 * those that it has handled and those from before it was declared. It is deliberate, so each replay has messages of its
 * own. `more` reports that the bound of a request was reached; the next request continues after `lastEvent`.
 */

type Replaying = Services & {
  readonly wake: (source: string) => void;
  readonly turns: Pick<LoopTurns, 'nextOfBegun'>;
};

/** Events of one read and one unit: some milliseconds. */
const chunkEventsMax = 100;
const chunkBytesMax = 4 * 1024 * 1024;
const limitMax = 1_000_000;

const replayInput = Type.Object({
  since: Type.String({ format: 'date-time', description: 'Events from this time on, to the second.' }),
  until: Type.Optional(Type.String({ format: 'date-time', description: 'Default: now.' })),
  after: Type.Optional(
    Type.String({
      maxLength: 200,
      description: 'Only events after this one: `lastEvent` of the request before.',
    }),
  ),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: limitMax, description: 'Maximum number of messages.' }),
  ),
});

const replayOutput = {
  schema: {
    type: 'object',
    properties: {
      subscriber: { type: 'string' },
      replayed: { ...count, description: 'Number of messages put into the queue.' },
      more: {
        type: 'boolean',
        description: '`true`: other events are left; send another request with `after`.',
      },
      lastEvent: { type: ['string', 'null'], description: 'Id of the last event examined.' },
    },
    required: ['subscriber', 'replayed', 'more', 'lastEvent'],
  },
  example: { subscriber: 'reopen', replayed: 42, more: false, lastEvent: 'evt_01k1jx7v2mh5s8b4c9d0e6f3ga' },
};

/** @param wake wakes the source of a message that was stored */
export function replayEventsResource(
  services: Services,
  { base, subscribers }: DeclaredSubscribers,
  wake: (source: string) => void,
  turns: Pick<LoopTurns, 'nextOfBegun'>,
): Resource {
  const { store, settings } = services;
  return actionResource(
    {
      path: `${base}/subscribers/{name}/replay`,
      parameters: [subscriberParameter],
      tag: subscribersTag,
      id: 'replayEvents',
      summary: 'Replay events to a subscriber',
      description: `In the order of the log, at most ${settings.receivedReplayMax} messages per request. The subscriber gets events again that it has handled.`,
      input: { name: 'EventReplay', schema: replayInput, example: { since: '2026-08-01T00:00:00Z' } },
      output: replayOutput,
      answers: 'queued',
      codes: ['validation_failed'],
      permission: (principal) => permission('administrator', 'update', principal),
      standing: ({ captures: [name = ''] }) => {
        const exists = subscribers.has(name);
        return { exists, visible: exists, permitted: exists };
      },
      mayBeMissing: true,
      check: faultOf,
      handler: async ({ captures: [name = ''] }, wanted) => {
        const subscriber = subscribers.get(name);
        if (subscriber === undefined) return { refused: { code: 'not_found' } };
        const from = await startOf(store, wanted);
        if (from === undefined)
          return { refused: invalid('/after', 'names an event that the log does not hold') };
        const replayed = await replay({ ...services, wake, turns }, subscriber, wanted, from);
        return { content: { subscriber: name, ...replayed }, queued: `${base}/subscribers/${name}` };
      },
    },
    settings,
  );
}

type Wanted = Static<typeof replayInput>;

function faultOf({ since, until }: Wanted): Problem | undefined {
  for (const [name, text] of Object.entries({ since, until })) {
    if (text !== undefined && Number.isNaN(Date.parse(text))) {
      return invalid(`/${name}`, 'must be an ISO 8601 time, such as 2026-11-22T10:00:00Z');
    }
  }
  return undefined;
}

function invalid(pointer: string, message: string): Problem {
  return { code: 'validation_failed', errors: [{ pointer, message }] };
}

async function startOf(store: Store, { since, after }: Wanted): Promise<LogPosition | undefined> {
  if (after === undefined) return findPlace(store, Date.parse(since));
  const row = await store.read(eventsTable, after);
  return row === undefined ? undefined : { rev: row.rev, id: row.id };
}

export type Replayed = {
  readonly replayed: number;
  readonly more: boolean;
  readonly lastEvent: string | null;
};

async function replay(
  services: Replaying,
  subscriber: DeclaredSubscriber,
  { since, until, limit = limitMax }: Wanted,
  from: LogPosition,
): Promise<Replayed> {
  const { store, clock, newId, wake, turns, settings } = services;
  const most = Math.min(limit, settings.receivedReplayMax);
  const [first, last] = [wholeSecond(Date.parse(since)), until === undefined ? clock() : Date.parse(until)];
  const head = await store.head();
  const replayId = newId();
  let [position, replayed] = [from, 0];
  let lastEvent: string | null = null;
  for (;;) {
    // Replays that run at the same time share the turns of the event loop: the embedded store reads a chunk at once.
    await turns.nextOfBegun();
    const entries = await store.tail(position, always, chunkEventsMax, { bytesMax: chunkBytesMax });
    const changes: Change[] = [];
    let more = false;
    let isLast = entries.length === 0;
    for (const entry of entries) {
      // Events that come meanwhile reach the subscriber by themselves.
      isLast = entry.rev > head.rev;
      if (isLast) break;
      const at = createdOf(entry.doc);
      if (at >= first && at <= last && isWanted(subscriber, entry)) {
        if (replayed === most) {
          more = true;
          break;
        }
        changes.push(...(await messageOf(services, subscriber, entry, replayId)));
        replayed += 1;
      }
      position = { rev: entry.rev, id: entry.id };
      lastEvent = entry.id;
    }
    if (changes.length > 0) {
      const commit = await store.commit({ changes, events: [] });
      if (commit.outcome !== 'committed') throw new Error(`events could not be replayed: ${commit.outcome}`);
      wake(subscriber.source.name);
    }
    if (more || isLast) return { replayed, more, lastEvent };
  }
}

function wholeSecond(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}

function isWanted({ events }: DeclaredSubscriber, { type }: TailEntry): boolean {
  return events.some((pattern) => matchesEventPattern(pattern, type));
}

async function messageOf(
  services: Replaying,
  subscriber: DeclaredSubscriber,
  { id, type, doc }: TailEntry,
  replayId: string,
): Promise<readonly Change[]> {
  const { clock, newId, store } = services;
  const source = subscriber.source.name;
  const kept = await store.read(receivedContentsTable, contentId(source, id));
  return ownMessageChanges({
    ...{ id: idFor('message', newId), source, dedupeKey: `${id}~${replayId}`, type, at: clock() },
    text: contentText(doc, kept === undefined ? undefined : beforeOf(kept.doc)),
    line: lineOf(services, subscriber, doc),
  });
}

/** The log holds only what follows from a change; the message of the event has both. */
function beforeOf(doc: string): string | undefined {
  const { body } = JSON.parse(doc) as Required<Pick<ReceivedContent, 'body'>>;
  const { before } = JSON.parse(Buffer.from(body, 'base64').toString()) as { readonly before?: unknown };
  return before === undefined ? undefined : JSON.stringify(before);
}
