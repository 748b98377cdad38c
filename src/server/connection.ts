/**
 * The state of one connection:
 *
 * - open: requests are received; `last` is the newest, `underWay` counts those without a complete response.
 * - closing: no further request is processed, because the last one asked for it, the server drains, or the framing
 *   after it cannot be trusted (RFC 9112 §6.3, §9.6). Earlier requests still get their responses, the last with
 *   `Connection: close`.
 * - broken: the client sent something other than HTTP; a part of `closing` in which repeated parser errors are ignored.
 * - half-closed: the last response and our FIN are sent; what the client still sends is discarded (unread-content.ts).
 * - closed: the socket is gone.
 *
 * `closing` only leads to `closed`.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ProblemCode } from '../http/problem-registry.ts';

/** The HTTP/2 side of a connection, for draining and sweeping. */
export type Multiplexed = {
  readonly idle: boolean;
  /** Ends everything that exceeds its time without progress. */
  sweep(nowMs: number): void;
  /** Refuses further streams, and closes the connection after the open ones. */
  close(): void;
};

export type Received = {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly answered: boolean;
  failContent(code: ProblemCode): void;
};

/** Octets after a response that did not wait for them (unread-content.ts). */
export type Unread = {
  halfClose(): void;
  onOctets(): void;
};

const connectionKey = Symbol('connection');
type TrackedSocket = Socket & { [connectionKey]?: Connection };

export class Connection {
  readonly socket: Socket;
  last: Received | undefined;
  underWay = 0;
  /** It has sent octets and waits for the turn in which a server gets it (front/first-octets.ts). */
  isWaiting = false;
  requests = 0;
  closing = false;
  broken = false;
  /** The unread content of a request whose response is sent. */
  unread: Unread | undefined;
  /** An Upgrade was declined: node:http lost the octets after it, so the connection ends with the response. */
  declinesUpgrade = false;
  /** An event stream is open: silence is not a stall. */
  streaming = false;
  /** In the reserve: closes after its first response, for health or an administrator (connection-shares.ts). */
  reserved = false;
  /** The connection is HTTP/2; then `last`, `closing` and `broken` are unused. */
  multiplexed: Multiplexed | undefined;
  /** When a request or a response last passed, on the monotonic clock. */
  activeMs: number;
  #peer: string | undefined;

  constructor(socket: Socket, nowMs: number) {
    this.socket = socket;
    this.activeMs = nowMs;
  }

  /** Cached: the system call costs more than a whole read by id may. */
  get peer(): string {
    this.#peer ??= this.socket.remoteAddress ?? '';
    return this.#peer;
  }

  /** No request is under way and the last response has gone out, so that closing loses nothing but the connection. */
  get owesNothing(): boolean {
    if (this.multiplexed !== undefined) return this.multiplexed.idle;
    if (this.underWay > 0 || this.isWaiting || this.streaming) return false;
    if (this.last === undefined || this.last.outgoing.writableFinished) return true;
    // Half-closed: the response has left, and what the client still sends is discarded.
    return this.closing && this.last.answered && this.socket.writableLength === 0;
  }

  /** The last exchange is complete in both directions; a next request may be on its way. */
  get settled(): boolean {
    if (this.multiplexed !== undefined) return this.multiplexed.idle;
    if (this.underWay > 0 || this.isWaiting) return false;
    if (this.last !== undefined) return this.last.outgoing.writableFinished && this.last.incoming.complete;
    // Octets without a request are the beginning of one.
    return this.requests > 0 || this.socket.bytesRead === 0;
  }
}

/** The connection of a socket, created on first use: a mounted handler sees sockets only through requests. */
export function connectionOf(socket: Socket, clock: () => number): Connection {
  const tracked: TrackedSocket = socket;
  const known = tracked[connectionKey];
  if (known !== undefined) return known;
  const connection = new Connection(socket, clock());
  tracked[connectionKey] = connection;
  return connection;
}
