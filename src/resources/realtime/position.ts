/** Places in the event log, in order: by revision, and within a unit by id, compared by code point as stores do. */
import { compareText } from '../../model/matches.ts';
import type { LogPosition } from '../../store/store.ts';

/** Before every event. */
export const beginning: LogPosition = { rev: 0, id: '' };

/** Negative, 0 or positive. */
export function comparePositions(one: LogPosition, other: LogPosition): number {
  return one.rev === other.rev ? compareText(one.id, other.id) : one.rev - other.rev;
}

export function isAfter(one: LogPosition, other: LogPosition): boolean {
  return comparePositions(one, other) > 0;
}

export function laterOf(one: LogPosition, other: LogPosition): LogPosition {
  return isAfter(one, other) ? one : other;
}
