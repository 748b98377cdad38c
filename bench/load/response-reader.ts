/**
 * Reads one HTTP/1.1 response at a time from a connection that has one request outstanding. It checks what a
 * benchmark must be sure of: the status, and that exactly Content-Length bytes follow the head, no more and no
 * fewer. It understands no chunked bodies and no interim responses: both count as errors, since no measured
 * answer uses them.
 */

export type ReadOutcome = 'incomplete' | 'complete' | 'malformed';

const headBytesMax = 16_384;
const carriageReturn = 13;
const lineFeed = 10;
const endOfHead = Buffer.from('\r\n\r\n', 'latin1');
const lengthName = 'content-length:';

/** The reader of one connection. `begin` before each request, then `read` with every chunk until it says `complete`. */
export class ResponseReader {
  status = 0;
  /** Head text of a sampled response. */
  head = '';
  /** What was wrong, when `read` says `malformed`. */
  fault = '';
  #bodyLeft = -1;
  #held: Buffer | undefined;
  #sampled = false;
  #kept: Buffer[] = [];
  /** Where the Content-Length value stood last time: answers of one route share their head layout. */
  #lengthAt = 0;

  begin(sampled: boolean): void {
    this.#bodyLeft = -1;
    this.#sampled = sampled;
    if (sampled) this.#kept = [];
  }

  /** The body of a sampled response, after `complete`. */
  body(): Buffer {
    return Buffer.concat(this.#kept);
  }

  read(chunk: Buffer): ReadOutcome {
    if (this.#bodyLeft >= 0) return this.#takeBody(chunk, 0);
    let bytes = chunk;
    if (this.#held !== undefined) {
      bytes = Buffer.concat([this.#held, chunk]);
      this.#held = undefined;
    }
    const end = bytes.indexOf(endOfHead);
    if (end < 0) {
      if (bytes.length > headBytesMax) return this.#refuse('head too long');
      this.#held = Buffer.from(bytes);
      return 'incomplete';
    }
    this.status = statusOf(bytes);
    if (this.status < 200) return this.#refuse('not a final HTTP/1.1 status line');
    if (this.#sampled) this.head = bytes.toString('latin1', 0, end);
    const length = bodiless(this.status) ? 0 : this.#contentLength(bytes, end);
    if (length < 0) return this.#refuse(`status ${this.status} without a usable Content-Length`);
    this.#bodyLeft = length;
    return this.#takeBody(bytes, end + 4);
  }

  #takeBody(bytes: Buffer, start: number): ReadOutcome {
    const arrived = bytes.length - start;
    if (arrived > this.#bodyLeft) return this.#refuse('bytes beyond Content-Length');
    if (this.#sampled && arrived > 0) this.#kept.push(Buffer.from(bytes.subarray(start)));
    this.#bodyLeft -= arrived;
    return this.#bodyLeft === 0 ? 'complete' : 'incomplete';
  }

  #contentLength(bytes: Buffer, end: number): number {
    let at = this.#lengthAt;
    if (at === 0 || at >= end || !isNamedAt(bytes, at - lengthName.length)) {
      at = findLength(bytes, end);
      if (at < 0) return -1;
      this.#lengthAt = at;
    }
    return numberAt(bytes, at);
  }

  #refuse(fault: string): ReadOutcome {
    this.fault = fault;
    return 'malformed';
  }
}

function bodiless(status: number): boolean {
  return status === 304 || status === 204;
}

/** Three digits after `HTTP/1.1 `, or 0. */
function statusOf(bytes: Buffer): number {
  if (bytes.length < 13 || bytes[0] !== 72 || bytes[5] !== 49 || bytes[7] !== 49 || bytes[8] !== 32) return 0;
  const hundreds = (bytes[9] ?? 0) - 48;
  const tens = (bytes[10] ?? 0) - 48;
  const ones = (bytes[11] ?? 0) - 48;
  return hundreds * 100 + tens * 10 + ones;
}

function findLength(bytes: Buffer, end: number): number {
  for (let at = 0; at < end; at += 1) {
    if (bytes[at] === lineFeed && isNamedAt(bytes, at + 1)) return at + 1 + lengthName.length;
  }
  return -1;
}

function isNamedAt(bytes: Buffer, start: number): boolean {
  if (start < 1 || bytes[start - 1] !== lineFeed) return false;
  for (let index = 0; index < lengthName.length; index += 1) {
    const byte = bytes[start + index] ?? 0;
    const lower = byte >= 65 && byte <= 90 ? byte + 32 : byte;
    if (lower !== lengthName.charCodeAt(index)) return false;
  }
  return true;
}

function numberAt(bytes: Buffer, start: number): number {
  let at = start;
  while (bytes[at] === 32) at += 1;
  let value = 0;
  const first = at;
  for (; bytes[at] !== carriageReturn; at += 1) {
    const digit = (bytes[at] ?? 0) - 48;
    if (digit < 0 || digit > 9) return -1;
    value = value * 10 + digit;
  }
  return at > first ? value : -1;
}
