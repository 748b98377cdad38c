/**
 * The open connections of a listener and their limits, which both ports share.
 *
 * - One address may have `connectionsPerAddressMax` (IPv6 counts by /64). Behind a proxy, where all sockets have one
 *   address, this limit is off.
 * - All together may have `connectionsMax`.
 * - At a limit, an idle connection is closed for the new one: of the same address, or of the address with the most.
 * - If none is idle, the new one is admitted to the reserve of `connectionsReservedMax`. It gets one response, and only
 *   for health or an administrator (walk-start.ts); then it closes. In a full reserve, a connection of an address with
 *   more connections is closed for it, so that the address that uses everything cannot fill the reserve too.
 */
import type { Socket } from 'node:net';
import { type Connection, connectionOf } from './connection.ts';
import type { ServerLimits } from './limits.ts';

export type SharesOptions = {
  readonly limits: Pick<
    ServerLimits,
    'connectionsMax' | 'connectionsPerAddressMax' | 'connectionsReservedMax'
  >;
  readonly addressOf: (peer: string) => string;
  readonly monotonic: () => number;
};

/** Connections of one address that a search for an idle one examines and moves to the end of the queue. */
const looksMax = 64;
/** Least time between two searches for the address with most connections: one over 10,000 takes 0.1 ms. */
const rankingMs = 100;

export class ConnectionShares {
  readonly #options: SharesOptions;
  readonly #all = new Set<Connection>();
  /** The least recently examined first, without those of the reserve. */
  readonly #byAddress = new Map<string, Set<Connection>>();
  readonly #reserve = new Set<Connection>();
  #largest: string | undefined;
  #rankedMs = Number.NEGATIVE_INFINITY;

  constructor(options: SharesOptions) {
    this.#options = options;
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
    const { limits, addressOf, monotonic } = this.#options;
    const connection = connectionOf(socket, monotonic);
    const address = addressOf(connection.peer);
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
    const { addressOf, monotonic } = this.#options;
    const [before, connection] = [connectionOf(carrier, monotonic), connectionOf(socket, monotonic)];
    const address = addressOf(before.peer);
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
    const { connectionsReservedMax } = this.#options.limits;
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
    return this.#byAddress.get(this.#options.addressOf(peer))?.size ?? 0;
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
    const nowMs = this.#options.monotonic();
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
