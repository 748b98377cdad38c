/** Subscribers: functions of an application that get events after the commit, at least once, and whose writes commit once. */
import type { Resources } from '../model/logic/collection-calls.ts';
import type { Logic } from '../model/logic/logic.ts';

import type { Source } from './sources.ts';

/** An event as it is served, parsed. @template T the document that it is about, or the object of a posted event */
export type SubscribedEvent<T = Readonly<Record<string, unknown>>> = {
  readonly id: string;
  readonly object: 'event';
  /** `tickets.created`, or the type of a posted event. */
  readonly type: string;
  /** Unix time in seconds. */
  readonly created: number;
  /** Of a posted event that names one. */
  readonly tenant?: string;
  readonly data: { readonly object: T };
};

/** What a subscriber gets. It acts as an administrator. @template T as of the event @template R the calls on all collections */
export type EventHandling<T = Readonly<Record<string, unknown>>, R = Resources> = Logic<R> & {
  readonly event: SubscribedEvent<T>;
  /** The document before the change. Undefined for a creation, a posted event, and a replay of an event whose message is gone. */
  readonly before: T | undefined;
  /** The document after the change: the object of the event. Undefined for a deletion. */
  readonly after: T | undefined;
  /** Number of this attempt, from 1. */
  readonly attempt: number;
  /** Aborted when the time for this attempt is over; pass it on to long operations. */
  readonly signal: AbortSignal;
};

/** @template R the calls on the collections; never: not known */
export type SubscriberDeclaration<R = never> = {
  readonly description?: string;
  /** Patterns of event types, as of webhook endpoints: `comments.created`, `tickets.*`, `*`. */
  readonly events: readonly string[];
  /**
   * Events with the same key (a text or a number) are handled one after the other in their order: one that fails holds back those behind it.
   * It must be pure: it runs on the main thread, within the write. Undefined or null: no order.
   */
  orderBy?(event: SubscribedEvent): unknown;
  /** Seconds from each failed attempt to the next; after the last one the message is `failed`. */
  readonly schedule?: readonly number[];
  /** Events handled at once by one process. */
  readonly inFlightMax?: number;
  /** A method, so that the type of the event's document may be narrower: `handler({ event }: EventHandling<Comment, Desk>)`. */
  handler(handling: EventHandling<Readonly<Record<string, unknown>>, R>): void | Promise<void>;
};

export type OrderBy = NonNullable<SubscriberDeclaration['orderBy']>;

export type DeclaredSubscriber = {
  readonly name: string;
  readonly description: string;
  readonly events: readonly string[];
  readonly orderBy: OrderBy | undefined;
  readonly source: Source;
};
