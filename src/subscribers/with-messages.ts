/**
 * The store with another `commit`: a unit with events also holds a message for each subscriber that one of them
 * matches. It is the store below all others, so no event can miss its subscribers, whatever writes it. Subscribers are
 * part of the configuration; which of them get an event is known without reading anything.
 */
import { hash } from 'node:crypto';
import type { DeclaredSubscriber, SubscribedEvent } from '../config/subscribers.ts';
import { patternsOfType } from '../model/event-pattern.ts';
import type { LoopTurns } from '../observe/loop-turns.ts';
import { callAs } from '../observe/running-function.ts';
import type { Services } from '../store/capabilities.ts';
import type { Change, Commit, EventEntry, Store, Unit } from '../store/store.ts';
import { ownMessageChanges } from '../webhooks/receiving/own-message.ts';

/** Wakes the source of messages that this process committed; set once the inbox exists, which needs the store. */
export type InboxWakes = { wake: (source: string) => void };

/** Returns the store itself if nothing subscribes. */
export function withMessages<S extends Store>(
  services: Services & { readonly store: S },
  subscribers: ReadonlyMap<string, DeclaredSubscriber>,
  inbox: InboxWakes,
  turns: LoopTurns,
): S {
  const { store } = services;
  if (subscribers.size === 0) return store;
  const making = { ...services, inbox, turns, subscribersOf: matcherOf(subscribers) };
  return {
    ...store,
    commit: (unit: Unit) =>
      unit.events.length === 0 ? store.commit(unit) : commitWithMessages(making, unit),
  };
}

type SubscribersOf = (type: string) => ReadonlySet<DeclaredSubscriber>;

type Making = Services & {
  readonly inbox: InboxWakes;
  readonly turns: LoopTurns;
  readonly subscribersOf: SubscribersOf;
};

const none: ReadonlySet<DeclaredSubscriber> = new Set();

function matcherOf(subscribers: ReadonlyMap<string, DeclaredSubscriber>): SubscribersOf {
  const byPattern = new Map<string, DeclaredSubscriber[]>();
  for (const subscriber of subscribers.values()) {
    for (const pattern of subscriber.events) {
      const known = byPattern.get(pattern);
      if (known === undefined) byPattern.set(pattern, [subscriber]);
      else known.push(subscriber);
    }
  }
  return (type) => {
    let found: Set<DeclaredSubscriber> | undefined;
    for (const pattern of patternsOfType(type)) {
      for (const subscriber of byPattern.get(pattern) ?? []) found = (found ?? new Set()).add(subscriber);
    }
    return found ?? none;
  };
}

async function commitWithMessages(making: Making, unit: Unit): Promise<Commit> {
  const { store, inbox, turns, subscribersOf } = making;
  const own = unit.changes.length;
  /** Events whose messages exist: they were posted before, and may be gone from the log. */
  const repeated = new Set<EventEntry>();
  for (;;) {
    const added: { readonly change: Change; readonly event: EventEntry }[] = [];
    const sources = new Set<string>();
    for (const event of unit.events) {
      if (repeated.has(event)) continue;
      const turn = turns.next();
      if (turn !== undefined) await turn;
      for (const subscriber of subscribersOf(event.type)) {
        sources.add(subscriber.source.name);
        for (const change of messageOf(making, subscriber, event)) added.push({ change, event });
      }
    }
    if (added.length === 0) return store.commit(unit);
    const changes = [...unit.changes, ...added.map(({ change }) => change)];
    const commit = await store.commit({ ...unit, changes });
    if (commit.outcome === 'committed') {
      for (const source of sources) inbox.wake(source);
      return commit;
    }
    if (commit.change < own) return commit;
    const failed = added[commit.change - own];
    if (failed === undefined) return { ...commit, change: commit.change - added.length };
    repeated.add(failed.event);
  }
}

function messageOf(
  services: Services,
  subscriber: DeclaredSubscriber,
  { id, type, doc, before, depth }: EventEntry,
): readonly Change[] {
  const { clock, newId } = services;
  return ownMessageChanges({
    ...{ id: `rec_${newId()}`, source: subscriber.source.name, dedupeKey: id, type, depth, at: clock() },
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
