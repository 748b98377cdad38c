/**
 * The facts of a verified message by its sender's rule (§4.14, §6.3): its deduplication key, its type, and its
 * challenge, if any. Pure and synchronous; never throws, whatever the body is. It computes no digest: it reports which
 * text needs one.
 */
import type { Place, SenderRule } from '../sender-rule.ts';
import { decodeHexOfAny, octetsOf } from '../signature/octets.ts';
import { type ChallengeAnswer, isOpen, signedChallenge } from './challenge.ts';
import { type JsonTexts, jsonTexts, unescapedToken } from './json-texts.ts';
import { fieldText, type Message, mediaTypeOf } from './message.ts';

export const dedupeKeyCharactersMax = 256;
export const typeCharactersMax = 200;

export type MessageFacts = {
  /** The key as it is in the message; undefined: a digest is needed. */
  readonly key: string | undefined;
  /**
   * A text that is too long, or not printable ASCII: its digest is the key. If both are undefined, the digest of the
   * body is.
   */
  readonly oversizedKey: string | undefined;
  /** Null: the message has none that is valid. */
  readonly type: string | null;
  readonly challenge: ChallengeAnswer | undefined;
};

/** The parts of a rule that are read after the verification. */
type FactsRule = Omit<SenderRule, 'signature'>;

/** Call it only for a message with a valid signature. */
export function factsOf(rule: FactsRule, message: Message): MessageFacts {
  const steps = factsInSteps(rule, message);
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** The same for a server: yields after every few milliseconds of a long body, and never for a short one. */
export function* factsInSteps(rule: FactsRule, message: Message): Generator<undefined, MessageFacts> {
  const isLong = message.body.length > parsedOctetsMax;
  const long = isLong ? { texts: yield* textsOf(message, rule) } : undefined;
  const reading = readingOf(message, long, rule.jsonInForm);
  const found = firstText(rule.dedupe, reading);
  const fits = found !== undefined && isPrintable(found, dedupeKeyCharactersMax);
  return {
    key: fits ? found : undefined,
    oversizedKey: fits ? undefined : found,
    type: typeOf(rule.type, reading),
    challenge:
      rule.challenge === undefined || isOpen(rule.challenge)
        ? undefined
        : signedChallenge(rule.challenge, reading.jsonValue),
  };
}

/**
 * Returns the fields that are stored with a message, by lower-case name; repeated fields are joined with commas (RFC
 * 9110 §5.3).
 */
export function keptFields(rule: FactsRule, message: Message): Readonly<Record<string, string>> {
  const kept: Record<string, string> = {};
  for (const name of rule.keep) {
    const value = message.header(name);
    if (value !== undefined) kept[name] = typeof value === 'string' ? value : value.join(', ');
  }
  return kept;
}

/** Formats a key from a digest; every receiver makes the same. @param digest SHA-256 in base64url */
export function digestKey(digest: string): string {
  return `sha256:${digest}`;
}

/** Returns Content-Type or Content-Encoding for storage; null: absent or repeated. */
export function contentFieldOf(message: Message, name: 'content-type' | 'content-encoding'): string | null {
  return fieldText(message, name) ?? null;
}

/** Where the rule looks into JSON. */
function pointersOf({ dedupe, type, challenge }: FactsRule): readonly string[] {
  const places = [...dedupe, ...type.flat()];
  const inChallenge = challenge === undefined || isOpen(challenge) ? [] : [challenge.json, challenge.echo];
  return [...new Set([...places.flatMap((place) => ('json' in place ? [place.json] : [])), ...inChallenge])];
}

function* textsOf(message: Message, { jsonInForm, ...rule }: FactsRule): Generator<undefined, JsonTexts> {
  const pointers = pointersOf(rule);
  if (pointers.length === 0 || !(yield* isUtf8(message.body))) return undefined;
  const inForm = jsonInForm !== undefined && mediaTypeOf(message) === formType ? jsonInForm : undefined;
  if (inForm === undefined) return yield* jsonTexts(message.body, pointers);
  const octets = yield* formOctets(message.body, inForm);
  return octets === undefined || !(yield* isUtf8(octets)) ? undefined : yield* jsonTexts(octets, pointers);
}

/**
 * Reads members of the body before its signature is verified, for senders whose signature is among them. Nothing is found in a body of more
 * than 256 KiB.
 */
export function memberReader(message: Message): (pointer: string) => string | undefined {
  const isLong = message.body.length > parsedOctetsMax;
  const reading = readingOf(message, isLong ? { texts: undefined } : undefined);
  return reading.jsonText;
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

/** Returns true if the text is within the length and has only the characters from space to tilde. */
function isPrintable(text: string, charactersMax: number): boolean {
  if (text.length > charactersMax) return false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code > 0x7e) return false;
  }
  return true;
}

/*
 * Reads texts at places of a message (`Place` of presets.ts), for any body: its JSON is parsed once, on first use, or if it is
 * long, looked through for what the rule names; a form is read only if the Content-Type says so; nothing throws.
 */

declare const TextDecoder: {
  new (
    label: 'utf-8',
    options: { readonly fatal: true },
  ): { decode(octets?: Uint8Array, options?: { readonly stream: boolean }): string };
};

/** Shared: it keeps no state between bodies. */
const utf8 = new TextDecoder('utf-8', { fatal: true });

const formType = 'application/x-www-form-urlencoded';

