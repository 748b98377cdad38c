/**
 * Finds the endpoints of an event among all of them. What only the type and the collection decide (patterns, scopes, roles) is decided
 * once for each such pair and kept; what the event decides is asked of those alone whose owner or tenant is the event's, so
 * that ten thousand endpoints of ten thousand tenants cost an event one look into a map.
 */

import { memoryBounds } from '../../../memory/bounds.ts';
import type { Rule } from '../../../model/access.ts';
import { matchesEventPattern } from '../../../model/event-pattern.ts';
import type { KnownEndpoint } from '../known-endpoint.ts';
import { type EventRights, type MatchedEvent, type OpenEvent, openEvent } from './event-rights.ts';
import { createPatternIndex } from './pattern-index.ts';

export type Matcher = {
  matching(event: MatchedEvent): readonly KnownEndpoint[];
  /** Puts an endpoint in the place of what it was before; undefined: it is new, or gone. */
  change(before: KnownEndpoint | undefined, after: KnownEndpoint | undefined): void;
};

/** Types of posted events are anybody's: beyond so many types, or endpoints in all of them, the candidates are found again. */
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
      candidates = sorted(found, collection, rights);
      candidatesKept += found.length;
      kept.set(key, candidates);
    }
    return candidates;
  }

  /** What is kept of other types stays. */
  function forget(patterns: readonly string[]): void {
    for (const key of kept.keys()) {
      const type = key.slice(key.indexOf(' ') + 1);
      if (patterns.some((pattern) => matchesEventPattern(pattern, type))) kept.delete(key);
    }
  }

  return {
    change(before, after) {
      const [left, came] = [patternsOf(before), patternsOf(after)];
      if (before !== undefined) index.remove(before, left);
      if (after !== undefined) index.add(after, came);
      if (left.length + came.length > 0) forget([...left, ...came]);
    },
    matching(event) {
      const { collection, owner } = event;
      const { always, byOwner, byTenant, asked } = candidatesOf(event.type, collection);
      if (byOwner === undefined && byTenant === undefined && asked.length === 0) return always;
      const found = [...always];
      const opened = openEvent(event);
      const ask = (candidates: readonly KnownEndpoint[] | undefined): void => {
        for (const known of candidates ?? []) if (rights.lets(known, collection, opened)) found.push(known);
      };
      if (byOwner !== undefined && owner !== null) ask(byOwner.get(owner));
      if (byTenant !== undefined) ask(byTenant.get(tenantOf(opened, rights.tenantFieldOf(collection))));
      ask(asked);
      return found;
    },
  };
}

/** None for one to which nothing is sent. */
function patternsOf(known: KnownEndpoint | undefined): readonly string[] {
  if (known === undefined || known.principal === undefined) return [];
  return known.endpoint.status === 'enabled' ? known.endpoint.events : [];
}

/** Each endpoint stands in one of them. */
type Candidates = {
  /** Whatever is in the event. */
  readonly always: readonly KnownEndpoint[];
  /** By the owner or the tenant that the event must have, if nothing else. */
  readonly byOwner: ReadonlyMap<string, readonly KnownEndpoint[]> | undefined;
  readonly byTenant: ReadonlyMap<string, readonly KnownEndpoint[]> | undefined;
  readonly asked: readonly KnownEndpoint[];
};

function sorted(endpoints: readonly KnownEndpoint[], collection: string, rights: EventRights): Candidates {
  const always: KnownEndpoint[] = [];
  const asked: KnownEndpoint[] = [];
  const byOwner = new Map<string, KnownEndpoint[]>();
  const byTenant = new Map<string, KnownEndpoint[]>();
  for (const known of endpoints) {
    const allowed = rights.permission(known, collection);
    if (allowed === 'denied') continue;
    if (allowed === 'granted') {
      always.push(known);
      continue;
    }
    const { tenant, owner } = keysOf(known, collection, rights);
    if (tenant !== undefined) group(byTenant, tenant, known);
    else if (owner !== undefined) group(byOwner, owner, known);
    else asked.push(known);
  }
  return {
    always,
    asked,
    byOwner: byOwner.size === 0 ? undefined : byOwner,
    byTenant: byTenant.size === 0 ? undefined : byTenant,
  };
}

type Keys = { readonly tenant?: string | undefined; readonly owner?: string | undefined };

/** What an event must have for the endpoint to be asked at all: its own tenant, or what a rule of one word says. */
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

function group(groups: Map<string, KnownEndpoint[]>, key: string, known: KnownEndpoint): void {
  const list = groups.get(key);
  if (list === undefined) groups.set(key, [known]);
  else list.push(known);
}

/** No tenant has the empty name. */
function tenantOf(event: OpenEvent, field: string | undefined): string {
  const tenant = field === undefined ? undefined : event.member(field);
  return typeof tenant === 'string' ? tenant : '';
}
