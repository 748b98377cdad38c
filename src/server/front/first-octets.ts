/**
 * A look at the first octets of a connection, before anybody reads it: they tell which protocol its client speaks. Modes:
 *
 *   looking   octets are held until they decide. A client that says nothing, or no more, is bounded by a timer of this
 *             look's own, because no server has the connection yet.
 *   passed    the octets lie in the socket again as if nobody had read them, and a server has it.
 *   gone      the client left first, or stayed silent until the timer.
 *
 * The octets are taken by a `data` listener and given back by `unshift`: where they decide at once, the server that is
 * told of the connection then parses them in the same turn.
 */
import type { Socket } from 'node:net';

export type Look<Kind> = {
  /** Undefined: these octets fit more than one protocol. */
  readonly judge: (octets: Buffer) => Kind | undefined;
  /** What a client speaks that stops, or ends, before it can be told. */
  readonly otherwise: Kind;
  /** The socket holds the octets; whoever it is handed to has its events from now on. */
  readonly pass: (socket: Socket, kind: Kind, octets: Buffer) => void;
  readonly timeoutMs: number;
};

/** One look for each connection. Errors of the socket are the caller's to listen for. */
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
    // Half a method and the end: no request, and nothing that is owed an answer (RFC 9112 §9.6).
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
