/** Subscribers: functions of an application that get events after the commit, at least once, and whose writes commit once. */
import type { Actor } from '../model/actor.ts';
import type { DocumentOf, Resources } from '../model/logic/collection-calls.ts';
import type { Logic } from '../model/logic/logic.ts';

import type { Source } from './sources.ts';

type AnyObject = Readonly<Record<string, unknown>>;

/** An event as it is served, parsed. @template T the document that it is about, or the object of a posted event */
export type SubscribedEvent<T = AnyObject, Name extends string = string> = {
  readonly id: string;
  readonly object: 'event';
  /** `tickets.created`, or the type of a posted event. */
  readonly type: Name;
  /** Unix time in seconds. */
  readonly created: number;
  /** Who caused it. Absent in events of earlier versions. */
  readonly actor?: Actor;
  /** The request in which it was caused. Absent if none was. */
  readonly requestId?: string;
  /** The tenant that a posted event names. */
  readonly tenant?: string;
  readonly data: { readonly object: T };
};

/**
 * The event of one pattern: of a change it has the document, and of anything else an object of unknown members.
 * @template E `comments.created`; a union gives a union, which `event.type` distinguishes
 * @template C declarations of collections, by their names
 */
export type EventOf<E extends string, C> = E extends `${infer Name}.${'created' | 'updated' | 'deleted'}`
  ? Name extends keyof C
    ? SubscribedEvent<DocumentOf<C[Name]>, E>
    : SubscribedEvent<AnyObject, E>
  : SubscribedEvent<AnyObject, E extends `${string}*${string}` ? string : E>;

/** What a subscriber gets. It acts as an administrator. @template T as of the event @template R the calls on all collections */
export type EventHandling<T = AnyObject, R = Resources, E = SubscribedEvent<T>> = Logic<R> & {
  readonly event: E;
  /** The document before the change. Undefined for a creation, a posted event, and a replay of an event whose message is gone. */
  readonly before: T | undefined;
  /** The document after the change: the object of the event. Undefined for a deletion. */
  readonly after: T | undefined;
  /** Number of this attempt, from 1. */
  readonly attempt: number;
  /** Aborted when the time for this attempt is over; pass it on to long operations. */
  readonly signal: AbortSignal;
};

type HandlingOf<R, E extends SubscribedEvent<unknown>> = EventHandling<E['data']['object'], R, E>;

/**
 * @template R the calls on the collections; never: not known
 * @template E its patterns of event types
 * @template C the declarations of the collections, by their names
 */
export type SubscriberDeclaration<R = never, E extends string = string, C = unknown> = {
  readonly description?: string;
  /** Patterns of event types, as of webhook endpoints: `comments.created`, `tickets.*`, `*`. */
  readonly events: readonly E[];
  /**
   * Events with the same key (a text or a number) are handled one after the other in their order: one that fails holds back those behind it.
   * It must be pure: it runs on the main thread, within the write. Undefined or null: no order.
   */
  orderBy?(event: EventOf<E, C>): unknown;
  /** Seconds from each failed attempt to the next; after the last one the message is `failed`. */
  readonly schedule?: readonly number[];
  /** Events handled at once by one process. */
  readonly inFlightMax?: number;
  /** A method, so that the type of the event's document may be narrower: `handler({ event }: EventHandling<Comment, Desk>)`. */
  handler(handling: HandlingOf<R, EventOf<E, C>>): void | Promise<void>;
};

export type OrderBy = NonNullable<SubscriberDeclaration['orderBy']>;

export type DeclaredSubscriber = {
  readonly name: string;
  readonly description: string;
  readonly events: readonly string[];
  readonly orderBy: OrderBy | undefined;
  readonly source: Source;
};
