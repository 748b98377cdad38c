/**
 * The end of a listener, so that nothing acknowledged is lost and nothing under way is reset:
 *
 *   1. the ports are closed to new connections; streams are ended, WebSockets closed with 1001; tunnels have until
 *      the bound;
 *   2. requests under way, and those that still come on open connections, are answered as ever; the last answer on
 *      each connection carries `Connection: close` (serving them loses less than refusing them with 503 would);
 *   3. connections that owe nothing are closed: at once where the last answer is older than `drainIdleMs`, otherwise
 *      after that time, because a request may already be on its way; after the same time every HTTP/2 connection is
 *      told by GOAWAY which streams were its last (RFC 9113 §6.8), so that a busy client cannot put off the end;
 *   4. at the bound, what is left is destroyed.
 *
 * node's own `closeIdleConnections` is not used: it takes an answer that is still being flushed for an idle connection.
 */
import type { Server } from 'node:net';
import type { Connection } from './connection.ts';
import type { Context } from './context.ts';

const lookEveryMs = 10;
/** RFC 6455 §7.4.1: going away. */
const goingAway = 1001;

/**
 * Without ports, as in a mounted handler, there are no connections to look after, but streams, WebSockets and tunnels.
 * Resolves with the number of connections that were cut off at the bound.
 */
export async function drain(context: Context, ports: readonly Server[], boundMs: number): Promise<number> {
  const startedMs = context.monotonic();
  const before = new Map<Connection, number>();
  for (const connection of context.connections) before.set(connection, connection.socket.bytesRead);
  context.draining = true;
  const closed = [...ports.map(closePort), context.proxy?.drain(boundMs)];
  for (const stream of context.streams) stream.close();
  for (const socket of context.sockets) socket.close(goingAway, 'server is going away');
  let cut = 0;
  const { promise: socketsClosed, resolve: onSocketsClosed } = Promise.withResolvers<void>();
  const look = () => {
    const nowMs = context.monotonic();
    const over = nowMs - startedMs >= boundMs;
    if (over) {
      cut += context.connections.size;
      for (const socket of context.sockets) socket.terminate();
      for (const connection of context.connections) connection.socket.destroy();
    } else closeIdle(context, nowMs - startedMs, nowMs, before);
    if (over || context.sockets.size === 0) onSocketsClosed();
  };
  look();
  const timer = setInterval(look, lookEveryMs);
  await Promise.all([...closed, socketsClosed]);
  clearInterval(timer);
  return cut;
}

function closePort(port: Server): Promise<void> {
  return new Promise((resolve) => port.close(() => resolve()));
}

function closeIdle(
  context: Context,
  elapsedMs: number,
  nowMs: number,
  before: Map<Connection, number>,
): void {
  const { drainIdleMs } = context.limits;
  for (const connection of context.connections) {
    const idle = isIdle(connection, nowMs - drainIdleMs, before);
    if (connection.multiplexed === undefined) {
      if (idle) connection.socket.destroySoon();
    } else if (idle || elapsedMs >= drainIdleMs) connection.multiplexed.close();
  }
}

/** Settled, quiet since before the time given, and not sending the beginning of a further request. */
function isIdle(connection: Connection, quietSinceMs: number, before: Map<Connection, number>): boolean {
  if (!connection.settled || connection.activeMs > quietSinceMs) return false;
  // Over HTTP/2 much comes that begins no request, such as an acknowledgement.
  if (connection.multiplexed !== undefined) return true;
  const bytesBefore = before.get(connection);
  return bytesBefore === undefined || connection.closing || connection.socket.bytesRead === bytesBefore;
}
