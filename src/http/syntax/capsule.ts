/**
 * Reads capsules from a stream (RFC 9297 §3.2): a type, a length and a value each. DATAGRAM capsules (§3.5) are delivered whole, straight
 * from the chunk where one holds them; values of other types are skipped.
 */

/**
 * Octets of the longest variable-length integer (RFC 9000 §16): its first two bits say whether it has one, two, four or eight octets, and any
 * length is valid for a value that fits. Beyond 2^53 a value is read to the nearest number, which suffices for types and lengths: they are
 * compared only with known types and with bounds.
 */
const variableIntegerBytesMax = 8;

const twoTo32 = 2 ** 32;

/** RFC 9297 §5.4. */
const datagramType = 0;

const headBytesMax = 2 * variableIntegerBytesMax;

/** Initial memory for a value in several chunks; it doubles as octets arrive, so that an announced length costs nothing. */
const partBytesMin = 2048;

export type CapsuleReaderOptions = {
  /** Longest value of a DATAGRAM capsule that is kept. */
  readonly datagramBytesMax: number;
  /**
   * Receives the value of a DATAGRAM capsule and its length; of one longer than `datagramBytesMax`, the first eight octets, and the rest is
   * skipped. The octets may be those of the chunk. Return false to stop reading for good.
   */
  readonly onDatagram: (value: Uint8Array, valueBytes: number) => boolean;
};

/**
 * Modes: in the head of a capsule (type and length); in a kept value; in a skipped value; stopped. A head leads to a value, a value to the
 * next head; the listener stops the reader.
 */
export class CapsuleReader {
  readonly #datagramBytesMax: number;
  readonly #onDatagram: CapsuleReaderOptions['onDatagram'];
  readonly #head = new Uint8Array(headBytesMax);
  #headBytes = 0;
  /** The kept value so far, in memory that may be larger; undefined outside a kept value. */
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

  /** True if the reader is between two capsules; a stream that ends anywhere else was truncated (RFC 9297 §3.3). */
  get isBetweenCapsules(): boolean {
    return this.#headBytes === 0 && this.#part === undefined && this.#bytesToSkip === 0;
  }

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

  /** The usual case: this chunk has the head and the whole value of a datagram. */
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

  /** Reads the head octet by octet, at most sixteen of them. */
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

/** Octets before the value of a DATAGRAM capsule of `valueBytes`. */
export function datagramHeadBytes(valueBytes: number): number {
  return 1 + encodedVariableIntegerBytes(valueBytes);
}

/** Writes type and length of a DATAGRAM capsule and returns the index of its value. */
export function writeDatagramHead(bytes: Uint8Array, at: number, valueBytes: number): number {
  bytes[at] = datagramType;
  return writeVariableInteger(bytes, at + 1, valueBytes);
}

/** Octets of the integer that begins with this octet: 1, 2, 4 or 8. */
export function variableIntegerBytes(firstOctet: number): number {
  return 1 << (firstOctet >> 6);
}

/** The integer at `from`; undefined if the bytes end before it does. */
export function readVariableInteger(bytes: Uint8Array, from: number): number | undefined {
  const first = bytes[from];
  if (first === undefined) return undefined;
  const length = variableIntegerBytes(first);
  if (from + length > bytes.length) return undefined;
  let value = first & 0x3f;
  // Multiplied, not shifted: a shift keeps 32 bits.
  for (let at = from + 1; at < from + length; at += 1) value = value * 256 + (bytes[at] ?? 0);
  return value;
}

/** Octets of the shortest form of a value. */
export function encodedVariableIntegerBytes(value: number): number {
  if (value < 0x40) return 1;
  if (value < 0x4000) return 2;
  return value < 0x4000_0000 ? 4 : 8;
}

/** Writes the shortest form of an integer of 0 to 2^53 - 1 and returns the index after it. */
export function writeVariableInteger(bytes: Uint8Array, at: number, value: number): number {
  const length = encodedVariableIntegerBytes(value);
  let rest = value;
  for (let index = at + length - 1; index >= at; index -= 1) {
    bytes[index] = rest & 0xff;
    rest = rest < twoTo32 ? rest >>> 8 : Math.floor(rest / 256);
  }
  bytes[at] = (bytes[at] ?? 0) | (Math.log2(length) << 6);
  return at + length;
}
