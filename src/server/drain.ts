/**
 * The end of a listener, so that nothing acknowledged is lost and nothing under way is reset:
 *
 *   1. the port is closed to new connections; streams are ended;
 *   2. requests under way, and those that still come on open connections, are answered as ever; the last answer on
 *      each connection carries `Connection: close` (serving them loses less than refusing them with 503 would);
 *   3. connections that owe nothing are closed: at once where the last answer is older than `drainIdleMs`, otherwise
 *      after that time, because a request may already be on its way;
 *   4. at the bound, what is left is destroyed.
 *
 * node's own `closeIdleConnections` is not used: it takes an answer that is still being flushed for an idle connection.
 */
import type { Server } from 'node:net';
import type { Connection } from './connection.ts';
import type { Context } from './context.ts';

const lookEveryMs = 10;

/** Resolves with the number of connections that were cut off at the bound. */
export async function drain(context: Context, port: Server, boundMs: number): Promise<number> {
  const startedMs = context.monotonic();
  const before = new Map<Connection, number>();
  for (const connection of context.connections) before.set(connection, connection.socket.bytesRead);
  context.draining = true;
  const { promise: closed, resolve: onClosed } = Promise.withResolvers<void>();
  port.close(() => onClosed());
  for (const stream of context.streams) stream.close();
  let cut = 0;
  const look = () => {
    const nowMs = context.monotonic();
    const over = nowMs - startedMs >= boundMs;
    if (over) cut += context.connections.size;
    for (const connection of context.connections) {
      if (over) connection.socket.destroy();
      else if (isIdle(connection, nowMs - context.limits.drainIdleMs, before))
        connection.socket.destroySoon();
    }
  };
  look();
  const timer = setInterval(look, lookEveryMs);
  await closed;
  clearInterval(timer);
  return cut;
}

/** Settled, quiet since before the time given, and not sending the beginning of a further request. */
function isIdle(connection: Connection, quietSinceMs: number, before: Map<Connection, number>): boolean {
  if (!connection.settled || connection.activeMs > quietSinceMs) return false;
  const bytesBefore = before.get(connection);
  return bytesBefore === undefined || connection.closing || connection.socket.bytesRead === bytesBefore;
}
