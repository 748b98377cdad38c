/**
 * What one WebSocket takes of the memory budget: what waits for its client, and what its conversation has read for it. What waits is there
 * already when it is counted; where there is no room for it, the conversation learns that too much waits, and ends or pauses.
 */
import type { Writable } from 'node:stream';
import type { HeldMemory } from '../../http/message.ts';
import type { MemoryLease } from '../../memory/budget.ts';

/** Less may wait for any client without being counted; it goes out with the turn. */
export const uncountedBytesMax = 16 * 1024;

export class WaitingMemory implements HeldMemory {
  readonly #stream: Pick<Writable, 'writableLength'>;
  readonly #lease: MemoryLease;
  #readBytes = 0;
  /** There is no memory for what waits. */
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

  /** What the conversation has read. */
  set(octets: number): void {
    this.#readBytes = octets;
    this.count();
  }

  /** Frames are made of what was read, so its octets are counted where they wait. */
  share(octets: Uint8Array | undefined): void {
    this.set(octets?.length ?? 0);
  }

  /** To be called when something was written, or taken. */
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
