/**
 * Drains a listener: no acknowledged request is lost, and none under way is reset.
 *
 * 1. The ports close to new connections; streams end, WebSockets close with 1001; tunnels have until the bound.
 * 2. Requests under way, and those that still arrive on open connections, are served, the last response on each
 *   connection with `Connection: close` (serving them loses less than answering 503).
 * 3. Idle connections are closed: at once if the last response is older than `drainIdleMs`, otherwise after that time, as
 *   a request may be on its way. Then every HTTP/2 connection gets a GOAWAY with its last stream (RFC 9113 §6.8), so that a
 *   busy client cannot delay the end.
 * 4. At the bound, all remaining connections are destroyed.
 */
import type { Server } from 'node:net';
import type { Connection } from './connection.ts';
import type { Context } from './context.ts';
import { closeSocket } from './front/port.ts';

const lookEveryMs = 10;
/** RFC 6455 §7.4.1: going away. */
const goingAway = 1001;

type Draining = {
  readonly boundMs: number;
  /** The requests of this process (web-exchange.ts). */
  readonly inProcess: Pick<Connection, 'underWay'>;
};

/**
 * Drains. Without ports, as in a mounted handler, there are only streams, WebSockets, tunnels and requests of this process to end.
 * @returns the number of connections that were cut at the bound
 */
export async function drain(
  context: Context,
  ports: readonly Server[],
  { boundMs, inProcess }: Draining,
): Promise<number> {
  const startedMs = context.monotonic();
  const before = new Map<Connection, number>();
  for (const connection of context.connections) before.set(connection, connection.socket.bytesRead);
  context.draining = true;
  const closed = [...ports.map(closeSocket), context.proxy?.drain(boundMs)];
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
    } else
      afterReading(context, (readMs) => {
        closeIdle(context, readMs - startedMs, readMs, before);
      });
    if (over || (context.sockets.size === 0 && inProcess.underWay === 0)) onSocketsClosed();
  };
  look();
  const timer = setInterval(look, lookEveryMs);
  await Promise.all([...closed, socketsClosed]);
  clearInterval(timer);
  return cut;
}

/**
 * Calls back after a whole poll for octets, so that a request that came before the close is answered: this turn's poll may be over
 * already, and a timer runs before it. It does not if the turn of that poll was long, because octets may have arrived in it; the load
 * ends with the connections, and with it long turns. A request that comes at the moment of the close is lost: its client sees a
 * connection that ended without a response, and may retry (RFC 9112 §9.3.1, §9.6). So is one on a connection that the kernel holds and
 * the loop, which accepts a few each turn, has not accepted when the port closes.
 */
function afterReading({ monotonic }: Context, act: (nowMs: number) => void): void {
  setImmediate(() => {
    const polledMs = monotonic();
    setImmediate(() => {
      const nowMs = monotonic();
      if (nowMs - polledMs <= lookEveryMs) act(nowMs);
    });
  });
}

function closeIdle(
  context: Context,
  elapsedMs: number,
  nowMs: number,
  before: Map<Connection, number>,
): void {
  const { drainIdleMs } = context.limits;
  // node's own `closeIdleConnections` takes a response that is still being flushed for an idle connection.
  for (const connection of context.connections) {
    const idle = isIdle(connection, nowMs - drainIdleMs, before);
    if (connection.multiplexed === undefined) {
      if (idle) connection.socket.destroySoon();
    } else if (idle || elapsedMs >= drainIdleMs) connection.multiplexed.close();
  }
}

/** Settled, quiet since before the given time, and not in the middle of sending a request. */
function isIdle(connection: Connection, quietSinceMs: number, before: Map<Connection, number>): boolean {
  if (!connection.settled || connection.activeMs > quietSinceMs) return false;
  // Over HTTP/2, many received octets begin no request, such as acknowledgements.
  if (connection.multiplexed !== undefined) return true;
  const bytesBefore = before.get(connection);
  return bytesBefore === undefined || connection.closing || connection.socket.bytesRead === bytesBefore;
}
