/**
 * Decides if an endpoint may receive an event: by the rights of its owner, which are those of the collection applied to
 * the snapshot in the event (as in the stream of events, resources/events/visibility.ts), and by its tenant. An event's
 * document is parsed only if a rule or a tenant needs it, and once for all endpoints.
 */
import { valueAt } from '../../../http/syntax/json-members.ts';
import { type Permission, permission, permits, type Rule, type Subject } from '../../../model/access.ts';
import type { Collection } from '../../../model/collection.ts';
import { noCollection, readRuleOfPosted, tenantMember } from '../../../model/event.ts';
import { matchesEventPattern } from '../../../model/event-pattern.ts';
import { type Authenticated, isAdministrator } from '../../../model/principal.ts';
import type { RelatedRows } from '../../../store/related-rows.ts';
import type { EventEntry } from '../../../store/store.ts';
import type { KnownEndpoint } from '../known-endpoint.ts';

export type MatchedEvent = Pick<EventEntry, 'type' | 'collection' | 'owner' | 'doc'>;

export type EventRights = {
  /** Returns the endpoint's permission for events of the collection: `depends` if it depends on the event. */
  permission(known: KnownEndpoint, collection: string): Permission;
  /** Returns true if the endpoint may receive this event. */
  lets(known: KnownEndpoint, collection: string, event: OpenEvent): boolean;
  /** Returns the rule by which the principal reads events of the collection; undefined: none. */
  ruleFor(principal: Authenticated, collection: string): Rule | undefined;
  /** Returns the member that holds the tenant of the collection's events; undefined: they have no tenant. */
  tenantFieldOf(collection: string): string | undefined;
};

export function createEventRights(collections: Iterable<Collection>): EventRights {
  const byName = new Map([...collections].map((collection) => [collection.name, collection] as const));

  function ruleFor(principal: Authenticated, collection: string): Rule | undefined {
    if (collection === noCollection) return readRuleOfPosted(principal);
    // Only administrators read events of a collection that is no longer declared.
    return byName.get(collection)?.access.read ?? (isAdministrator(principal) ? 'administrator' : undefined);
  }

  function tenantFieldOf(collection: string): string | undefined {
    return collection === noCollection ? tenantMember : byName.get(collection)?.tenantField;
  }

  return {
    ruleFor,
    tenantFieldOf,
    permission({ principal, endpoint }, collection) {
      const rule = principal === undefined ? undefined : ruleFor(principal, collection);
      if (principal === undefined || rule === undefined) return 'denied';
      if (endpoint.tenant !== undefined && tenantFieldOf(collection) === undefined) return 'denied';
      const allowed = permission(rule, 'read', principal);
      return allowed === 'granted' && endpoint.tenant !== undefined ? 'depends' : allowed;
    },
    lets({ principal, endpoint }, collection, event) {
      const rule = principal === undefined ? undefined : ruleFor(principal, collection);
      if (principal === undefined || rule === undefined) return false;
      if (endpoint.tenant !== undefined) {
        const field = tenantFieldOf(collection);
        if (field === undefined || event.member(field) !== endpoint.tenant) return false;
      }
      return permits(rule, 'read', principal, event);
    },
  };
}

/** Returns true if the owner and the tenant of the endpoint admit the event, regardless of its patterns. */
export function isTold(
  rights: EventRights,
  known: KnownEndpoint,
  event: Omit<MatchedEvent, 'type'>,
  related?: Related,
): boolean {
  const allowed = rights.permission(known, event.collection);
  if (allowed !== 'depends') return allowed === 'granted';
  return rights.lets(known, event.collection, openEvent(event, related));
}

/** An event as the subject of rules. */
export type OpenEvent = Subject;

/** Finds the rows that references of the event's resource name, as they are now. Absent: it finds none. */
export type Related = RelatedRows['find'];

/** Parses each member on first use: members of the resource, or of the envelope if the event has no resource. */
export function openEvent(
  { collection, owner, doc }: Omit<MatchedEvent, 'type'>,
  related?: Related,
): OpenEvent {
  const members = new Map<string, unknown>();
  const within = collection === noCollection ? [] : ['data', 'object'];
  return {
    owner,
    ...(related === undefined ? {} : { related }),
    member(name) {
      if (!members.has(name)) members.set(name, valueAt(doc, [...within, name]));
      return members.get(name);
    },
  };
}

/**
 * Returns a function that reports if one endpoint wants an event and may receive it, as the directory's `matching`
 * decides for all. Ignores the endpoint's status: a recovery makes up for the time in which it was disabled.
 */
export function createWants(
  collections: Iterable<Collection>,
): (known: KnownEndpoint, event: MatchedEvent, related?: Related) => boolean {
  const rights = createEventRights(collections);
  return (known, event, related) => {
    const { type } = event;
    return (
      known.endpoint.events.some((text) => matchesEventPattern(text, type)) &&
      isTold(rights, known, event, related)
    );
  };
}
