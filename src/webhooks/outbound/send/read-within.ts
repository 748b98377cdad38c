/** Reads the event of an attempt within the memory that its party has for what it is being sent. */
import type { MemoryLease } from '../../../memory/budget.ts';
import type { EventSource, SentEvent } from './event-source.ts';

/** The text itself, one octet a character or two, and the body. */
const octetsPerCharacter = 3;

/**
 * The event, once the lease has room for it. While it waits for room nothing is held, and the event is read again; a drain ends the wait. The wait is
 * behind attempts of the same party: of another it takes nothing.
 * @throws StoreUnavailable
 */
export async function readWithin(
  lease: MemoryLease,
  events: Pick<EventSource, 'read'>,
  eventId: string,
  signal: AbortSignal,
): Promise<SentEvent | undefined> {
  const read = events.read(eventId);
  const event = read instanceof Promise ? await read : read;
  if (event === undefined) return undefined;
  const octets = octetsPerCharacter * event.doc.length;
  if (lease.grow(octets)) return event;
  await room(lease, octets, signal);
  return await events.read(eventId);
}

function room(lease: MemoryLease, octets: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      signal.removeEventListener('abort', go);
      resolve();
    };
    if (signal.aborted) return resolve();
    signal.addEventListener('abort', go);
    lease.whenRoom(octets, go);
  });
}
