/**
 * Detects the protocol of a connection from its first octets, before a server reads it. Modes:
 *
 * - looking: octets are held until they decide. A timer bounds the wait, since no server has the connection.
 * - passed: the octets are in the socket again as if unread, and a server has it.
 * - gone: the client left first, or sent nothing until the timer.
 *
 * A `data` listener takes the octets and `unshift` returns them: if they decide, the server parses them in the same
 * turn.
 */
import { createServer, type Server, type ServerOpts, type Socket } from 'node:net';

import { ignoreError, onArrival, ownEmitter } from '../../observe/own-emitter.ts';
import type { Context } from '../context.ts';

export type Look<Kind> = {
  /** Undefined: these octets fit several protocols. */
  readonly judge: (octets: Buffer) => Kind | undefined;
  /** The protocol of a client that stops or ends before the octets decide. */
  readonly otherwise: Kind;
  /** Hands over the socket with its octets; the receiver gets its events from now on. */
  readonly pass: (socket: Socket, kind: Kind, octets: Buffer) => void;
  readonly timeoutMs: number;
};

/** Errors of the socket are the caller's to listen for. */
export function lookAtFirstOctets<Kind>(socket: Socket, look: Look<Kind>): void {
  let held: Buffer | undefined;
  const leave = () => {
    clearTimeout(timer);
    socket.off('data', onData);
    socket.off('end', onEnd);
    socket.off('close', leave);
  };
  const onData = (chunk: Buffer) => {
    held = held === undefined ? chunk : Buffer.concat([held, chunk]);
    const kind = look.judge(held);
    if (kind === undefined) return;
    leave();
    look.pass(socket, kind, held);
  };
  const onEnd = () => {
    leave();
    // Half a method and the end: not a request, and without a response (RFC 9112 §9.6).
    socket.destroySoon();
  };
  const timer = setTimeout(() => {
    leave();
    if (held === undefined) socket.destroySoon();
    else look.pass(socket, look.otherwise, held);
  }, look.timeoutMs).unref();
  socket.on('data', onData);
  socket.on('end', onEnd);
  socket.on('close', leave);
}

const keepAliveProbeMs = 60_000;

/** Half-open: a client still gets its responses after its FIN, and a tunnel continues in the other direction. */
const portOptions: ServerOpts = {
  allowHalfOpen: true,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: keepAliveProbeMs,
};

/**
 * Creates a port of the listener. It hands admitted sockets to `take`. A failed accept (the system is out of memory or
 * descriptors) is logged, and the port continues; `listen` reports a port that cannot be opened.
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

/** The servers behind a port. They never listen themselves; a `connection` event gives them a socket. */
export type ConnectionTaker = { emit(event: 'connection', socket: Socket): boolean };

export type Protocols = { readonly http1: ConnectionTaker; readonly http2: ConnectionTaker };