type BodyReading = {
  textAt(place: Place): string | undefined;
  /** Returns the text at a JSON Pointer into the body. */
  jsonText(pointer: string): string | undefined;
  /** Returns it as the number that it is, if it is one. */
  jsonValue(pointer: string): string | number | undefined;
};

/** The values of longer JSON may take more memory than a program has. */
const parsedOctetsMax = 256 * 1024;

/** @param long what the rule looks for in a long body @param inForm the field of a form that holds the JSON */
function readingOf(
  message: Message,
  long: { readonly texts: JsonTexts } | undefined,
  inForm?: string | undefined,
): BodyReading {
  let content: { readonly text: string | undefined } | undefined;
  let json: { readonly value: unknown } | undefined;
  let isForm: boolean | undefined;

  function contentText(): string | undefined {
    content ??= { text: decodedText(message.body) };
    return content.text;
  }

  function jsonValue(pointer: string): string | number | undefined {
    if (long !== undefined) return scalarOf(parsedJson(long.texts?.get(pointer)));
    json ??= { value: parsedJson(jsonContent()) };
    return scalarOf(valueAt(json.value, pointer));
  }

  /** The body, or the field of a form that holds the JSON. */
  function jsonContent(): string | undefined {
    const field = inForm === undefined ? undefined : formText(inForm);
    return field ?? contentText();
  }

  function jsonText(pointer: string): string | undefined {
    const value = jsonValue(pointer);
    return value === undefined ? undefined : String(value);
  }

  function formText(name: string): string | undefined {
    isForm ??= mediaTypeOf(message) === formType;
    const text = isForm ? contentText() : undefined;
    return text === undefined ? undefined : textOf(formField(text, name));
  }

  return {
    jsonText,
    jsonValue,
    textAt(place) {
      if ('header' in place) return fieldText(message, place.header);
      return 'json' in place ? jsonText(place.json) : formText(place.form);
    },
  };
}

/** Undefined if the body is not valid UTF-8: replacement characters would make different ids equal. */
function decodedText(body: Uint8Array): string | undefined {
  try {
    return utf8.decode(body);
  } catch {
    return undefined;
  }
}

/** Decodes in pieces, none of which is kept. */
function* isUtf8(body: Uint8Array): Generator<undefined, boolean> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  try {
    for (let at = 0; at < body.length; at += parsedOctetsMax) {
      decoder.decode(body.subarray(at, at + parsedOctetsMax), { stream: true });
      yield;
    }
    decoder.decode();
    return true;
  } catch {
    return false;
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
 * Accepts non-empty strings and safe integers. A number beyond 2^53 or with a fraction may have been rounded by the
 * parser, and a lone surrogate is lost in encoding: two ids would become one, and a message would be dropped as a
 * repetition of another.
 */
function scalarOf(value: unknown): string | number | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? value : undefined;
  return textOf(value);
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' && value.isWellFormed() ? value : undefined;
}

/*
 * Reads one field of application/x-www-form-urlencoded content. Stricter than the form parsers of browsers: invalid
 * percent-encoding or UTF-8 yields no text, where they insert U+FFFD, which would make different ids equal.
 */

/** Returns the first value with this name; undefined if it is absent or invalid. */
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
    // A stray percent sign, or octets that are not UTF-8.
    return undefined;
  }
}

/** The octets of the first value with this name in a long form; undefined if it is absent or invalid. */
function* formOctets(body: Uint8Array, name: string): Generator<undefined, Uint8Array | undefined> {
  const start = octetsOf(`${name}=`);
  let from = 0;
  while (!start.every((octet, index) => body[from + index] === octet)) {
    from = body.indexOf(ampersand, from) + 1;
    if (from === 0) return undefined;
    yield;
  }
  const found = body.indexOf(ampersand, from);
  const end = found < 0 ? body.length : found;
  const octets = new Uint8Array(end - from - start.length);
  let length = 0;
  for (let at = from + start.length; at < end; at += 1) {
    const octet = body[at] ?? 0;
    if (octet === percent) {
      const [decoded] = decodeHexOfAny(String.fromCharCode(...body.subarray(at + 1, at + 3))) ?? [];
      if (decoded === undefined) return undefined;
      octets[length] = decoded;
      at += 2;
    } else octets[length] = octet === plus ? space : octet;
    length += 1;
    if (length % formStepOctets === 0) yield;
  }
  return octets.subarray(0, length);
}

const [ampersand, percent, plus, space] = [0x26, 0x25, 0x2b, 0x20];
/** Some 5 ms of escapes. */
const formStepOctets = 32 * 1024;

/*
 * Evaluates a JSON Pointer (RFC 6901): finds only members of the JSON text, never inherited ones. An invalid pointer,
 * or one without a target, finds nothing.
 */

/** @returns undefined if there is no value */
export function valueAt(json: unknown, pointer: string): unknown {
  if (pointer === '') return json;
  if (!pointer.startsWith('/')) return undefined;
  let value = json;
  for (const token of pointer.slice(1).split('/')) {
    value = memberOf(value, token.includes('~') ? unescapedToken(token) : token);
    if (value === undefined) return undefined;
  }
  return value;
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  // `length` is an own property of an array, but not an element.
  if (Array.isArray(value) && name === 'length') return undefined;
  return (value as Readonly<Record<string, unknown>>)[name];
}
