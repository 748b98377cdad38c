/**
 * What a sender's rule says of a message that was verified (§4.14, §6.3): what tells it apart, its type, and whether it is a challenge. It is
 * pure and synchronous, does not throw whatever the body is, and makes no digest: it says of what one has to be made.
 */
import type { Challenge, Place, SenderRule } from '../presets.ts';
import { fieldText, type Message, mediaTypeOf } from './message.ts';

export const dedupeKeyCharactersMax = 256;
export const typeCharactersMax = 200;
/** What a challenge asks back; more than that is no challenge, and kept as a message. */
export const challengeCharactersMax = 4096;

export type MessageFacts = {
  /** What tells it apart, as it stands in the message; undefined: a digest does. */
  readonly key: string | undefined;
  /** Too long, or not printable ASCII: the digest of this text is the key. Without it and `key` the digest of the body is. */
  readonly oversizedKey: string | undefined;
  /** Null where it says none that can be told. */
  readonly type: string | null;
  readonly challenge: ChallengeAnswer | undefined;
};

/** The one member of the JSON object that answers a challenge. */
export type ChallengeAnswer = { readonly name: string; readonly value: string };

/** Of a message that its sender signed: nothing here is to be believed of another. */
export function factsOf(rule: SenderRule, message: Message): MessageFacts {
  const reading = readingOf(message);
  const found = firstText(rule.dedupe, reading);
  const fits = found !== undefined && isPrintable(found, dedupeKeyCharactersMax);
  return {
    key: fits ? found : undefined,
    oversizedKey: fits ? undefined : found,
    type: typeOf(rule.type, reading),
    challenge: rule.challenge === undefined ? undefined : challengeOf(rule.challenge, reading),
  };
}

/**
 * The fields that are kept with a message, by name in lower case; of one that came more than once its values, with commas between
 * (RFC 9110 §5.3).
 */
export function keptFields(rule: SenderRule, message: Message): Readonly<Record<string, string>> {
  const kept: Record<string, string> = {};
  for (const name of rule.keep) {
    const value = message.header(name);
    if (value !== undefined) kept[name] = typeof value === 'string' ? value : value.join(', ');
  }
  return kept;
}

/** Where the key is to be made of a digest, so that every receiver makes the same. @param digest SHA-256 in base64url */
export function digestKey(digest: string): string {
  return `sha256:${digest}`;
}

/** Content-Type or Content-Encoding as it is kept: null where there is none, or more than one. */
export function contentFieldOf(message: Message, name: 'content-type' | 'content-encoding'): string | null {
  return fieldText(message, name) ?? null;
}

function firstText(places: readonly Place[], reading: BodyReading): string | undefined {
  for (const place of places) {
    const text = reading.textAt(place);
    if (text !== undefined) return text;
  }
  return undefined;
}

function typeOf(lists: SenderRule['type'], reading: BodyReading): string | null {
  for (const places of lists) {
    const type = joinedTexts(places, reading);
    if (type !== undefined) return isPrintable(type, typeCharactersMax) ? type : null;
  }
  return null;
}

/** Undefined unless each place holds a text. */
function joinedTexts(places: readonly Place[], reading: BodyReading): string | undefined {
  let joined: string | undefined;
  for (const place of places) {
    const text = reading.textAt(place);
    if (text === undefined) return undefined;
    joined = joined === undefined ? text : `${joined}.${text}`;
  }
  return joined;
}

function challengeOf(challenge: Challenge, reading: BodyReading): ChallengeAnswer | undefined {
  if (reading.jsonText(challenge.json) !== challenge.is) return undefined;
  const value = reading.jsonText(challenge.echo);
  if (value === undefined || value.length > challengeCharactersMax) return undefined;
  return { name: challenge.answer, value };
}

/** Whether a text is that short, and nothing but the characters from space to tilde. */
function isPrintable(text: string, charactersMax: number): boolean {
  if (text.length > charactersMax) return false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code > 0x7e) return false;
  }
  return true;
}

