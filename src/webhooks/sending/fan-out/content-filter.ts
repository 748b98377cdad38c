/**
 * Filters on content (`where` of an endpoint, §6.18): which events of collections it is sent, by the language of lists over `data.object`.
 *
 * A filter names only what the owner of the endpoint sees in every document: deliveries would otherwise show the values of hidden members.
 * That is checked when the filter is set, for its author and for the owner, and again by the rights that the owner has at the event. An
 * event without a resource of a collection passes no filter.
 */
import type { FieldError } from '../../../http/problem.ts';
import { parseJsonPointer } from '../../../http/syntax/json-pointer.ts';
import { permission, type Subject } from '../../../model/access.ts';
import type { Collection } from '../../../model/collection.ts';
import type { Endpoint } from '../../../model/endpoint.ts';
import { eventType, matchesEventPattern } from '../../../model/event.ts';
import type { Fields } from '../../../model/field.ts';
import { type Filter, isRelative, never } from '../../../model/filter.ts';
import { matches, memberAt } from '../../../model/matches.ts';
import type { Principal } from '../../../model/principal.ts';
import { createViews } from '../../../resources/collection/view.ts';
import { compileJsonFilter } from '../../../resources/query/json-query.ts';
import { FaultList } from '../../../resources/query/query-faults.ts';
import type { KnownEndpoint } from '../known-endpoint.ts';

/** Of the filter as JSON text. */
export const whereCharactersMax = 8192;
/*
 * The cost of a pattern is the product of both lengths: with these bounds the costliest that was found takes 5 ms, and most 2 us.
 */
export const whereNodesMax = 32;
export const wherePatternCharactersMax = 128;
/** A longer text matches no pattern. */
export const whereTextCharactersMax = 16_384;

const limits = {
  ...{ filterDepthMax: 8, filterNodesMax: whereNodesMax, inValuesMax: 100 },
  ...{ filterReferenceDepthMax: 0, filterReferencesMax: 0 },
};
const faultsMax = 10;

/** An endpoint with a filter, an order or both. */
type Selective = Pick<Endpoint, 'events' | 'where' | 'orderBy'>;

export class ContentFilters {
  readonly #collections: ReadonlyMap<string, { readonly collection: Collection; readonly view: ViewOf }>;
  /** By collection, of one version of an endpoint. */
  readonly #compiled = new WeakMap<KnownEndpoint, Map<string, Keyed>>();

