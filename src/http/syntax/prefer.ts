/**
 * Preferences: RFC 7240 §2 (`Prefer`) and RFC 7240 §3 (`Preference-Applied`). A preference is only a wish, so a malformed one is skipped up to the
 * next comma and nothing here fails. The caller knows which preferences exist, and `handling=strict`.
 */
import { formatWord, isToken, readWord, skipWhitespace, tokenEnd } from './field-value.ts';

/** A preference's value (empty without one) and its parameters by lower-case name. */
export type Preference = { readonly value: string; readonly parameters: ReadonlyMap<string, string> };

type ReadPair = { readonly name: string; readonly value: string; readonly end: number };

/** The preferences by lower-case name; of a repeated one the first counts (RFC 7240 §2). */
export function parsePrefer(value: string): ReadonlyMap<string, Preference> {
  const preferences = new Map<string, Preference>();
  let at = skipWhitespace(value, 0);
  while (at < value.length) {
    const pair = readPair(value, at);
    const parameters = new Map<string, string>();
    const end = pair === undefined ? -1 : readPreferenceParameters(value, pair.end, parameters);
    const clean = end !== -1 && (end === value.length || value.charCodeAt(end) === 0x2c);
    if (pair !== undefined && clean && !preferences.has(pair.name)) {
      preferences.set(pair.name, { value: pair.value, parameters });
    }
    const comma = value.indexOf(',', clean ? end : at);
    at = comma === -1 ? value.length : skipWhitespace(value, comma + 1);
  }
  return preferences;
}

/** Writes `Preference-Applied`: each name with its value, or alone if the value is empty. Names are tokens. */
export function formatPreferenceApplied(applied: Iterable<readonly [name: string, value: string]>): string {
  let text = '';
  for (const [name, value] of applied) {
    if (!isToken(name)) continue;
    if (text !== '') text += ', ';
    text += value === '' ? name : `${name}=${formatWord(value)}`;
  }
  return text;
}

/** Reads `token [ BWS "=" BWS word ]` and the whitespace after it. */
function readPair(text: string, from: number): ReadPair | undefined {
  const nameEnd = tokenEnd(text, from);
  if (nameEnd === from) return undefined;
  const name = text.slice(from, nameEnd).toLowerCase();
  const at = skipWhitespace(text, nameEnd);
  if (text.charCodeAt(at) !== 0x3d) return { name, value: '', end: at };
  const word = readWord(text, skipWhitespace(text, at + 1));
  if (word === undefined) return undefined;
  return { name, value: word.value, end: skipWhitespace(text, word.end) };
}

/** Reads `*( OWS ";" OWS [ parameter ] )`, first occurrence wins; returns the index after it, or -1. */
function readPreferenceParameters(text: string, from: number, into: Map<string, string>): number {
  let at = from;
  while (text.charCodeAt(at) === 0x3b) {
    at = skipWhitespace(text, at + 1);
    const code = text.charCodeAt(at);
    if (at === text.length || code === 0x3b || code === 0x2c) continue;
    const pair = readPair(text, at);
    if (pair === undefined) return -1;
    if (!into.has(pair.name)) into.set(pair.name, pair.value);
    at = pair.end;
  }
  return at;
}