/*
 * Texts at places of a message (`Place` of presets.ts), for a body of any octets: its JSON is parsed when a place first asks for it and once, a form
 * is read only where the Content-Type says that it is one, and nothing throws.
 */

declare const TextDecoder: {
  new (label: 'utf-8', options: { readonly fatal: true }): { decode(octets: Uint8Array): string };
};

/** It keeps nothing from one body to the next. */
const utf8 = new TextDecoder('utf-8', { fatal: true });

const formType = 'application/x-www-form-urlencoded';

type BodyReading = {
  /** The text at a place; undefined: there is none. */
  textAt(place: Place): string | undefined;
  /** The text at a JSON Pointer into the body. */
  jsonText(pointer: string): string | undefined;
};

function readingOf(message: Message): BodyReading {
  let content: { readonly text: string | undefined } | undefined;
  let json: { readonly value: unknown } | undefined;
  let isForm: boolean | undefined;

  function contentText(): string | undefined {
    content ??= { text: decodedText(message.body) };
    return content.text;
  }

  function jsonText(pointer: string): string | undefined {
    json ??= { value: parsedJson(contentText()) };
    return textOf(valueAt(json.value, pointer));
  }

  function formText(name: string): string | undefined {
    isForm ??= mediaTypeOf(message) === formType;
    const text = isForm ? contentText() : undefined;
    return text === undefined ? undefined : textOf(formField(text, name));
  }

  return {
    jsonText,
    textAt(place) {
      if ('header' in place) return fieldText(message, place.header);
      return 'json' in place ? jsonText(place.json) : formText(place.form);
    },
  };
}

/** Undefined for what is no UTF-8: guessing would make one id of different ones. */
function decodedText(body: Uint8Array): string | undefined {
  try {
    return utf8.decode(body);
  } catch {
    return undefined;
  }
}

function parsedJson(text: string | undefined): unknown {
  if (text === undefined || text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Strings that say something, and whole numbers. A number beyond 2^53 or with a fraction may have been rounded while it was parsed, and a lone
 * surrogate is lost when it is encoded: two ids would become one, and a message be taken for a repetition of another.
 */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? String(value) : undefined;
  return typeof value === 'string' && value !== '' && value.isWellFormed() ? value : undefined;
}

/*
 * One field of application/x-www-form-urlencoded content. Stricter than the form parsers of browsers: what is no percent-encoded UTF-8 is no
 * text, where they put U+FFFD, which would make one id of different ones.
 */

/** The first value of that name; undefined where none is, or where it cannot be read. */
function formField(content: string, name: string): string | undefined {
  let at = 0;
  while (at <= content.length) {
    const end = content.indexOf('&', at);
    const pair = content.slice(at, end < 0 ? content.length : end);
    const equals = pair.indexOf('=');
    if (equals >= 0 && decoded(pair.slice(0, equals)) === name) return decoded(pair.slice(equals + 1));
    if (end < 0) return undefined;
    at = end + 1;
  }
  return undefined;
}

function decoded(text: string): string | undefined {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text;
  if (!spaced.includes('%')) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    // A stray percent sign, or octets that are no UTF-8.
    return undefined;
  }
}

/*
 * What stands at a JSON Pointer (RFC 6901) in a JSON value: members that the text itself had, never what every object inherits.
 * A pointer that leads nowhere, or is none, finds nothing.
 */

/** @returns undefined where nothing stands */
export function valueAt(json: unknown, pointer: string): unknown {
  if (pointer === '') return json;
  if (!pointer.startsWith('/')) return undefined;
  let value = json;
  for (const token of pointer.slice(1).split('/')) {
    value = memberOf(value, token.includes('~') ? unescaped(token) : token);
    if (value === undefined) return undefined;
  }
  return value;
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  // An array has a length of its own, which is no element.
  if (Array.isArray(value) && name === 'length') return undefined;
  return (value as Readonly<Record<string, unknown>>)[name];
}

/** RFC 6901 §4: `~1` first, so that `~01` is `~1` and no slash. */
function unescaped(token: string): string {
  return token.replaceAll('~1', '/').replaceAll('~0', '~');
}
