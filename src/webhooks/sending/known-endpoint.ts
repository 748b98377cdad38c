/** Endpoints as the sender knows them: in memory, ready to be matched and sent to. */
import type { Endpoint, EndpointSecret } from '../../model/endpoint.ts';
import type { Authenticated } from '../../model/principal.ts';
import type { RelatedRows } from '../../store/related-rows.ts';
import type { Change, EventEntry, MaybePromise } from '../../store/store.ts';

export type KnownEndpoint = {
  readonly endpoint: Endpoint;
  readonly rev: number;
  readonly owner: string | null;
  /**
   * The owner's principal, whose rights filter events; undefined: the owner is gone or disabled, and nothing is sent.
   */
  readonly principal: Authenticated | undefined;
  readonly url: URL;
  /** The current one first; `until` of the others may have passed. */
  readonly secrets: readonly EndpointSecret[];
  /** Sent with every delivery. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
};

/** An endpoint with a filter on content, which the event is yet to pass. */
export type Filtered = { readonly known: KnownEndpoint; readonly passes: () => boolean };

/** The endpoints of an event, with the change that proves their completeness at the commit. */
export type Matched = {
  /**
   * Disjoint groups. The group that receives every event of the type is the same array for all of them, until an endpoint changes.
   */
  readonly groups: readonly (readonly KnownEndpoint[])[];
  /** Endpoints of no group, for `judgeSome`. */
  readonly filtered: Filtered[];
  /** Superseded if an endpoint was created, changed or removed meanwhile, or such a change was lost. */
  readonly guard: Change;
};

/** An event before it is sent. */
export type DeliveredEvent = Pick<EventEntry, 'id' | 'type' | 'owner' | 'doc'>;

/** All endpoints of all owners, kept in memory and followed from the store. */
export type EndpointDirectory = {
  get(id: string): KnownEndpoint | undefined;
  all(): Iterable<KnownEndpoint>;
  /**
   * Returns the enabled endpoints whose patterns, tenant and owner's rights admit the event.
   * @param related finds the rows that references of its resource name
   */
  matching(
    event: Pick<EventEntry, 'type' | 'collection' | 'owner' | 'doc'>,
    related?: RelatedRows['find'],
  ): Matched;
  countOf(owner: string | null): number;
  size(): number;
  /**
   * Returns true if the current rights of the endpoint's owner, and its tenant, admit the event, regardless of its
   * patterns. Test events are always admitted.
   * @throws StoreUnavailable
   */
  mayReceive(id: string, event: DeliveredEvent): MaybePromise<boolean>;
  /**
   * Returns the changes that a unit needs that changes endpoints or their owners' rights, so that other processes
   * notice in time.
   * @param unit its other changes; without them, everything is read again
   */
  generationChanges(unit?: readonly Change[]): readonly Change[];
  /** Reads the current state, after the guard or a change of the generation was superseded. */
  refresh(): Promise<void>;
  /** Calls back after the directory changed; returns a function that removes the listener. */
  onChange(listener: () => void): () => void;
  close(): Promise<void>;
};

/** Time of the event loop for filters in a turn. With eight between two looks at the clock, the costliest patterns held it for 78 ms. */
const judgeMs = 5;

/**
 * Moves endpoints whose filters the event passes to `passed`, for a few milliseconds.
 * @returns true when all are judged
 */
export function judgeSome(filtered: Filtered[], passed: KnownEndpoint[]): boolean {
  const until = performance.now() + judgeMs;
  for (;;) {
    const next = filtered.pop();
    if (next === undefined) return true;
    if (next.passes()) passed.push(next.known);
    if (performance.now() > until) return false;
  }
}

/** Returns the party of an endpoint: its tenant, or its owner if there are no tenants. */
export function partyOf({ endpoint, principal, owner }: KnownEndpoint): string {
  return endpoint.tenant ?? principal?.tenant ?? owner ?? '';
}
