/**
 * Challenges (§4.14): requests that ask whether a receiver listens, signed or not, and their answers. Nothing of them is stored.
 */
import type { Challenge, OpenChallenge, Proof, SignedChallenge } from '../sender-rule.ts';
import { encodeBase64, encodeHex, octetsOf, sameOctets } from '../signature/octets.ts';

declare const URLSearchParams: { new (text: string): { get(name: string): string | null } };

/** Longest value that is returned; a message with a longer one is not a challenge, and is stored. */
export const challengeCharactersMax = 4096;

/** An answer whose proof, if any, is not made yet. */
export type ChallengeAnswer = {
  /** The JSON member with the value; undefined: none has it. */
  readonly name: string | undefined;
  readonly value: string | number;
  readonly proof: Proof | undefined;
  /** The field that brings the sender's secret, and returns it; undefined: the value is no secret. */
  readonly secretField?: string | undefined;
};

export type ChallengeContent = { readonly mediaType: string; readonly text: string };

/** @returns undefined if the message is no challenge, or wants a value back that is too long */
export function signedChallenge(
  { json, is, answer, echo, proof }: SignedChallenge,
  valueAt: (pointer: string) => string | number | undefined,
): ChallengeAnswer | undefined {
  const found = valueAt(json);
  if (found === undefined || String(found) !== is) return undefined;
  const value = valueAt(echo);
  if (value === undefined || String(value).length > challengeCharactersMax) return undefined;
  return { name: answer, value, proof };
}

export function isOpen(challenge: Challenge | undefined): challenge is OpenChallenge {
  return challenge !== undefined && !('json' in challenge);
}

/** Returns true if the sender brings its secret in a handshake. */
export function setsSecret(challenge: Challenge | undefined): boolean {
  return isOpen(challenge) && challenge.setsSecret === true;
}

/** A request as far as an open challenge depends on it. */
export type Opening = {
  readonly method: string;
  /** Undecoded, without its question mark. */
  readonly query: string | undefined;
  readonly header: (name: string) => string | readonly string[] | undefined;
  /** Any of them is the token of the challenge. */
  readonly tokens: () => readonly string[];
};

/**
 * Reads an open challenge.
 * @returns undefined if the request is none of the rule's; `forbidden`: its `token` is another one
 */
export function openChallenge(
  challenge: Challenge | undefined,
  { method, query, header, tokens }: Opening,
): ChallengeAnswer | 'forbidden' | undefined {
  if (!isOpen(challenge) || (challenge.method ?? 'GET') !== method) return undefined;
  const { answer, proof, token, setsSecret } = challenge;
  const parameters = new URLSearchParams(query ?? '');
  let value: unknown = '';
  if (challenge.query !== undefined) value = parameters.get(challenge.query);
  else if (challenge.header !== undefined) value = header(challenge.header);
  if (typeof value !== 'string' || value.length > challengeCharactersMax) return undefined;
  if (token !== undefined && !isOneOf(parameters.get(token), tokens())) return 'forbidden';
  return setsSecret === true
    ? { name: undefined, value, proof: undefined, secretField: challenge.header }
    : { name: answer, value, proof };
}

/** Compares in a time that depends on the lengths alone. */
export function isOneOf(given: string | null, tokens: readonly string[]): boolean {
  if (given === null || given === '') return false;
  const octets = octetsOf(given);
  let isFound = false;
  for (const token of tokens) if (sameOctets(octets, octetsOf(token))) isFound = true;
  return isFound;
}

/** @param proof the HMAC of the value, if the answer has a proof */
export function challengeContent(
  { name, value, proof }: ChallengeAnswer,
  mac: Uint8Array | undefined,
): ChallengeContent {
  if (name === undefined && proof === undefined)
    return { mediaType: 'text/plain; charset=utf-8', text: String(value) };
  const members: Record<string, string | number> = {};
  if (name !== undefined) members[name] = value;
  if (proof !== undefined && mac !== undefined)
    members[proof.name] = proof.prefix + (proof.encoding === 'hex' ? encodeHex(mac) : encodeBase64(mac));
  return { mediaType: 'application/json', text: JSON.stringify(members) };
}

/** The octets whose HMAC is the proof. */
export function provenOctets({ value }: ChallengeAnswer): Uint8Array {
  return octetsOf(String(value));
}
