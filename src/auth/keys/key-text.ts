/**
 * The text of an API key: `sk_` or `pk_` and 256 random bits in base64url. Nothing of the key's row stands in it, so one that
 * leaks tells nothing besides. It is kept only as its SHA-256: with so many random bits a slow hash would add nothing.
 */
import { hash } from 'node:crypto';

/** Secret keys are for servers; publishable ones may stand in a page, so they can never write. */
export type KeyKind = 'secret' | 'publishable';

const marks: Readonly<Record<KeyKind, string>> = { secret: 'sk_', publishable: 'pk_' };
const markCharacters = 3;
const randomBytes = 32;
const randomCharacters = 43;
const shownCharacters = 4;
const base64url = /^[A-Za-z0-9_-]+$/;

/** @param random that many octets of good randomness */
export function makeKey(kind: KeyKind, random: (count: number) => Buffer): string {
  return `${marks[kind]}${random(randomBytes).toString('base64url')}`;
}

/** What kind of key the text may be; undefined: it is no key that was ever made here. */
export function kindOfKey(text: string): KeyKind | undefined {
  if (text.length !== markCharacters + randomCharacters) return undefined;
  const kind = text.startsWith(marks.secret)
    ? 'secret'
    : text.startsWith(marks.publishable)
      ? 'publishable'
      : undefined;
  return kind !== undefined && base64url.test(text.slice(markCharacters)) ? kind : undefined;
}

/** What a key is looked up by. */
export function digestOfKey(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}

/** What people may see of a key: 24 of its 256 random bits. */
export function prefixOfKey(text: string): string {
  return text.slice(0, markCharacters + shownCharacters);
}
