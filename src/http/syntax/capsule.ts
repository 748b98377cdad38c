/**
 * Capsules: RFC 9297 §3.2, a type, a length and a value, one after the other on a stream. Reads them as they come: a DATAGRAM capsule (§3.5) is
 * handed over whole, straight out of the chunk where one chunk holds it; of every other type the value is passed over and never kept.
 * Knows nothing of what a datagram means.
 */
import {
  encodedVariableIntegerBytes,
  readVariableInteger,
  variableIntegerBytes,
  variableIntegerBytesMax,
  writeVariableInteger,
} from './variable-integer.ts';

/** RFC 9297 §5.4. */
const datagramType = 0;

/** Type and length, each at its longest. */
const headBytesMax = 2 * variableIntegerBytesMax;

/** The first memory for a value that comes in several chunks; doubled as octets come, so that a length alone costs nothing. */
const partBytesMin = 2048;

export type CapsuleReaderOptions = {
  /** Longest value of a DATAGRAM capsule that is kept. */
  readonly datagramBytesMax: number;
  /**
   * A DATAGRAM capsule: its value, and how long that is. Of one that is longer than `datagramBytesMax` the value is its first eight octets
   * alone, and the rest is passed over. The octets may be those of the chunk. False: nothing more is read, now or later.
   */
  readonly onDatagram: (value: Uint8Array, valueBytes: number) => boolean;
};

/**
 * Modes: in the head (type and length) of a capsule; in a value that is kept; in a value that is passed over; stopped. A head leads to a
 * value, a value to the next head; the listener stops it.
 */
export class CapsuleReader {
  readonly #datagramBytesMax: number;
  readonly #onDatagram: CapsuleReaderOptions['onDatagram'];
  readonly #head = new Uint8Array(headBytesMax);
  #headBytes = 0;
  /** What is kept of the value so far, in memory that may be larger; undefined outside such a value. */
  #part: Uint8Array | undefined;
  #partBytes = 0;
  #partBytesAsked = 0;
  #valueBytes = 0;
  #bytesToSkip = 0;
  #isStopped = false;

  constructor(options: CapsuleReaderOptions) {
    this.#datagramBytesMax = Math.max(options.datagramBytesMax, variableIntegerBytesMax);
    this.#onDatagram = options.onDatagram;
  }

  /** True between two capsules: a stream that ends anywhere else was cut (RFC 9297 §3.3). */
  get isBetweenCapsules(): boolean {
    return this.#headBytes === 0 && this.#part === undefined && this.#bytesToSkip === 0;
  }

  /** Reads what the stream brought next. */
  read(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length && !this.#isStopped) {
      if (this.#bytesToSkip > 0) at = this.#skip(chunk, at);
      else if (this.#part !== undefined) at = this.#keep(chunk, at);
      else if (this.#headBytes > 0) at = this.#continueHead(chunk, at);
      else at = this.#begin(chunk, at);
    }
  }

  #skip(chunk: Uint8Array, at: number): number {
    const skipped = Math.min(this.#bytesToSkip, chunk.length - at);
    this.#bytesToSkip -= skipped;
    return at + skipped;
  }

  /** The usual way: the head, and the value of a datagram, lie in this chunk. */
  #begin(chunk: Uint8Array, at: number): number {
    const type = readVariableInteger(chunk, at);
    if (type === undefined) return this.#continueHead(chunk, at);
    const lengthAt = at + variableIntegerBytes(chunk[at] ?? 0);
    const length = readVariableInteger(chunk, lengthAt);
    if (length === undefined) return this.#continueHead(chunk, at);
    const valueAt = lengthAt + variableIntegerBytes(chunk[lengthAt] ?? 0);
    const valueEnd = valueAt + length;
    if (type === datagramType && length <= this.#datagramBytesMax && valueEnd <= chunk.length) {
      this.#isStopped = !this.#onDatagram(chunk.subarray(valueAt, valueEnd), length);
      return valueEnd;
    }
    this.#enterValue(type, length);
    return valueAt;
  }

  /** Octet by octet, at most sixteen of them. */
  #continueHead(chunk: Uint8Array, from: number): number {
    for (let at = from; at < chunk.length; at += 1) {
      this.#head[this.#headBytes] = chunk[at] ?? 0;
      this.#headBytes += 1;
      const head = this.#head.subarray(0, this.#headBytes);
      const type = readVariableInteger(head, 0);
      if (type === undefined) continue;
      const length = readVariableInteger(head, variableIntegerBytes(head[0] ?? 0));
      if (length === undefined) continue;
      this.#headBytes = 0;
      this.#enterValue(type, length);
      return at + 1;
    }
    return chunk.length;
  }

  #enterValue(type: number, length: number): void {
    if (type !== datagramType) {
      this.#bytesToSkip = length;
      return;
    }
    this.#valueBytes = length;
    this.#partBytesAsked = length <= this.#datagramBytesMax ? length : variableIntegerBytesMax;
    this.#part = new Uint8Array(Math.min(this.#partBytesAsked, partBytesMin));
    this.#partBytes = 0;
    if (length === 0) this.#handOver(this.#part);
  }

  #keep(chunk: Uint8Array, at: number): number {
    let part = this.#part ?? new Uint8Array();
    const taken = Math.min(this.#partBytesAsked - this.#partBytes, chunk.length - at);
    const needed = this.#partBytes + taken;
    if (needed > part.length) {
      const grown = new Uint8Array(Math.min(this.#partBytesAsked, Math.max(needed, 2 * part.length)));
      grown.set(part.subarray(0, this.#partBytes));
      this.#part = part = grown;
    }
    part.set(chunk.subarray(at, at + taken), this.#partBytes);
    this.#partBytes = needed;
    if (needed === this.#partBytesAsked) this.#handOver(part);
    return at + taken;
  }

  #handOver(value: Uint8Array): void {
    this.#part = undefined;
    this.#bytesToSkip = this.#valueBytes - this.#partBytesAsked;
    this.#isStopped = !this.#onDatagram(value, this.#valueBytes);
  }
}

/** Octets before the value of a DATAGRAM capsule that holds `valueBytes`. */
export function datagramHeadBytes(valueBytes: number): number {
  return 1 + encodedVariableIntegerBytes(valueBytes);
}

/** Writes type and length of a DATAGRAM capsule and answers the index of its value. */
export function writeDatagramHead(bytes: Uint8Array, at: number, valueBytes: number): number {
  bytes[at] = datagramType;
  return writeVariableInteger(bytes, at + 1, valueBytes);
}
