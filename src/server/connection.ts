/**
 * Connections: their states, and the limits of all that a listener has open. The state of one:
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
import type { ServerLimits } from './limits.ts';

/** The HTTP/2 side of a connection, for draining and sweeping. */
export type Multiplexed = {
  readonly idle: boolean;
  /** Ends everything that exceeds its time without progress. */
  sweep(nowMs: number): void;
  /** Refuses further streams, and closes the connection after the open ones. */
  close(): void;
};

export type ReceivedRequest = {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly answered: boolean;
  readonly isArriving: boolean;
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
  last: ReceivedRequest | undefined;
  underWay = 0;
  /** It has sent octets and waits for the turn in which a server gets it (port.ts). */
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
  /** In the reserve: closes after its first response, for health or an administrator (connection.ts). */
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

// The open connections of a listener and their limits, which both ports share.
//
// - One address may have `connectionsPerAddressMax` (IPv6 counts by /64). Behind a proxy, where all sockets have one
//   address, this limit is off.
// - All together may have `connectionsMax`.
// - At a limit, an idle connection is closed for the new one: of the same address, or of the address with the most.
// - If none is idle, the new one is admitted to the reserve of `connectionsReservedMax`. It gets one response, and only
//   for health or an administrator (walk-context.ts); then it closes. In a full reserve, a connection of an address with
//   more connections is closed for it, so that the address that uses everything cannot fill the reserve too.
//

type ConnectionLimits = Pick<
  ServerLimits,
  'connectionsMax' | 'connectionsPerAddressMax' | 'connectionsReservedMax'
>;

/** Connections of one address that a search for an idle one examines and moves to the end of the queue. */
const looksMax = 64;
/** Least time between two searches for the address with most connections: one over 10,000 takes 0.1 ms. */
const rankingMs = 100;

export class ConnectionShares {
  readonly #limits: ConnectionLimits;
  readonly #addressOf: (peer: string) => string;
  readonly #monotonic: () => number;
  readonly #all = new Set<Connection>();
  /** The least recently examined first, without those of the reserve. */
  readonly #byAddress = new Map<string, Set<Connection>>();
  readonly #reserve = new Set<Connection>();
  #largest: string | undefined;
  #rankedMs = Number.NEGATIVE_INFINITY;

  constructor(limits: ConnectionLimits, addressOf: (peer: string) => string, monotonic: () => number) {
    this.#limits = limits;
    this.#addressOf = addressOf;
    this.#monotonic = monotonic;
  }

  /** Including the reserve. */
  get size(): number {
    return this.#all.size;
  }

  [Symbol.iterator](): Iterator<Connection> {
    return this.#all[Symbol.iterator]();
  }

  /** Counts a new connection until its socket closes. @returns false if there is no room, not even in the reserve */
  admit(socket: Socket): boolean {
    const limits = this.#limits;
    const connection = connectionOf(socket, this.#monotonic);
    const address = this.#addressOf(connection.peer);
    const own = this.#byAddress.get(address);
    const perAddressMax = limits.connectionsPerAddressMax;
    const isOwnShareUsed = perAddressMax > 0 && own !== undefined && own.size >= perAddressMax;
    const isFull = this.#all.size - this.#reserve.size >= limits.connectionsMax;
    const mustYield = isOwnShareUsed ? own : isFull ? this.#largestAddress() : undefined;
    if ((isOwnShareUsed || isFull) && !this.#makeRoom(mustYield)) {
      if (!this.#takeReserve(connection)) return false;
    } else if (own === undefined) this.#byAddress.set(address, new Set([connection]));
    else own.add(connection);
    this.#all.add(connection);
    socket.once('close', () => this.#forget(connection, address));
    return true;
  }

  /** Continues the connection on another socket: the one over TLS instead of its carrier. */
  replace(carrier: Socket, socket: Socket): void {
    const before = connectionOf(carrier, this.#monotonic);
    const connection = connectionOf(socket, this.#monotonic);
    const address = this.#addressOf(before.peer);
    connection.reserved = before.reserved;
    const line = before.reserved ? this.#reserve : this.#byAddress.get(address);
    if (line?.delete(before) === true) line.add(connection);
    this.#all.delete(before);
    this.#all.add(connection);
    socket.once('close', () => this.#forget(connection, address));
  }

  #forget(connection: Connection, address: string): void {
    this.#all.delete(connection);
    this.#reserve.delete(connection);
    const line = this.#byAddress.get(address);
    line?.delete(connection);
    if (line?.size === 0) this.#byAddress.delete(address);
  }

  #takeReserve(connection: Connection): boolean {
    const { connectionsReservedMax } = this.#limits;
    if (this.#reserve.size >= connectionsReservedMax && !this.#yieldReserve(connection)) return false;
    connection.reserved = true;
    this.#reserve.add(connection);
    return true;
  }

  /**
   * Closes a connection of the reserve that is idle or waits for its turn: of the address with most, the newcomer's own last, oldest first.
   */
  #yieldReserve(newcomer: Connection): boolean {
    let victim: Connection | undefined;
    let most = this.#countOf(newcomer) - 1;
    for (const connection of this.#reserve) {
      const count = this.#countOf(connection);
      if (count <= most || !(connection.owesNothing || connection.isWaiting)) continue;
      victim = connection;
      most = count;
    }
    if (victim === undefined) return false;
    this.#close(victim);
    return true;
  }

  #countOf({ peer }: Connection): number {
    return this.#byAddress.get(this.#addressOf(peer))?.size ?? 0;
  }

  #close(connection: Connection): void {
    this.#reserve.delete(connection);
    this.#all.delete(connection);
    connection.socket.destroy();
  }

  #makeRoom(line: Set<Connection> | undefined): boolean {
    if (line === undefined) return false;
    let looks = 0;
    for (const connection of line) {
      line.delete(connection);
      if (connection.owesNothing) {
        this.#close(connection);
        return true;
      }
      line.add(connection);
      looks += 1;
      if (looks >= looksMax || looks >= line.size) return false;
    }
    return false;
  }

  #largestAddress(): Set<Connection> | undefined {
    const nowMs = this.#monotonic();
    if (nowMs - this.#rankedMs >= rankingMs) {
      this.#rankedMs = nowMs;
      let most = 0;
      for (const [address, line] of this.#byAddress) {
        if (line.size <= most) continue;
        most = line.size;
        this.#largest = address;
      }
    }
    return this.#largest === undefined ? undefined : this.#byAddress.get(this.#largest);
  }
}

/** Responses that stay open, by holder: event streams, WebSockets. */
export class HeldAnswers<T> {
  readonly #holderOf = new Map<T, string>();
  readonly #counts = new Map<string, number>();

  get size(): number {
    return this.#holderOf.size;
  }

  [Symbol.iterator](): Iterator<T> {
    return this.#holderOf.keys();
  }

  count(holder: string): number {
    return this.#counts.get(holder) ?? 0;
  }

  add(answer: T, holder: string): void {
    this.#holderOf.set(answer, holder);
    this.#counts.set(holder, this.count(holder) + 1);
  }

  delete(answer: T): void {
    const holder = this.#holderOf.get(answer);
    if (holder === undefined) return;
    this.#holderOf.delete(answer);
    const left = this.count(holder) - 1;
    if (left > 0) this.#counts.set(holder, left);
    else this.#counts.delete(holder);
  }
}
