/** The event envelope of §2.6, and types of events about resource writes: `{collection}.created|updated|deleted`. */
import { memberSpan } from '../http/syntax/json-members.ts';
import type { Rule } from './access.ts';
import type { Principal } from './principal.ts';

export type Change = 'created' | 'updated' | 'deleted';

export function eventType(collection: string, change: Change): string {
  return `${collection}.${change}`;
}

/**
 * The envelope as served.
 * @param object the affected resource as JSON text, unchanged
 * @param at milliseconds since the epoch; `created` has whole seconds (§6.2)
 * @param tenant of the event, if no resource in it has one
 */
export function eventDocument(id: string, type: string, at: number, object: string, tenant?: string): string {
  const created = Math.floor(at / 1000);
  const whose = tenant === undefined ? '' : `,"tenant":${JSON.stringify(tenant)}`;
  return `{"id":"${id}","object":"event","type":${JSON.stringify(type)},"created":${created}${whose},"data":{"object":${object}}}`;
}

/**
 * The collection name of events about no resource (§6): posted ones, and Comity's own about endpoints.
 * `readRuleOfPosted` governs them; the rules of its collection govern an event about a resource.
 */
export const noCollection = '';

/** The member of the envelope with the tenant, which the rule reads. */
export const tenantMember = 'tenant';

const ownOrOfTenant: Rule = { anyOf: ['owner', { tenantIn: tenantMember }] };

/** Permits the owner and members of the tenant, with a credential for reading or webhooks; administrators read all. */
export function readRuleOfPosted(principal: Principal): Rule {
  const reads = principal.kind === 'authenticated' && principal.scopes.has('read');
  return reads ? ownOrOfTenant : { bearing: 'webhooks', rule: ownOrOfTenant };
}

/** Where the resource of an event is in its text; undefined: it has none. */
export function objectSpan(doc: string): { readonly start: number; readonly end: number } | undefined {
  const data = memberSpan(doc, 'data');
  return data === undefined ? undefined : memberSpan(doc, 'object', data.start);
}

// Patterns of event types: `products.created` matches that type, `products.*` every type with further segments after `products`, `*`
// everything. A star replaces whole segments at the end only, so that the endpoints for a type are found by one lookup for each of its
// segments (`patternsOfType`).

/** Applies to a type, and to the text before the star. */
export const eventTypeCharactersMax = 200;

/** Returns the fault of a pattern as a predicate (`must be ...`); undefined if it is valid. */
export function eventPatternFault(text: string): string | undefined {
  if (text === '*') return undefined;
  let isSegmentEmpty = true;
  const end = text.endsWith('.*') ? text.length - 2 : text.length;
  if (end > eventTypeCharactersMax) return `must have at most ${eventTypeCharactersMax} characters`;
  for (let at = 0; at < end; at += 1) {
    const code = text.charCodeAt(at);
    if (code === dot && isSegmentEmpty) return wrong;
    if (code !== dot && !isSegmentCode(code)) return code === star ? misplaced : wrong;
    isSegmentEmpty = code === dot;
  }
  return isSegmentEmpty ? wrong : undefined;
}

export function matchesEventPattern(pattern: string, type: string): boolean {
  if (pattern === '*') return true;
  if (!pattern.endsWith('.*')) return pattern === type;
  // The dot before the star has to be in the type, and something after it.
  const prefix = pattern.length - 1;
  return type.length > prefix && type.startsWith(pattern.slice(0, prefix));
}

/** Every pattern that matches the type: for `a.b.c`, `*`, `a.*`, `a.b.*` and the type itself. */
export function patternsOfType(type: string): readonly string[] {
  const patterns = ['*', type];
  for (let at = type.indexOf('.'); at !== -1; at = type.indexOf('.', at + 1)) {
    if (at + 1 < type.length) patterns.push(`${type.slice(0, at)}.*`);
  }
  return patterns;
}

const star = 0x2a;
const dot = 0x2e;
const wrong =
  'must be segments of letters, digits, _ and -, joined by dots, and may end with .* or be only *';
const misplaced = 'may have a * only after the last dot, as in products.*, or as the whole pattern';

function isSegmentCode(code: number): boolean {
  const letter = code | 0x20;
  return (
    (letter >= 0x61 && letter <= 0x7a) || (code >= 0x30 && code <= 0x39) || code === 0x5f || code === 0x2d
  );
}

/** Finds the values with a pattern for a type, without visiting the others. */
export class PatternIndex<Value> {
  readonly #byPattern = new Map<string, Set<Value>>();

  add(value: Value, patterns: readonly string[]): void {
    for (const pattern of patterns) {
      const values = this.#byPattern.get(pattern);
      if (values === undefined) this.#byPattern.set(pattern, new Set([value]));
      else values.add(value);
    }
  }

  remove(value: Value, patterns: readonly string[]): void {
    for (const pattern of patterns) {
      const values = this.#byPattern.get(pattern);
      values?.delete(value);
      if (values?.size === 0) this.#byPattern.delete(pattern);
    }
  }

  /** Returns each value that has a matching pattern once. */
  find(type: string): readonly Value[] {
    const found = new Set<Value>();
    for (const pattern of patternsOfType(type)) {
      for (const value of this.#byPattern.get(pattern) ?? []) found.add(value);
    }
    return [...found];
  }
}
