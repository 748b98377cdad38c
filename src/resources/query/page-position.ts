/** `limit`, `page` and `cursor`: how much is asked for, and from where on. */
import { type AskedPosition, pageMax } from './asked.ts';
import { cap, type FaultList, type Place } from './faults.ts';

const start: AskedPosition = { from: 'start' };

/**
 * Checks a number that must be within 1 and `max`.
 * @param shown the number as the client wrote it, quoted where it is text
 */
export function checkRange(
  name: string,
  value: number | undefined,
  max: number,
  into: { readonly shown: string; readonly faults: FaultList; readonly place: Place },
): number | undefined {
  if (value !== undefined && Number.isInteger(value) && value >= 1 && value <= max) return value;
  into.faults.unprocessable(
    `${name} must be an integer from 1 to ${max}, not ${cap(into.shown)}`,
    into.place,
  );
  return undefined;
}

export function checkPage(
  value: number | undefined,
  into: { readonly shown: string; readonly faults: FaultList; readonly place: Place },
): number | undefined {
  return checkRange('page', value, pageMax, into);
}

/** A cursor decides where a page starts; a page number beside it, as our own links write it, only labels. */
export function positionOf(
  cursor: string | undefined,
  page: number | undefined,
  into: { readonly faults: FaultList; readonly place: Place },
): AskedPosition {
  if (cursor === '') into.faults.malformed('cursor is empty; use nextCursor of a page', into.place);
  if (cursor !== undefined) return { from: 'cursor', cursor };
  // The first page is the start: the same plan, and the same cached answer.
  return page === undefined || page === 1 ? start : { from: 'page', page };
}
