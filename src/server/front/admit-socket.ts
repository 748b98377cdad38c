/** A port of the listener: accepts connections that have room among the shares of both ports, and hands them on. */
import { createServer, type Server, type ServerOpts, type Socket } from 'node:net';
import { ignoreError, onArrival, ownEmitter } from '../../observe/own-emitter.ts';
import type { Context } from '../context.ts';

const keepAliveProbeMs = 60_000;

/** Half-open: a client that has sent its FIN is still owed its answers, and a tunnel goes on in the other direction. */
const portOptions: ServerOpts = {
  allowHalfOpen: true,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: keepAliveProbeMs,
};

/**
 * A port that gives the sockets that are admitted to `take`. An accept that fails (the system has no memory or no descriptor left) is told to the
 * log, and the port goes on; a port that could not be opened is told by `listen`.
 */
export function openFront(context: Context, take: (socket: Socket) => void): Server {
  const front = ownEmitter(createServer(portOptions), (error) => {
    if (front.listening) context.observe({ kind: 'accept-failed', why: error.message });
  });
  onArrival(front, 'connection', ignoreError, (socket: Socket) => {
    if (context.connections.admit(socket)) take(socket);
    else {
      context.observe({ kind: 'connection-refused', peer: socket.remoteAddress ?? '' });
      socket.destroy();
    }
  });
  return front;
}
