/**
 * Detects the protocol of a connection from its first octets, before a server reads it. Modes:
 *
 * - looking: octets are held until they decide. A timer bounds the wait, since no server has the connection.
 * - waiting: the octets are known and in the socket again as if unread. What a server makes of a connection, such as a parser, a session or
 *   a handshake, has its turn of the event loop.
 * - passed: a server has the socket.
 * - gone: the client left first, or sent nothing until the timer.
 *
 * A `data` listener takes the octets and `unshift` returns them: if they decide and no other work waits, the server parses them in the
 * same turn. A paused socket that holds them has not ended for its reader, although the client may have sent its FIN behind them.
 */
import type { Socket } from 'node:net';
import { connectionOf } from '../connection.ts';
import type { Context } from '../context.ts';

export type Look<Kind> = {
  /** Undefined: these octets fit several protocols. */
  readonly judge: (octets: Buffer) => Kind | undefined;
  /** The protocol of a client that stops or ends before the octets decide. */
  readonly otherwise: Kind;
  /** The octets begin a request of a probe, which goes before the connections that wait. */
  readonly isProbe?: (octets: Buffer) => boolean;
  /** Hands over the socket, which is paused and holds its octets; the receiver gets its events from now on. */
  readonly pass: (socket: Socket, kind: Kind) => void;
  readonly timeoutMs: number;
};

/** Errors of the socket are the caller's to listen for. */
export function lookAtFirstOctets<Kind>(context: Context, socket: Socket, look: Look<Kind>): void {
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
    passInTurn(context, socket, look, { kind, octets: held });
  };
  const onEnd = () => {
    leave();
    // Half a method and the end: not a request, and without a response (RFC 9112 §9.6).
    socket.destroySoon();
  };
  const timer = setTimeout(() => {
    leave();
    if (held === undefined) socket.destroySoon();
    else passInTurn(context, socket, look, { kind: look.otherwise, octets: held });
  }, look.timeoutMs).unref();
  socket.on('data', onData);
  socket.on('end', onEnd);
  socket.on('close', leave);
}

type Decided<Kind> = { readonly kind: Kind; readonly octets: Buffer };

function passInTurn<Kind>(
  { turns, monotonic }: Context,
  socket: Socket,
  look: Look<Kind>,
  { kind, octets }: Decided<Kind>,
): void {
  const connection = connectionOf(socket, monotonic);
  socket.pause();
  socket.unshift(octets);
  connection.isWaiting = true;
  const pass = () => {
    connection.isWaiting = false;
    if (!socket.destroyed) look.pass(socket, kind);
  };
  if (look.isProbe?.(octets) === true) turns.takeProbe(pass);
  else turns.take(pass);
}

/** The servers behind a port. They never listen themselves; a `connection` event gives them a socket. */
export type ConnectionTaker = { emit(event: 'connection', socket: Socket): boolean };

export type Protocols = { readonly http1: ConnectionTaker; readonly http2: ConnectionTaker };
