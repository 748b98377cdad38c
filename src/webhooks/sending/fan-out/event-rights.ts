/**
 * Whether an endpoint may be told of an event: by the rights of its owner, which are those of the collection over the snapshot in the event
 * (as the stream of events has them, resources/events/visibility.ts), and by its tenant. An event's document is parsed only where a
 * rule or a tenant looks into it, and once for all endpoints.
 */
import { valueAt } from '../../../http/syntax/json-members.ts';
import { type Permission, permission, permits, type Rule, type Subject } from '../../../model/access.ts';
import type { Collection } from '../../../model/collection.ts';
import { noCollection, readRuleOfPosted, tenantMember } from '../../../model/event.ts';
import { matchesEventPattern } from '../../../model/event-pattern.ts';
import { type Authenticated, isAdministrator } from '../../../model/principal.ts';
import type { EventEntry } from '../../../store/store.ts';
import type { KnownEndpoint } from '../known-endpoint.ts';

export type MatchedEvent = Pick<EventEntry, 'type' | 'collection' | 'owner' | 'doc'>;

export type EventRights = {
  /** Whether the endpoint may be told of events of the collection: `depends` where only the event tells. */
  permission(known: KnownEndpoint, collection: string): Permission;
  /** Whether it may be told of this one. */
  lets(known: KnownEndpoint, collection: string, event: OpenEvent): boolean;
  /** The rule by which the principal reads events of the collection; undefined: none lets it. */
  ruleFor(principal: Authenticated, collection: string): Rule | undefined;
  /** The member by which the collection's events belong to tenants; undefined: they belong to none. */
  tenantFieldOf(collection: string): string | undefined;
};

export function createEventRights(collections: Iterable<Collection>): EventRights {
  const byName = new Map([...collections].map((collection) => [collection.name, collection] as const));

  function ruleFor(principal: Authenticated, collection: string): Rule | undefined {
    if (collection === noCollection) return readRuleOfPosted(principal);
    // Events of a collection that is declared no more are an administrator's alone.
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

/** Whether the owner of the endpoint, and its tenant, let the event through, whatever its patterns are. */
export function isTold(
  rights: EventRights,
  known: KnownEndpoint,
  event: Omit<MatchedEvent, 'type'>,
): boolean {
  const allowed = rights.permission(known, event.collection);
  if (allowed !== 'depends') return allowed === 'granted';
  return rights.lets(known, event.collection, openEvent(event));
}

/** An event that rules look into. */
export type OpenEvent = Subject;

/** Each member is parsed when it is first asked for: those of the resource; of an event that tells of none, those of the envelope. */
export function openEvent({ collection, owner, doc }: Omit<MatchedEvent, 'type'>): OpenEvent {
  const members = new Map<string, unknown>();
  const within = collection === noCollection ? [] : ['data', 'object'];
  return {
    owner,
    member(name) {
      if (!members.has(name)) members.set(name, valueAt(doc, [...within, name]));
      return members.get(name);
    },
  };
}

/* Whether one endpoint wants an event and may be told of it: what `matching` of the directory asks of all at once. */

/** Whether it is enabled is not asked: a recovery makes up for the time in which it was not. */
export function createWants(
  collections: Iterable<Collection>,
): (known: KnownEndpoint, event: MatchedEvent) => boolean {
  const rights = createEventRights(collections);
  return (known, event) => {
    const { type } = event;
    return (
      known.endpoint.events.some((text) => matchesEventPattern(text, type)) && isTold(rights, known, event)
    );
  };
}
