/**
 * A look at every connection now and then, for what no event announces: an answer, event stream or WebSocket of which the client takes nothing, and
 * settled requests that an idle connection need not keep in memory.
 */
import type { Connection } from './connection.ts';
import type { Context } from './context.ts';

export function sweepConnections(context: Context): void {
  const { answerStallTimeoutMs, keepAliveTimeoutMs, headersTimeoutMs } = context.limits;
  // Octets that begin no request, such as empty lines (RFC 9112 §2.2), start the timers of node:http anew each time.
  const idleMsMax = keepAliveTimeoutMs + headersTimeoutMs;
  const nowMs = context.monotonic();
  for (const stream of context.streams) stream.sweep(nowMs);
  for (const socket of context.sockets) socket.sweep(nowMs);
  for (const connection of context.connections) {
    if (connection.multiplexed !== undefined) connection.multiplexed.sweep(nowMs);
    else if (connection.owesNothing && nowMs - connection.activeMs > idleMsMax)
      connection.socket.destroySoon();
    else if (connection.settled) connection.last = undefined;
    else if (!connection.streaming) watchStall(connection, answerStallTimeoutMs);
  }
}

/** A socket's own timer counts what the kernel took as progress, and node:http closes the socket when it fires. */
function watchStall({ socket }: Connection, answerStallTimeoutMs: number): void {
  const waiting = socket.writableLength > 0;
  if (waiting && socket.timeout !== answerStallTimeoutMs) socket.setTimeout(answerStallTimeoutMs);
  else if (!waiting && socket.timeout === answerStallTimeoutMs) socket.setTimeout(0);
}
