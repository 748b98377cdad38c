/**
 * Ranges of octets: `Range` (RFC 9110 §14.1.2, §14.2) to the extents of a representation, and `Content-Range` (RFC 9110 §14.4) from them. What a
 * server may ignore is ignored: another unit, a value that does not follow the grammar, and more parts than `partsMax`.
 */
import { skipWhitespace, trimWhitespace } from './field-value.ts';
import { isDigitCode } from './uri.ts';

/** Octets from `first` up to but not including `end`. */
export type Extent = { readonly first: number; readonly end: number };

/** Parts of one response, after ranges that overlap or adjoin are joined; a request for more gets the whole (RFC 9110 §14.2). */
export const partsMax = 16;

const unit = 'bytes=';

/**
 * The extents that a Range field selects, in its order; each group of ranges that overlap or adjoin is one, at the place of its first.
 * Empty: none lies within the representation (416). Undefined: the field is ignored.
 * @param bytes length of the representation
 */
export function selectExtents(range: string, bytes: number): readonly Extent[] | undefined {
  const specs = parseRange(range);
  if (specs === undefined) return undefined;
  const extents = specs.flatMap((spec) => extentOf(spec, bytes) ?? []);
  const [only] = extents;
  const joined = only === undefined || extents.length === 1 ? extents : joinExtents(extents);
  return joined.length > partsMax ? undefined : joined;
}

/** `first`: undefined for the last `last` octets. `last`: included; undefined up to the end. */
type Spec = { readonly first: number | undefined; readonly last: number | undefined };

function parseRange(value: string): readonly Spec[] | undefined {
  const text = trimWhitespace(value);
  if (text.slice(0, unit.length).toLowerCase() !== unit) return undefined;
  const specs: Spec[] = [];
  let at = skipWhitespace(text, unit.length);
  while (at < text.length) {
    // Empty elements of a list are passed over (RFC 9110 §5.6.1.2).
    if (text.charCodeAt(at) !== 0x2c) {
      const hyphen = digitsEnd(text, at);
      if (text.charCodeAt(hyphen) !== 0x2d) return undefined;
      const end = digitsEnd(text, hyphen + 1);
      const first = numberIn(text, at, hyphen);
      const last = numberIn(text, hyphen + 1, end);
      if (first === undefined && last === undefined) return undefined;
      if (first !== undefined && last !== undefined && last < first) return undefined;
      specs.push({ first, last });
      at = skipWhitespace(text, end);
      if (at < text.length && text.charCodeAt(at) !== 0x2c) return undefined;
    }
    at = skipWhitespace(text, at + 1);
  }
  return specs.length === 0 ? undefined : specs;
}

function digitsEnd(text: string, from: number): number {
  let at = from;
  while (at < text.length && isDigitCode(text.charCodeAt(at))) at += 1;
  return at;
}

/** Of any length: beyond the doubles it is Infinity, which is behind every representation. */
function numberIn(text: string, start: number, end: number): number | undefined {
  return start === end ? undefined : Number(text.slice(start, end));
}

function extentOf({ first, last }: Spec, bytes: number): Extent | undefined {
  if (first === undefined) {
    // A suffix that is longer than the representation is all of it (RFC 9110 §14.1.2).
    const start = Math.max(0, bytes - (last ?? 0));
    return start < bytes ? { first: start, end: bytes } : undefined;
  }
  if (first >= bytes) return undefined;
  return { first, end: last === undefined ? bytes : Math.min(last + 1, bytes) };
}

function joinExtents(extents: readonly Extent[]): readonly Extent[] {
  const sorted = extents
    .map(({ first, end }, place) => ({ first, end, place }))
    .sort((one, other) => one.first - other.first);
  const joined: { first: number; end: number; place: number }[] = [];
  for (const extent of sorted) {
    const before = joined.at(-1);
    if (before === undefined || extent.first > before.end) joined.push(extent);
    else {
      before.end = Math.max(before.end, extent.end);
      before.place = Math.min(before.place, extent.place);
    }
  }
  return joined.sort((one, other) => one.place - other.place).map(({ first, end }) => ({ first, end }));
}

/** Writes Content-Range of a part. */
export function formatContentRange({ first, end }: Extent, bytes: number): string {
  return `bytes ${first}-${end - 1}/${bytes}`;
}

/** Writes Content-Range of a 416, which says the length. */
export function formatUnsatisfiedRange(bytes: number): string {
  return `bytes */${bytes}`;
}

const wholeRange = /^bytes +0-(\d+)\/(\d+)$/i;

/** True if a Content-Range of a request says that its content, of so many octets, is the whole: as `curl -C - -T` writes it. */
export function isWholeContentRange(value: string, contentBytes: number): boolean {
  const [, last = '', bytes = ''] = wholeRange.exec(value) ?? [];
  return last !== '' && Number(bytes) === contentBytes && Number(last) === contentBytes - 1;
}
