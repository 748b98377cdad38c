/**
 * The WebSocket subprotocol `comity.v1`: JSON texts, one frame a message. A client subscribes and unsubscribes; the
 * server sends its list of subscriptions, events, and errors in a frame as a sentence.
 */
import { type Json, parseJson } from '../http/syntax/json.ts';
import { eventPatternFault, matchesEventPattern } from '../model/event.ts';
import type { Field } from '../model/field.ts';
import { always, anyOf, type Filter } from '../model/filter.ts';
import { eventFields } from '../resources/events/visible-events.ts';
import { isAfter } from '../store/follow-log.ts';
import type { LogPosition } from '../store/store.ts';

export const realtimeSubprotocol = 'comity.v1';

export type ClientFrame =
  /** `after`: a place in the log; empty: the oldest event; undefined: begin now. */
  | {
      readonly kind: 'subscribe';
      readonly patterns: readonly string[];
      readonly after: string | undefined;
    }
  | { readonly kind: 'unsubscribe'; readonly patterns: readonly string[] };

type ReadFrame =
  | { readonly ok: true; readonly frame: ClientFrame }
  | { readonly ok: false; readonly error: string };

/** More than ids of events (webhooks/sending/events/post-event.ts) and the places with them may have. */
const placeCharactersMax = 255;
const jsonLimits = { depthMax: 4, keysMax: 16 };

/** @param patternsMax number of patterns that a frame may name */
export function readClientFrame(text: string, patternsMax: number): ReadFrame {
  const parsed = parseJson(text, jsonLimits);
  if (!parsed.ok) return wrong(`a frame must be JSON: ${parsed.message} at character ${parsed.offset}`);
  const { value } = parsed;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return wrong('a frame must be an object, such as {"subscribe":["products.*"]}');
  }
  const unknown = Object.keys(value).find((name) => !members.has(name));
  if (unknown !== undefined) {
    return wrong(
      `unknown member ${JSON.stringify(unknown.slice(0, 64))}; a frame may have the members subscribe, unsubscribe and after`,
    );
  }
  return readMembers(value, patternsMax);
}

export function subscribedFrame(patterns: Iterable<string>): string {
  return JSON.stringify({ subscribed: [...patterns] });
}

export function errorFrame(error: string): string {
  return JSON.stringify({ error });
}

/** @param doc the event as JSON, as the principal sees it @param tag of its document since, as JSON; undefined: it has none */
export function eventFrame(doc: string, tag: string | undefined): string {
  return tag === undefined ? `{"event":${doc}}` : `{"event":${doc},"etag":${tag}}`;
}

const members: ReadonlySet<string> = new Set(['subscribe', 'unsubscribe', 'after']);

function readMembers(value: { readonly [name: string]: Json }, patternsMax: number): ReadFrame {
  const { subscribe, unsubscribe, after } = value;
  if ((subscribe === undefined) === (unsubscribe === undefined)) {
    return wrong('a frame must have either subscribe or unsubscribe');
  }
  if (after !== undefined && subscribe === undefined) return wrong('after requires subscribe');
  if (after !== undefined && !isPlace(after)) {
    return wrong(
      `after must be the id of an event, a place in the log, now, or empty for the oldest event: a string of at most ${placeCharactersMax} characters`,
    );
  }
  const kind = subscribe === undefined ? 'unsubscribe' : 'subscribe';
  const patterns = value[kind];
  if (!isTexts(patterns)) return wrong(`${kind} must be a list of strings, such as ["products.*"]`);
  if (patterns.length > patternsMax) return wrong(`${kind} may name at most ${patternsMax} patterns`);
  for (const [index, pattern] of patterns.entries()) {
    const fault = eventPatternFault(pattern);
    if (fault !== undefined) return wrong(`${kind}[${index}] ${fault}`);
  }
  return {
    ok: true,
    frame:
      kind === 'subscribe'
        ? { kind, patterns, after: isPlace(after) && after !== 'now' ? after : undefined }
        : { kind, patterns },
  };
}

function isPlace(value: Json | undefined): value is string {
  return typeof value === 'string' && value.length <= placeCharactersMax;
}

function isTexts(value: Json | undefined): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

function wrong(error: string): ReadFrame {
  return { ok: false, error };
}

// The subscriptions of one socket. Each pattern has a position in the log: the socket gets the events after it. `unplaced` is the
// position while the event of `after` has not been looked up.

export type Subscription = { readonly pattern: string; since: LogPosition };

/** After every event. */
export const unplaced: LogPosition = { rev: Number.POSITIVE_INFINITY, id: '' };

/** True if one of the subscriptions includes the event with this type and position. */
export function covers(subscriptions: Iterable<Subscription>, type: string, position: LogPosition): boolean {
  for (const { pattern, since } of subscriptions) {
    if (isAfter(position, since) && matchesEventPattern(pattern, type)) return true;
  }
  return false;
}

/** True if one of the patterns includes the type. */
export function matchesAny(subscriptions: Iterable<Subscription>, type: string): boolean {
  for (const { pattern } of subscriptions) if (matchesEventPattern(pattern, type)) return true;
  return false;
}

/** Selects events of the patterns, for the store. */
export function ofTypes(subscriptions: Iterable<Subscription>): Filter {
  const exact: string[] = [];
  const filters: Filter[] = [];
  for (const { pattern } of subscriptions) {
    if (pattern === '*') return always;
    if (!pattern.endsWith('.*')) exact.push(pattern);
    else {
      const prefix = pattern.slice(0, -1).replaceAll('_', '\\_');
      filters.push({ op: 'like', field: typeField, pattern: `${prefix}_%` });
    }
  }
  if (exact.length > 0) filters.push({ op: 'in', field: typeField, values: exact });
  return anyOf(filters);
}

const typeField: Field = eventFields.get('type') ?? {
  name: 'type',
  path: ['type'],
  type: 'string',
  column: 'type',
};
