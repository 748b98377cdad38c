/**
 * Entity tags of representations (RFC 9110 §8.8.3). The tag of a member is its `rev`; a content coding adds a
 * suffix, because a strong tag must differ between codings, and conditions accept any coding of the current state.
 */
import { formatEntityTag } from '../http/syntax/entity-tag.ts';

/** Content codings the server applies, best first for equal weights. */
export const codings = ['br', 'gzip', 'identity'] as const;

export type Coding = (typeof codings)[number];

const suffixes: readonly string[] = codings
  .filter((coding) => coding !== 'identity')
  .map((coding) => `-${coding}`);

/** The ETag field value of a representation under a coding. */
export function entityTag(tag: string, coding: Coding): string {
  return formatEntityTag({ weak: false, opaque: coding === 'identity' ? tag : `${tag}-${coding}` });
}

/** Whether an opaque tag names this state in any coding. */
export function namesState(opaque: string, tag: string): boolean {
  if (opaque === tag) return true;
  if (!opaque.startsWith(tag)) return false;
  return suffixes.includes(opaque.slice(tag.length));
}
