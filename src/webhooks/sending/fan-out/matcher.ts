/**
 * Finds the endpoints of an event. What depends only on type and collection (patterns, scopes, roles) is computed once
 * for each such pair, kept, and updated in place. What depends on the event is evaluated only for endpoints with the
 * event's owner or tenant, so that with ten thousand endpoints of ten thousand tenants an event costs one lookup in a
 * map.
 */
import { memoryBounds } from '../../../memory/bounds.ts';
import type { Rule } from '../../../model/access.ts';
import { matchesEventPattern, patternsOfType } from '../../../model/event-pattern.ts';
import type { KnownEndpoint } from '../known-endpoint.ts';
import {
  type EventRights,
  type MatchedEvent,
  type OpenEvent,
  openEvent,
  type Related,
} from './event-rights.ts';

export type Matcher = {
  /**
   * Returns the endpoints in disjoint groups. The group that receives every event of the type is the same array until
   * an endpoint changes.
   */
  matching(event: MatchedEvent, related?: Related): readonly (readonly KnownEndpoint[])[];
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
  const index = createPatternIndex<KnownEndpoint>();
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
      if (byOwner.size + byTenant.size + asked.size === 0) return [always];
      const opened = openEvent(event, related);
      const found: KnownEndpoint[] = [];
      const ask = (candidates: Iterable<KnownEndpoint>): void => {
        for (const known of candidates) if (rights.lets(known, collection, opened)) found.push(known);
      };
      if (byOwner.size > 0 && owner !== null) ask(byOwner.get(owner) ?? []);
      if (byTenant.size > 0) ask(byTenant.get(tenantOf(opened, rights.tenantFieldOf(collection))) ?? []);
      ask(asked);
      return found.length === 0 ? [always] : [always, found];
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
      this.#always.add(known);
      this.#alwaysList = undefined;
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
 * Finds the values with a pattern for a type, without visiting the others: it looks up each pattern that covers the
 * type (`patternsOfType`).
 */

export type PatternIndex<Value> = {
  add(value: Value, patterns: readonly string[]): void;
  remove(value: Value, patterns: readonly string[]): void;
  /** Returns each value that has a matching pattern once. */
  find(type: string): readonly Value[];
};

export function createPatternIndex<Value>(): PatternIndex<Value> {
  const byPattern = new Map<string, Set<Value>>();
  return {
    add(value, patterns) {
      for (const pattern of patterns) {
        const values = byPattern.get(pattern);
        if (values === undefined) byPattern.set(pattern, new Set([value]));
        else values.add(value);
      }
    },
    remove(value, patterns) {
      for (const pattern of patterns) {
        const values = byPattern.get(pattern);
        values?.delete(value);
        if (values?.size === 0) byPattern.delete(pattern);
      }
    },
    find(type) {
      const found = new Set<Value>();
      for (const pattern of patternsOfType(type)) {
        for (const value of byPattern.get(pattern) ?? []) found.add(value);
      }
      return [...found];
    },
  };
}
