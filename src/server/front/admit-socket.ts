/** What both ports do with a connection that comes: it is counted under one bound for the two, and known from then on. */
import type { ServerOpts, Socket } from 'node:net';
import { connectionOf } from '../connection.ts';
import type { Context } from '../context.ts';

const keepAliveProbeMs = 60_000;

/** Half-open: a client that has sent its FIN is still owed its answers, and a tunnel goes on in the other direction. */
export const portOptions: ServerOpts = {
  allowHalfOpen: true,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: keepAliveProbeMs,
};

/** @returns false: there are as many connections as may be, and this one is closed */
export function admitSocket(context: Context, socket: Socket): boolean {
  // Between two owners nobody else listens, and an error without a listener ends the program.
  socket.on('error', ignore);
  if (context.connections.size >= context.limits.connectionsMax) {
    context.observe({ kind: 'connection-refused', peer: socket.remoteAddress ?? '' });
    socket.destroy();
    return false;
  }
  trackSocket(context, socket);
  return true;
}

/** Makes the listener know the connection until its socket has closed. */
export function trackSocket(context: Context, socket: Socket): void {
  const connection = connectionOf(socket, context.monotonic);
  context.connections.add(connection);
  socket.once('close', () => context.connections.delete(connection));
}

function ignore(): void {
  // Whoever has the socket hears of its end by `close`.
}
