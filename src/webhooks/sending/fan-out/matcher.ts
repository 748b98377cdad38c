/**
 * Finds the endpoints of an event. What depends only on type and collection (patterns, scopes, roles) is computed once
 * for each such pair, kept, and updated in place. What depends on the event is evaluated only for endpoints with the
 * event's owner or tenant, so that with ten thousand endpoints of ten thousand tenants an event costs one lookup in a
 * map.
 */
import { valueAt } from '../../../http/syntax/json-members.ts';
import { memoryBounds } from '../../../memory/bounds.ts';
import { type Permission, permission, permits, type Rule, type Subject } from '../../../model/access.ts';
import type { Collection } from '../../../model/collection.ts';
import {
  matchesEventPattern,
  noCollection,
  PatternIndex,
  readRuleOfPosted,
  tenantMember,
} from '../../../model/event.ts';
import { type Authenticated, isAdministrator } from '../../../model/principal.ts';
import type { RelatedRows } from '../../../store/related-rows.ts';
import type { EventEntry } from '../../../store/store.ts';
import type { Filtered, KnownEndpoint, Matched } from '../known-endpoint.ts';
import { ContentFilters } from './content-filter.ts';

export type Matcher = {
  matching(event: MatchedEvent, related?: Related): Omit<Matched, 'guard'>;
  /** Replaces an endpoint; undefined: it is new, or gone. */
  change(before: KnownEndpoint | undefined, after: KnownEndpoint | undefined): void;
};

/**
 * Clients choose the types of posted events: above these numbers of types, or of endpoints in all of them, kept
 * candidates are discarded.
 */
const typesMax = 4096;
const candidatesMax = memoryBounds.eventCandidates.entries;

export function createMatcher(rights: EventRights): Matcher {
  const index = new PatternIndex<KnownEndpoint>();
  const kept = new Map<string, Candidates>();
  let candidatesKept = 0;

  function candidatesOf(type: string, collection: string): Candidates {
    const key = `${collection} ${type}`;
    let candidates = kept.get(key);
    if (candidates === undefined) {
      const found = index.find(type);
      if (kept.size >= typesMax || candidatesKept + found.length > candidatesMax) {
        kept.clear();
        candidatesKept = 0;
      }
      candidates = new Candidates(collection, rights);
      for (const known of found) candidates.add(known);
      candidatesKept += candidates.size;
      kept.set(key, candidates);
    }
    return candidates;
  }

  /**
   * In place, because finding candidates again costs time proportional to all endpoints, and changes may be frequent.
   */
  function changeKept(before: Wanted | undefined, after: Wanted | undefined): void {
    for (const [key, candidates] of kept) {
      const type = key.slice(key.indexOf(' ') + 1);
      candidatesKept -= candidates.size;
      if (before?.wants(type)) candidates.remove(before.known);
      if (after?.wants(type)) candidates.add(after.known);
      candidatesKept += candidates.size;
    }
  }

  return {
    change(before, after) {
      const [left, came] = [wantedOf(before), wantedOf(after)];
      if (left !== undefined) index.remove(left.known, left.patterns);
      if (came !== undefined) index.add(came.known, came.patterns);
      if (left !== undefined || came !== undefined) changeKept(left, came);
    },
    matching(event, related) {
      const { collection, owner } = event;
      const { always, byOwner, byTenant, asked } = candidatesOf(event.type, collection);
      if (byOwner.size + byTenant.size + asked.size === 0) return { groups: [always], filtered: [] };
      const opened = openEvent(event, related);
      const judged = new Map<string, boolean>();
      const found: KnownEndpoint[] = [];
      const filtered: Filtered[] = [];
      const ask = (candidates: Iterable<KnownEndpoint>): void => {
        for (const known of candidates) {
          if (!rights.lets(known, collection, opened)) continue;
          if (known.endpoint.where === undefined) found.push(known);
          else filtered.push({ known, passes: () => rights.selects(known, collection, opened, judged) });
        }
      };
      if (byOwner.size > 0 && owner !== null) ask(byOwner.get(owner) ?? []);
      if (byTenant.size > 0) ask(byTenant.get(tenantOf(opened, rights.tenantFieldOf(collection))) ?? []);
      ask(asked);
      return { groups: found.length === 0 ? [always] : [always, found], filtered };
    },
  };
}

type Wanted = {
  readonly known: KnownEndpoint;
  readonly patterns: readonly string[];
  wants(type: string): boolean;
};

/** Undefined for an endpoint that receives nothing. */
function wantedOf(known: KnownEndpoint | undefined): Wanted | undefined {
  if (known === undefined || known.principal === undefined || known.endpoint.status !== 'enabled')
    return undefined;
  const patterns = known.endpoint.events;
  return { known, patterns, wants: (type) => patterns.some((text) => matchesEventPattern(text, type)) };
}

/** The endpoints that want events of one type and collection, each in exactly one group. */
class Candidates {
  /** By the owner or the tenant that the event must at least have. */
  readonly byOwner = new Map<string, Set<KnownEndpoint>>();
  readonly byTenant = new Map<string, Set<KnownEndpoint>>();
  readonly asked = new Set<KnownEndpoint>();
  /** Endpoints that receive every event. */
  readonly #always = new Set<KnownEndpoint>();
  #alwaysList: readonly KnownEndpoint[] | undefined;
  readonly #collection: string;
  readonly #rights: EventRights;
  size = 0;

