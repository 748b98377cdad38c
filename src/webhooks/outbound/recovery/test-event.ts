/**
 * Events that try out one endpoint: sent to it alone, whatever its patterns, and to no other by a recovery. Their ids say so, to receivers
 * as well.
 */
import type { EventEntry } from '../../../store/store.ts';

const prefix = 'evt_test_';

/** @param newId without a prefix */
export function testEventId(newId: () => string): string {
  return `${prefix}${newId()}`;
}

/** A posted event may have taken such an id, but then it says that it is a test. */
export function isTestEvent({ id }: Pick<EventEntry, 'id'>): boolean {
  return id.startsWith(prefix);
}
