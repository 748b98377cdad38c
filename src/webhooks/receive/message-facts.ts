/**
 * What a sender's rule says of a message that was verified (§4.14, §6.3): what tells it apart, its type, and whether it is a challenge. It is
 * pure and synchronous, does not throw whatever the body is, and makes no digest: it says of what one has to be made.
 */
import type { Challenge, Place, SenderRule } from '../presets/sender-rule.ts';
import { type BodyReading, readingOf } from './body-reading.ts';
import { fieldText, type Message } from './message.ts';

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
