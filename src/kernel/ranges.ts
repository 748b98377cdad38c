/**
 * Ranges of a representation (RFC 9110 §14): what a Range selects of it, and the content of the 206, which for several parts is
 * multipart/byteranges (RFC 9110 §14.6).
 */
import { type ContentFile, isFile } from '../http/message.ts';
import type { RequestFields } from '../http/request-fields.ts';
import { type Extent, formatContentRange, selectExtents } from '../http/syntax/range.ts';
import { isSameRange } from './preconditions.ts';
import type { Representation } from './resource.ts';

export type Selected = {
  readonly representation: Representation;
  /** Empty: Range selects nothing. Undefined: it does not apply. */
  readonly extents: readonly Extent[] | undefined;
};

/** @param now milliseconds since the epoch */
export function selectRanges(
  { range = '', ifRange }: RequestFields,
  representation: Representation,
  now: number,
): Selected {
  const octets = rangedOctets(representation);
  const applies = octets !== undefined && isSameRange(ifRange, representation.validators, now);
  return { representation, extents: applies ? selectExtents(range, lengthOf(octets)) : undefined };
}

type Octets = Uint8Array | ContentFile;

/** The content of a representation that is served in ranges; undefined for any other. */
export function rangedOctets({ content, ranges }: Representation): Octets | undefined {
  if (typeof content === 'string') return undefined;
  if (isFile(content)) return content;
  return ranges === true && content instanceof Uint8Array ? content : undefined;
}

export function lengthOf(octets: Octets): number {
  return isFile(octets) ? octets.bytes : octets.length;
}

/** One part of the octets. */
export function partOf(octets: Octets, { first, end }: Extent): Octets {
  if (!isFile(octets)) return octets.subarray(first, end);
  const bytes = end - first;
  return { bytes, read: (from, to) => octets.read(first + from, first + to) };
}

/**
 * The content of multipart/byteranges.
 * @param boundary a text that the octets do not contain
 */
export function partsOf(
  octets: Octets,
  extents: readonly Extent[],
  { boundary, mediaType }: { readonly boundary: string; readonly mediaType: string },
): Octets {
  const length = lengthOf(octets);
  const heads = extents.map((extent, index) => {
    const start = index === 0 ? '' : '\r\n';
    const range = formatContentRange(extent, length);
    return Buffer.from(
      `${start}--${boundary}\r\nContent-Type: ${mediaType}\r\nContent-Range: ${range}\r\n\r\n`,
      'latin1',
    );
  });
  const close = Buffer.from(`\r\n--${boundary}--\r\n`);
  if (!isFile(octets)) {
    const parts = extents.flatMap(({ first, end }, index) => [
      heads[index] ?? close,
      octets.subarray(first, end),
    ]);
    return Buffer.concat([...parts, close]);
  }
  const head = heads.reduce((sum, { length: headBytes }) => sum + headBytes, close.length);
  const bytes = extents.reduce((sum, { first, end }) => sum + end - first, head);
  // Nothing selects a range of it again, so it is always read whole.
  return { bytes, read: async () => piecesOf(octets, extents, { heads, close }) };
}

async function* piecesOf(
  file: ContentFile,
  extents: readonly Extent[],
  { heads, close }: { readonly heads: readonly Uint8Array[]; readonly close: Uint8Array },
): AsyncGenerator<Uint8Array> {
  const [{ first, end } = { first: 0, end: 0 }, ...further] = extents;
  let part = 0;
  let left = 0;
  for await (const piece of await file.read(first, end, further)) {
    if (left === 0) {
      const extent = extents[part];
      if (extent === undefined) throw new Error('a file has more octets than its ranges');
      yield heads[part] ?? close;
      left = extent.end - extent.first;
      part += 1;
    }
    left -= piece.length;
    yield piece;
  }
  yield close;
}