  constructor(collections: Iterable<Collection>) {
    this.#collections = new Map(
      [...collections].map((collection) => [collection.name, { collection, view: createViews(collection) }]),
    );
  }

  /** What is wrong with the filter and the order of an endpoint by the rights of these principals. */
  faults({ events, where, orderBy }: Selective, principals: readonly Principal[]): readonly FieldError[] {
    const fault = orderBy === undefined ? undefined : this.#orderFault(orderBy, events, principals);
    if (fault !== undefined) return [{ pointer: '/orderBy', message: fault }];
    if (where === undefined) return [];
    if (JSON.stringify(where).length > whereCharactersMax)
      return [{ pointer: '/where', message: `must have at most ${whereCharactersMax} characters as JSON` }];
    for (const principal of principals) {
      const errors = this.#filterFaults(where, events, principal);
      if (errors.length > 0) return errors;
    }
    return [];
  }

  /** True if the event passes the filter. @param judged the filters that were evaluated on the event, which share their outcome */
  passes(known: KnownEndpoint, collection: string, event: Subject, judged: Map<string, boolean>): boolean {
    const { filter, key } = this.#filterOf(known, collection);
    if (filter.op === 'never') return false;
    const before = judged.get(key);
    if (before !== undefined) return before;
    const isPassed = holds(filter, event);
    judged.set(key, isPassed);
    return isPassed;
  }

  /** The fields that the principal may name; undefined: it reads no document of the collection, whose fields it may not know. */
  #fieldsFor(name: string, principal: Principal): Fields | undefined {
    const found = this.#collections.get(name);
    if (found === undefined || permission(found.collection.access.read, 'read', principal) === 'denied')
      return undefined;
    return found.view(principal).fields;
  }

  /** The collections that the principal reads. */
  #readable(principal: Principal): readonly (readonly [name: string, fields: Fields])[] {
    return [...this.#collections.keys()].flatMap((name) => {
      const fields = this.#fieldsFor(name, principal);
      return fields === undefined ? [] : [[name, fields] as const];
    });
  }

  #filterOf(known: KnownEndpoint, name: string): Keyed {
    const ofEndpoint = this.#compiled.get(known) ?? new Map<string, Keyed>();
    this.#compiled.set(known, ofEndpoint);
    const found = ofEndpoint.get(name);
    if (found !== undefined) return found;
    const { endpoint, principal } = known;
    const fields = principal === undefined ? undefined : this.#fieldsFor(name, principal);
    const faults = new FaultList(1);
    const filter = fields === undefined ? never : compile(endpoint.where, { name, fields, faults });
    const made = faults.isEmpty
      ? { filter, key: JSON.stringify(endpoint.where) }
      : { filter: never, key: '' };
    ofEndpoint.set(name, made);
    return made;
  }

  #filterFaults(
    where: Endpoint['where'],
    events: readonly string[],
    principal: Principal,
  ): readonly FieldError[] {
    const readable = this.#readable(principal);
    const strange = events.findIndex((pattern) => !readable.some(([name]) => concerns(pattern, name)));
    if (strange !== -1) {
      const message = 'must match events of a collection, such as products.*: where filters by its members';
      return [{ pointer: `/events/${strange}`, message }];
    }
    const errors: FieldError[] = [];
    for (const [name, fields] of readable) {
      if (!events.some((pattern) => concerns(pattern, name))) continue;
      const faults = new FaultList(faultsMax);
      compile(where, { name, fields, faults });
      for (const { message, pointer = '/where' } of faults.faults)
        errors.push({ pointer, message: `${message} (events of ${name})` });
    }
    return errors.slice(0, faultsMax);
  }

  /** A member that a collection lacks, or hides from one of the principals, gives no order. */
  #orderFault(
    orderBy: string,
    events: readonly string[],
    principals: readonly Principal[],
  ): string | undefined {
    const member = parseJsonPointer(orderBy)?.[0];
    if (member === undefined) return 'must be a JSON Pointer into data.object, such as /id';
    for (const [name, fields] of principals.flatMap((principal) => this.#readable(principal))) {
      const isNamed = fields.values().some(({ path: [first] }) => first === member);
      if (!isNamed && events.some((pattern) => concerns(pattern, name)))
        return `must name a member of ${name}: ${JSON.stringify(member)} is none`;
    }
    return undefined;
  }
}

type ViewOf = ReturnType<typeof createViews>;

/** Filters with one text select the same of an event. */
type Keyed = { readonly filter: Filter; readonly key: string };

type Compiling = { readonly name: string; readonly fields: Fields; readonly faults: FaultList };

function compile(where: Endpoint['where'], { name, fields, faults }: Compiling): Filter {
  const target = { table: name, fields, searched: false };
  const filter = compileJsonFilter(where, { target, limits, faults }, 'where');
  if (isRelative(filter)) {
    const message = 'takes no times relative to the present: an event is judged once, when it occurs';
    faults.unprocessable(message, { pointer: '/where' });
  }
  const characters = patternCharacters(filter);
  if (characters > wherePatternCharactersMax) {
    const message = `takes patterns of at most ${wherePatternCharactersMax} characters together, not ${characters}`;
    faults.unprocessable(message, { pointer: '/where' });
  }
  return filter;
}

function patternCharacters(filter: Filter): number {
  if ('filters' in filter) return filter.filters.reduce((sum, part) => sum + patternCharacters(part), 0);
  if ('filter' in filter) return patternCharacters(filter.filter);
  return filter.op === 'like' ? filter.pattern.length : 0;
}

function concerns(pattern: string, collection: string): boolean {
  return (['created', 'updated', 'deleted'] as const).some((change) =>
    matchesEventPattern(pattern, eventType(collection, change)),
  );
}

function holds(filter: Filter, event: Subject): boolean {
  if (filter.op === 'and') return filter.filters.every((part) => holds(part, event));
  if (filter.op === 'or') return filter.filters.some((part) => holds(part, event));
  if (filter.op === 'not') return !holds(filter.filter, event);
  const value = ({ path: [name = '', ...path] }: { readonly path: readonly string[] }): unknown =>
    memberAt(event.member(name), path);
  if (filter.op === 'like') {
    const text = value(filter.field);
    if (typeof text === 'string' && text.length > whereTextCharactersMax) return false;
  }
  return matches(filter, { value, search: null });
}
