/**
 * Messages of the WebSocket subprotocol `comity.v1`: JSON texts, one frame a message. A client subscribes and
 * unsubscribes; the server sends its list of subscriptions, events, and errors in a frame as a sentence.
 */

import { type Json, parseJson } from '../http/syntax/json.ts';
import { eventPatternFault } from '../model/event-pattern.ts';

export const realtimeSubprotocol = 'comity.v1';

export type ClientFrame =
  /** `after`: a place in the log; empty: the oldest event; undefined: begin now. */
  | {
      readonly kind: 'subscribe';
      readonly patterns: readonly string[];
      readonly after: string | undefined;
    }
  | { readonly kind: 'unsubscribe'; readonly patterns: readonly string[] };

export type ReadFrame =
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

/** @param doc the event as JSON, as the principal sees it */
export function eventFrame(doc: string): string {
  return `{"event":${doc}}`;
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
