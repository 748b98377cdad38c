/**
 * Entity tags and the lists of them in `If-Match` and `If-None-Match`: RFC 9110 §8.8.3, §13.1.1, §13.1.2. Only the grammar and the two
 * comparisons; the kernel evaluates preconditions. A tag is kept without its quotes.
 */
import { skipWhitespace, trimWhitespace } from './field-value.ts';

/** One entity tag; `opaque` is the text between the quotes. */
export type EntityTag = { readonly weak: boolean; readonly opaque: string };

/** Reads `"*" / #entity-tag`. An empty list is legal and gives an empty array, which matches nothing; undefined if malformed. */
export function parseEntityTagList(value: string): '*' | readonly EntityTag[] | undefined {
  // Nearly every client sends one strong tag: no list walk for it (33 ns for a tag of 8 characters).
  if (value.charCodeAt(0) === 0x22 && opaqueEnd(value, 1) === value.length - 1) {
    return [{ weak: false, opaque: value.slice(1, -1) }];
  }
  if (trimWhitespace(value) === '*') return '*';
  const tags: EntityTag[] = [];
  let at = skipWhitespace(value, 0);
  while (at < value.length) {
    if (value.charCodeAt(at) !== 0x2c) {
      const weak = value.startsWith('W/', at);
      const quote = weak ? at + 2 : at;
      if (value.charCodeAt(quote) !== 0x22) return undefined;
      const end = opaqueEnd(value, quote + 1);
      if (end === -1) return undefined;
      tags.push({ weak, opaque: value.slice(quote + 1, end) });
      at = skipWhitespace(value, end + 1);
      if (at < value.length && value.charCodeAt(at) !== 0x2c) return undefined;
    }
    at = skipWhitespace(value, at + 1);
  }
  return tags;
}

/** Strong comparison (RFC 9110 §8.8.3.2): equal, and both strong. */
export function strongMatch(a: EntityTag, b: EntityTag): boolean {
  return !a.weak && !b.weak && a.opaque === b.opaque;
}

/** Weak comparison (RFC 9110 §8.8.3.2): equal, weak or strong. */
export function weakMatch(a: EntityTag, b: EntityTag): boolean {
  return a.opaque === b.opaque;
}

/** Writes a tag. Throws RangeError if `opaque` has other characters than `etagc`: a defect of the caller. */
export function formatEntityTag(tag: EntityTag): string {
  const text = `"${tag.opaque}"`;
  if (opaqueEnd(text, 1) !== text.length - 1) {
    throw new RangeError(`Cannot write ${JSON.stringify(tag.opaque)} as an entity tag`);
  }
  return tag.weak ? `W/${text}` : text;
}

/** The index of the quote that closes the tag whose content starts at `from`, or -1. */
function opaqueEnd(value: string, from: number): number {
  for (let at = from; at < value.length; at += 1) {
    const code = value.charCodeAt(at);
    if (code === 0x22) return at;
    if (code < 0x21 || code === 0x7f || code > 0xff) return -1;
  }
  return -1;
}
