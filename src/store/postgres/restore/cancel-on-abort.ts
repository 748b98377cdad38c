/** Ends a statement that the server is at. A session that is busy takes no other word, so another one is opened for it. */
import type { Address } from '../connection/address.ts';
import { openSession, type Session } from '../schema/session.ts';

/** @returns what takes the listener away */
export async function cancelOnAbort(
  session: Session,
  address: Address,
  connectTimeoutMs: number,
  signal: AbortSignal,
): Promise<() => void> {
  // Asked of the server: behind a pooler the number that the connection began with is not its own.
  const [row] = await session.rows('SELECT pg_backend_pid()');
  const cancel = async (): Promise<void> => {
    const other = await openSession(address, 'comity restore', connectTimeoutMs);
    await other.rows('SELECT pg_cancel_backend($1)', [Number(row?.[0])]);
    await other.end();
  };
  // Where no other session comes about, the end of the process ends this one.
  const listener = (): void => void cancel().catch(ignore);
  signal.addEventListener('abort', listener, { once: true });
  return () => signal.removeEventListener('abort', listener);
}

function ignore(): void {
  // The caller's own failure is what is told.
}
