/**
 * POST to `/subscribers/{name}/replay`: events of the log, from a time on, become messages of the subscriber again, also
 * those that it has handled and those from before it was declared. It is deliberate, so each replay has messages of its
 * own. `more` reports that the bound of a request was reached; the next request continues after `lastEvent`.
 */
import { type Static, Type } from 'typebox';
import type { DeclaredSubscriber } from '../config/subscribers.ts';
import type { Problem } from '../http/problem.ts';
import { actionResource } from '../kernel/action.ts';
import type { Resource } from '../kernel/resource.ts';
import { permission } from '../model/access.ts';
import { matchesEventPattern } from '../model/event-pattern.ts';
import { always } from '../model/filter.ts';
import type { LoopTurns } from '../observe/event-loop.ts';
import type { Services } from '../store/capabilities.ts';
import { type Change, eventsTable, type LogPosition, type Store, type TailEntry } from '../store/store.ts';
import { ownMessageChanges } from '../webhooks/receiving/own-message.ts';
import {
  contentId,
  type ReceivedContent,
  receivedContentsTable,
} from '../webhooks/receiving/received-tables.ts';
import { createdOf, findPlace } from '../webhooks/sending/recovery/recovery-step.ts';
import { type DeclaredSubscribers, subscriberParameter, subscribersTag } from './subscriber-routes.ts';
import { contentText, lineOf } from './with-messages.ts';

type Replaying = Services & {
  readonly wake: (source: string) => void;
  readonly turns: Pick<LoopTurns, 'nextOfBegun'>;
};

/** Events of one read and one unit: some milliseconds. */
const chunkEventsMax = 100;
const chunkBytesMax = 4 * 1024 * 1024;
const limitMax = 1_000_000;

const schema = Type.Object({
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

const count = { type: 'integer', minimum: 0 };
const output = {
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
      noun: 'the replay of events to a subscriber',
      id: 'replayEvents',
      summary: 'Replay events to a subscriber',
      description: `In the order of the log, at most ${settings.receivedReplayMax} messages per request. The subscriber gets events again that it has handled.`,
      input: { name: 'EventReplay', schema, example: { since: '2026-08-01T00:00:00Z' } },
      output,
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

type Wanted = Static<typeof schema>;

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
    ...{ id: `rec_${newId()}`, source, dedupeKey: `${id}~${replayId}`, type, at: clock() },
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
