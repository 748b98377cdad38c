/**
 * `Last-Modified` of an answer (RFC 9110 §8.8.2.1): never later than the answer itself. A resource that another machine wrote, whose
 * clock goes ahead of ours, gets the time of the answer until ours has come that far.
 */
import type { Room } from '../room.ts';

/** @param modifiedAt milliseconds since the epoch */
export function lastModified(room: Pick<Room, 'clock' | 'formatDate'>, modifiedAt: number): string {
  return room.formatDate(Math.min(modifiedAt, room.clock()));
}
