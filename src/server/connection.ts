/**
 * What the server knows of one connection. Its life, seen from the requests on it:
 *
 *   open       requests are received; `last` is the newest, `underWay` counts those not answered yet.
 *   closing    no further request is looked at, because the last one asked for it, the server drains, or the framing
 *              after it cannot be trusted (RFC 9112 §6.3, §9.6). Answers owed for earlier requests still go out,
 *              and the last of them carries `Connection: close`.
 *   broken     what came is not HTTP; a part of `closing` in which repeated parser errors mean nothing new.
 *   lingering  the last answer and our FIN are sent; what the client still sends is read and thrown away, so that
 *              the kernel does not answer it with a reset that would destroy the answer (RFC 9112 §9.6).
 *   closed     the socket is gone; the connection is forgotten.
 *
 * `closing` is never left except for `closed`.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ProblemCode } from '../http/problem-registry.ts';

/** What an HTTP/2 connection is besides, as far as the end of the listener and the looks at it must know it. */
export type Multiplexed = {
  /** No stream is open. */
  readonly idle: boolean;
  /** Ends what stands still for longer than its bound. */
  sweep(nowMs: number): void;
  /** Refuses further streams, and closes the connection after those that are open. */
  close(): void;
};

/** The newest request of a connection, as far as the connection must know it. */
export type Received = {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly answered: boolean;
  /** Ends the reading of content, now or when it starts. */
  failContent(code: ProblemCode): void;
};

const connectionKey = Symbol('connection');
type TrackedSocket = Socket & { [connectionKey]?: Connection };

export class Connection {
  readonly socket: Socket;
  last: Received | undefined;
  underWay = 0;
  requests = 0;
  closing = false;
  broken = false;
  /** An Upgrade was declined: octets that came with it are lost, so the connection ends with its answer. */
  declinesUpgrade = false;
  /** An event stream is open: silence is not a stall. */
  streaming = false;
  /** It is of the reserve: it closes after its first answer, which only health and administrators get (connection-shares.ts). */
  reserved = false;
  /** The connection speaks HTTP/2; `last`, `closing` and `broken` mean nothing then. */
  multiplexed: Multiplexed | undefined;
  /** When a request or an answer last passed, on the monotonic clock. */
  activeMs: number;
  #peer: string | undefined;

  constructor(socket: Socket, nowMs: number) {
    this.socket = socket;
    this.activeMs = nowMs;
  }

  /** Asked of the kernel once: the system call costs more than a whole read by id may. */
  get peer(): string {
    this.#peer ??= this.socket.remoteAddress ?? '';
    return this.#peer;
  }

  /** No request is under way and the last answer has gone out, so closing it loses nothing but the connection. */
  get owesNothing(): boolean {
    if (this.multiplexed !== undefined) return this.multiplexed.idle;
    if (this.underWay > 0 || this.streaming) return false;
    if (this.last === undefined || this.last.outgoing.writableFinished) return true;
    // It lingers (linger.ts): the answer has left, and what the client still sends is thrown away.
    return this.closing && this.last.answered && this.socket.writableLength === 0;
  }

  /** Nothing is owed in either direction; a next request may still be on its way. */
  get settled(): boolean {
    if (this.multiplexed !== undefined) return this.multiplexed.idle;
    if (this.underWay > 0) return false;
    if (this.last !== undefined) return this.last.outgoing.writableFinished && this.last.incoming.complete;
    // Octets without a request are the beginning of one.
    return this.requests > 0 || this.socket.bytesRead === 0;
  }
}

/** The connection of a socket, made at the first sight of it: a mounted handler sees sockets only through requests. */
export function connectionOf(socket: Socket, clock: () => number): Connection {
  const tracked: TrackedSocket = socket;
  const known = tracked[connectionKey];
  if (known !== undefined) return known;
  const connection = new Connection(socket, clock());
  tracked[connectionKey] = connection;
  return connection;
}
