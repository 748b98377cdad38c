/** Endpoints as the sender knows them: what stands in the store, ready to be matched and sent to. */
import type { Endpoint, EndpointSecret } from '../../model/endpoint.ts';
import type { Authenticated } from '../../model/principal.ts';
import type { Change, EventEntry } from '../../store/store.ts';

export type KnownEndpoint = {
  readonly endpoint: Endpoint;
  /** Revision of its row. */
  readonly rev: number;
  readonly owner: string | null;
  /** Whom it is told things for; undefined: its owner is gone or disabled, and it is told nothing. */
  readonly principal: Authenticated | undefined;
  readonly url: URL;
  /** The current one first; `until` of the others may be over. */
  readonly secrets: readonly EndpointSecret[];
  /** Sent with every delivery. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
};

/** The endpoints that an event goes to, and what proves at the commit that they are all. */
export type Matched = {
  /** In groups, none in two of them; a group that many events share is the same array for them. */
  readonly groups: readonly (readonly KnownEndpoint[])[];
  /** Fails as superseded when an endpoint was made, changed or removed meanwhile. Undefined: nothing to prove. */
  readonly guard: Change;
};

/** Kept in memory, followed from the store: all endpoints of all owners. */
export type EndpointDirectory = {
  get(id: string): KnownEndpoint | undefined;
  all(): Iterable<KnownEndpoint>;
  /** Enabled endpoints whose pattern, tenant and owner's rights let the event through. */
  matching(event: Pick<EventEntry, 'type' | 'collection' | 'owner' | 'doc'>): Matched;
  /** How many endpoints an owner has. */
  countOf(owner: string | null): number;
  size(): number;
  /**
   * Whether its owner, as it is now, and its tenant let the endpoint be told of the event, whatever its patterns are. A test may always.
   * @throws StoreUnavailable
   */
  mayReceive(id: string, event: Pick<EventEntry, 'id' | 'type' | 'owner' | 'doc'>): Promise<boolean>;
  /**
   * What a unit must contain that changes endpoints, or what their owners may read, so that others find out in time.
   * @param unit its other changes; without them, everything is read again
   */
  generationChanges(unit?: readonly Change[]): readonly Change[];
  /** Reads what stands now, after a guard or a generation change was superseded. */
  refresh(): Promise<void>;
  /** Calls back after the directory changed. Returns the way to stop. */
  onChange(listener: () => void): () => void;
  close(): Promise<void>;
};

/** The party that shares turns, attempts and memory with others: the tenant of an endpoint, or its owner where there are no tenants. */
export function partyOf({ endpoint, principal, owner }: KnownEndpoint): string {
  return endpoint.tenant ?? principal?.tenant ?? owner ?? '';
}
