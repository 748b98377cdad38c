/**
 * What is on its way to one WebSocket's client. Long frames go to the stream piece by piece, each when the client has taken the one
 * before: so it shows how far a frame has come, over HTTP/2 too, and a client that takes little is told from one that takes nothing.
 */
import type { Duplex } from 'node:stream';

/** What a client must take within the bound for a stalled answer. */
const pieceBytesMax = 16 * 1024;

type Waiting = { readonly octets: Uint8Array; at: number; readonly onTaken: (() => void) | undefined };

export class Outbox {
  readonly #stream: Duplex;
  readonly #onPieceTaken: () => void;
  readonly #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #ends = false;
  /** The client has taken something since the last look. */
  #moved = false;
  #stillSinceMs: number | undefined;

  /** @param onPieceTaken called for each piece of what was too long or came too soon to be written at once */
  constructor(stream: Duplex, onPieceTaken: () => void) {
    this.#stream = stream;
    this.#onPieceTaken = onPieceTaken;
  }

  /** Octets that the client has not taken, by its name in streams. */
  get writableLength(): number {
    return this.#waitingBytes + this.#stream.writableLength;
  }

  /** Behind everything before it. @param onTaken called once the client has all of it */
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

  /** Ends the stream once everything before was written. */
  end(): void {
    this.#ends = true;
    this.#pump();
  }

  /** Whether something waits of which the client took nothing for longer than the bound, as far as looks since tell. */
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