  constructor(collection: string, rights: EventRights) {
    this.#collection = collection;
    this.#rights = rights;
  }

  get always(): readonly KnownEndpoint[] {
    this.#alwaysList ??= [...this.#always];
    return this.#alwaysList;
  }

  add(known: KnownEndpoint): void {
    const allowed = this.#rights.permission(known, this.#collection);
    if (allowed === 'denied') return;
    this.size += 1;
    if (allowed === 'granted') {
      if (known.endpoint.where === undefined) {
        this.#always.add(known);
        this.#alwaysList = undefined;
      } else this.asked.add(known);
      return;
    }
    const { tenant, owner } = keysOf(known, this.#collection, this.#rights);
    if (tenant !== undefined) group(this.byTenant, tenant, known);
    else if (owner !== undefined) group(this.byOwner, owner, known);
    else this.asked.add(known);
  }

  remove(known: KnownEndpoint): void {
    const { tenant, owner } = keysOf(known, this.#collection, this.#rights);
    const isAlways = this.#always.delete(known);
    if (isAlways) this.#alwaysList = undefined;
    const isGone =
      isAlways ||
      this.asked.delete(known) ||
      ungroup(this.byTenant, tenant, known) ||
      ungroup(this.byOwner, owner, known);
    if (isGone) this.size -= 1;
  }
}

type Keys = { readonly tenant?: string | undefined; readonly owner?: string | undefined };

/**
 * Returns what an event must at least have: the endpoint's tenant, or the owner or tenant that a simple rule requires.
 */
function keysOf({ endpoint, principal }: KnownEndpoint, collection: string, rights: EventRights): Keys {
  if (endpoint.tenant !== undefined) return { tenant: endpoint.tenant };
  if (principal === undefined) return {};
  const rule = bare(rights.ruleFor(principal, collection));
  if (rule === 'owner') return { owner: principal.id };
  const isTenants =
    typeof rule === 'object' && 'tenantIn' in rule && rule.tenantIn === rights.tenantFieldOf(collection);
  return isTenants ? { tenant: principal.tenant ?? undefined } : {};
}

function bare(rule: Rule | undefined): Rule | undefined {
  return typeof rule === 'object' && 'bearing' in rule ? rule.rule : rule;
}

function group(groups: Map<string, Set<KnownEndpoint>>, key: string, known: KnownEndpoint): void {
  const members = groups.get(key);
  if (members === undefined) groups.set(key, new Set([known]));
  else members.add(known);
}

/** @returns true if it was a member */
function ungroup(
  groups: Map<string, Set<KnownEndpoint>>,
  key: string | undefined,
  known: KnownEndpoint,
): boolean {
  const members = key === undefined ? undefined : groups.get(key);
  if (key === undefined || members?.delete(known) !== true) return false;
  if (members.size === 0) groups.delete(key);
  return true;
}

/** No tenant has the empty name. */
function tenantOf(event: OpenEvent, field: string | undefined): string {
  const tenant = field === undefined ? undefined : event.member(field);
  return typeof tenant === 'string' ? tenant : '';
}

/*
 * Decides if an endpoint may receive an event: by the rights of its owner, which are those of the collection applied to
 * the snapshot in the event (as in the stream of events, resources/events/visible-events.ts), and by its tenant. An event's
 * document is parsed only if a rule or a tenant needs it, and once for all endpoints.
 */

export type MatchedEvent = Pick<EventEntry, 'type' | 'collection' | 'owner' | 'doc'>;

export type EventRights = {
  /** Returns the endpoint's permission for events of the collection: `depends` if it depends on the event. */
  permission(known: KnownEndpoint, collection: string): Permission;
  /** Returns true if the endpoint may receive this event. */
  lets(known: KnownEndpoint, collection: string, event: OpenEvent): boolean;
  /** Returns true if the event passes the endpoint's filter on content, or it has none. */
  selects: ContentFilters['passes'];
  /** Returns the rule by which the principal reads events of the collection; undefined: none. */
  ruleFor(principal: Authenticated, collection: string): Rule | undefined;
  /** Returns the member that holds the tenant of the collection's events; undefined: they have no tenant. */
  tenantFieldOf(collection: string): string | undefined;
};

export function createEventRights(collections: Iterable<Collection>): EventRights {
  let filters: ContentFilters | undefined;
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
    selects(known, ...event) {
      if (known.endpoint.where === undefined) return true;
      filters ??= new ContentFilters(byName.values());
      return filters.passes(known, ...event);
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
type OpenEvent = Subject;

/** Finds the rows that references of the event's resource name, as they are now. Absent: it finds none. */
export type Related = RelatedRows['find'];

/** Parses each member on first use: members of the resource, or of the envelope if the event has no resource. */
function openEvent({ collection, owner, doc }: Omit<MatchedEvent, 'type'>, related?: Related): OpenEvent {
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
      isTold(rights, known, event, related) &&
      rights.selects(known, event.collection, openEvent(event), new Map())
    );
  };
}
