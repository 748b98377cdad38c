/** A place in the event log as a text: `{rev} {id}`. */
import type { LogPosition } from '../../../store/store.ts';

export type LogPlace = string;

export function formatLogPlace({ rev, id }: LogPosition): LogPlace {
  return `${rev} ${id}`;
}

export function readLogPlace(place: LogPlace): LogPosition {
  const space = place.indexOf(' ');
  return { rev: Number(place.slice(0, space)), id: place.slice(space + 1) };
}

/** Whether the first lies behind the second in (rev, id) order. */
export function isBeyond(one: LogPosition, other: LogPosition): boolean {
  return one.rev === other.rev ? one.id > other.id : one.rev > other.rev;
}
