/**
 * Octets on their way to one WebSocket's client. Long frames are written in pieces, each when the client has received
 * the one before, which shows progress, over HTTP/2 too, and distinguishes a slow client from a stalled one.
 */
import type { Duplex, Writable } from 'node:stream';

import type { HeldMemory } from '../../http/message.ts';
import type { MemoryLease } from '../../memory/budget.ts';

/** Length of a piece, which a client must receive within the time limit for stalled responses. */
const pieceBytesMax = 16 * 1024;

type Waiting = { readonly octets: Uint8Array; at: number; readonly onTaken: (() => void) | undefined };

export class Outbox {
  readonly #stream: Duplex;
  readonly #onPieceTaken: () => void;
  readonly #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #ends = false;
  /** The client has received something since the last check. */
  #moved = false;
  #stillSinceMs: number | undefined;

  /** @param onPieceTaken called for each piece of what could not be written at once */
  constructor(stream: Duplex, onPieceTaken: () => void) {
    this.#stream = stream;
    this.#onPieceTaken = onPieceTaken;
  }

  /** Octets that the client has not received yet, by their name in streams. */
  get writableLength(): number {
    return this.#waitingBytes + this.#stream.writableLength;
  }

  /** Writes after everything before. @param onTaken called once the client has all of it */
  write(octets: Uint8Array, onTaken?: () => void): void {
    const stream = this.#stream;
    if (this.#waiting.length > 0 || octets.length > pieceBytesMax) {
      this.#waiting.push({ octets, at: 0, onTaken });
      this.#waitingBytes += octets.length;
      this.#pump();
    } else if (onTaken !== undefined || stream.writableLength > 0) {
      stream.write(octets, () => {
        this.#moved = true;
        onTaken?.();
      });
    } else stream.write(octets);
  }

  end(): void {
    this.#ends = true;
    this.#pump();
  }

  /** True if waiting octets have made no progress for longer than the bound, according to earlier checks. */
  stalls(nowMs: number, boundMs: number): boolean {
    if (this.#moved || this.#stillSinceMs === undefined || this.writableLength === 0) {
      this.#moved = false;
      this.#stillSinceMs = nowMs;
      return false;
    }
    return nowMs - this.#stillSinceMs > boundMs;
  }

  readonly #pump = (): void => {
    const stream = this.#stream;
    if (stream.destroyed) {
      this.#waiting.length = 0;
      this.#waitingBytes = 0;
      return;
    }
    for (
      let next = this.#waiting[0];
      next !== undefined && stream.writableLength < pieceBytesMax;
      next = this.#waiting[0]
    ) {
      const { octets, at, onTaken } = next;
      const piece = octets.subarray(at, at + pieceBytesMax);
      next.at += piece.length;
      this.#waitingBytes -= piece.length;
      const isLast = next.at >= octets.length;
      if (isLast) this.#waiting.shift();
      stream.write(piece, () => {
        this.#moved = true;
        this.#pump();
        if (isLast) onTaken?.();
        this.#onPieceTaken();
      });
    }
    if (this.#ends && this.#waiting.length === 0 && !stream.writableEnded) stream.end();
  };
}

/**
 * Waiting octets of one client that are not counted in the memory budget; they go out with the turn. The class below
 * counts the rest, and what the conversation has read for the client. Waiting octets exist before they are counted; if
 * there is no room for them, the conversation sees an infinite queue and ends or pauses.
 */
export const uncountedBytesMax = 16 * 1024;

export class WaitingMemory implements HeldMemory {
  readonly #stream: Pick<Writable, 'writableLength'>;
  readonly #lease: MemoryLease;
  #readBytes = 0;
  /** The memory budget has no room for the waiting octets. */
  isOver = false;

  constructor(stream: Pick<Writable, 'writableLength'>, lease: MemoryLease) {
    this.#stream = stream;
    this.#lease = lease;
  }

  whenRoom(octets: number, go: () => void): void {
    this.#lease.whenRoom(octets, () => {
      this.#readBytes += octets;
      go();
    });
  }

  /** Sets what the conversation has read. */
  set(octets: number): void {
    this.#readBytes = octets;
    this.count();
  }

  /** Frames are made of what was read, so its octets are counted where they wait. */
  share(octets: Uint8Array | undefined): void {
    this.set(octets?.length ?? 0);
  }

  /** Call it after each write, and after each piece that was received. */
  count(): void {
    const waiting = this.#stream.writableLength;
    const bytes = this.#readBytes + (waiting > uncountedBytesMax ? waiting : 0);
    const more = bytes - this.#lease.bytes;
    this.isOver = more > 0 && !this.#lease.growOrRefuse(more);
    if (this.isOver || more < 0) this.#lease.set(bytes);
  }

  release(): void {
    this.#lease.release();
  }
}
