/**
 * Entity tags of representations (RFC 9110 §8.8.3). The tag of a member is its `rev`; a content coding adds a
 * suffix, because a strong tag must differ between codings, and conditions accept any coding of the current state.
 */
import { formatEntityTag } from '../http/syntax/entity-tag.ts';

/** Content codings the server applies, best first for equal weights. */
export const codings = ['br', 'gzip', 'identity'] as const;

export type Coding = (typeof codings)[number];

/** The ETag field value of a representation under a coding. */
export function entityTag(tag: string, coding: Coding): string {
  return formatEntityTag({ weak: false, opaque: coding === 'identity' ? tag : `${tag}-${coding}` });
}

/** The coding of the representation that an opaque tag names; undefined when it names another state. */
export function codingNamed(opaque: string, tag: string): Coding | undefined {
  if (opaque === tag) return 'identity';
  if (!opaque.startsWith(tag)) return undefined;
  return codings.find((coding) => coding !== 'identity' && opaque.slice(tag.length) === `-${coding}`);
}
