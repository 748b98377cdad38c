/**
 * The stage of a commit that adds, to a unit with events, a message for each subscriber that one of them matches. It
 * comes after those that commit again, so no event can miss its subscribers, whatever writes it. Subscribers are part of
 * the configuration; which of them get an event is known without reading anything.
 */
import { hash } from 'node:crypto';
import type { DeclaredSubscriber, SubscribedEvent } from '../config/inspect-functions.ts';
import { PatternIndex } from '../model/event.ts';
import { idFor } from '../model/id.ts';
import type { LoopTurns } from '../observe/event-loop.ts';
import { callAs } from '../observe/running-function.ts';
import type { Services } from '../store/capabilities.ts';
import { type CommitStage, type CommitUnit, commitAdding } from '../store/stages.ts';
import type { Change, Commit, EventEntry, Unit } from '../store/store.ts';
import { ownMessageChanges } from '../webhooks/receiving/message-rows.ts';

/** Wakes the source of messages that this process committed; set once the inbox exists, which needs the store. */
export type InboxWakes = { wake: (source: string) => void };

export function messagesStage(
  services: Services,
  subscribers: ReadonlyMap<string, DeclaredSubscriber>,
  inbox: InboxWakes,
  turns: LoopTurns,
): CommitStage {
  const subscribed = new PatternIndex<DeclaredSubscriber>();
  for (const subscriber of subscribers.values()) subscribed.add(subscriber, subscriber.events);
  const making = { ...services, inbox, turns, subscribed };
  return (unit, commit) =>
    unit.events.length === 0 || subscribers.size === 0
      ? commit(unit)
      : commitWithMessages(making, unit, commit);
}

type Making = Services & {
  readonly inbox: InboxWakes;
  readonly turns: LoopTurns;
  readonly subscribed: PatternIndex<DeclaredSubscriber>;
};

async function commitWithMessages(making: Making, unit: Unit, commit: CommitUnit): Promise<Commit> {
  const { inbox, turns, subscribed } = making;
  /** Events whose messages exist: they were posted before, and may be gone from the log. */
  const repeated = new Set<EventEntry>();
  for (;;) {
    const added: Change[] = [];
    /** The event of each added change. */
    const causes: EventEntry[] = [];
    const sources = new Set<string>();
    for (const event of unit.events) {
      if (repeated.has(event)) continue;
      const turn = turns.next();
      if (turn !== undefined) await turn;
      for (const subscriber of subscribed.find(event.type)) {
        sources.add(subscriber.source.name);
        for (const change of messageOf(making, subscriber, event)) {
          added.push(change);
          causes.push(event);
        }
      }
    }
    if (added.length === 0) return commit(unit);
    const result = await commitAdding(unit, added, commit);
    if (result.outcome === 'added-refused') {
      const cause = causes[result.added];
      if (cause !== undefined) repeated.add(cause);
      continue;
    }
    if (result.outcome === 'committed') for (const source of sources) inbox.wake(source);
    return result;
  }
}

function messageOf(
  services: Services,
  subscriber: DeclaredSubscriber,
  { id, type, doc, before, depth }: EventEntry,
): readonly Change[] {
  const { clock, newId } = services;
  return ownMessageChanges({
    ...{
      id: idFor('message', newId),
      source: subscriber.source.name,
      dedupeKey: id,
      type,
      depth,
      at: clock(),
    },
    ...{ text: contentText(doc, before), line: lineOf(services, subscriber, doc) },
  });
}

/**
 * The line in which the event is handled; undefined: it needs no order. A write does not fail by the fault of a
 * subscriber: the event then has no order.
 * @param doc the event as JSON text
 */
export function lineOf(
  { observe }: Pick<Services, 'observe'>,
  { name, orderBy, source }: DeclaredSubscriber,
  doc: string,
): string | undefined {
  if (orderBy === undefined) return undefined;
  let error: unknown;
  try {
    const by = { named: `orderBy of the subscriber ${name}` };
    const key = callAs(by, orderBy, JSON.parse(doc) as SubscribedEvent);
    if (key === undefined || key === null) return undefined;
    if (typeof key === 'string' || typeof key === 'number') {
      return `${source.name}/${hash('sha256', String(key), 'base64url').slice(0, digestCharacters)}`;
    }
    error = new TypeError(
      `it returned ${typeof key === 'object' ? 'an object' : `a ${typeof key}`}, not a text or a number`,
    );
  } catch (thrown) {
    error = thrown;
  }
  observe({ kind: 'receiving-failed', what: `orderBy of the subscriber ${name}`, error });
  return undefined;
}

/** 128 bits. */
const digestCharacters = 22;

/** @param doc the event as JSON text @param before as JSON text */
export function contentText(doc: string, before: string | undefined): string {
  return before === undefined ? `{"event":${doc}}` : `{"event":${doc},"before":${before}}`;
}
