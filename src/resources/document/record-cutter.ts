/**
 * Cuts content that arrives into the octets of its records, in batches: rows of CSV, lines of NDJSON, items of a JSON array. It finds where
 * records end and the line on which each begins; what is in them is read elsewhere (import-records.ts), mostly on a content thread. It never
 * holds more than a batch, one record and one chunk.
 */

export type RecordFormat = 'csv' | 'ndjson' | 'json';

export type CutRecord = {
  /** The physical line on which it begins, from 1. */
  readonly line: number;
  readonly start: number;
  readonly end: number;
  /** It had more octets than a record may have, which were dropped. */
  readonly isTooLong?: true;
};

export type RecordBatch = { readonly bytes: Uint8Array; readonly records: readonly CutRecord[] };

/** Why no further record can be found. */
export type CutFault = { readonly line: number; readonly message: string };

export type CutBounds = {
  readonly recordBytesMax: number;
  readonly batchRecordsMax: number;
  /** Octets of records after which a batch ends. */
  readonly batchBytesMax: number;
};

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const quote = 0x22;
const comma = 0x2c;
const bracket = 0x5b;
const closingBracket = 0x5d;
const brace = 0x7b;
const closingBrace = 0x7d;
const backslash = 0x5c;
const byteOrderMark = [0xef, 0xbb, 0xbf];

/** Capacity with which it begins. */
const firstBytes = 16 * 1024;

/** Where in a record of CSV, or in a JSON array, the next octet is. */
type CsvPlace = 'start' | 'plain' | 'quoted' | 'closing';
type ArrayPlace = 'before' | 'first' | 'item' | 'after-comma' | 'after';

export class RecordCutter {
  readonly #format: RecordFormat;
  readonly #bounds: CutBounds;
  #bytes = new Uint8Array(firstBytes);
  #length = 0;
  #at = 0;
  /** Where the record under way begins. */
  #start = 0;
  #line = 1;
  #recordLine = 1;
  #isTooLong = false;
  #isMarkRead = false;
  #records: CutRecord[] = [];
  #csv: CsvPlace = 'start';
  #array: ArrayPlace = 'before';
  #depth = 0;
  #isInText = false;
  #isEscaped = false;
  fault: CutFault | undefined;

  constructor(format: RecordFormat, bounds: CutBounds) {
    this.#format = format;
    this.#bounds = bounds;
  }

  /** Octets that it holds. */
  get capacity(): number {
    return this.#bytes.length;
  }

  /** Copies the chunk. Every batch that `next` has must be taken before. */
  take(chunk: Uint8Array): void {
    this.#compact();
    const length = this.#length + chunk.length;
    if (length > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(length, 2 * this.#bytes.length));
      larger.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = larger;
    }
    this.#bytes.set(chunk, this.#length);
    this.#length = length;
  }

  /** The next batch that is full; undefined: more content is needed. */
  next(): RecordBatch | undefined {
    if (!this.#isMarkRead && !this.#skipMark(false)) return undefined;
    this.#cut();
    return this.#isFull ? this.#giveBatch() : undefined;
  }

  /** The last batches, once the content has ended; undefined: there is none. */
  last(): RecordBatch | undefined {
    if (!this.#isMarkRead) this.#skipMark(true);
    this.#cut();
    if (this.#at === this.#length && this.fault === undefined && !this.#isFull) this.#end();
    return this.#records.length > 0 ? this.#giveBatch() : undefined;
  }

  get #isFull(): boolean {
    const { batchRecordsMax, batchBytesMax } = this.#bounds;
    const last = this.#records.at(-1);
    return this.#records.length >= batchRecordsMax || (last !== undefined && last.end >= batchBytesMax);
  }

  /** @returns false if the octets that tell are not there yet */
  #skipMark(isLast: boolean): boolean {
    if (this.#length < byteOrderMark.length && !isLast) return false;
    this.#isMarkRead = true;
    if (byteOrderMark.every((octet, at) => this.#bytes[at] === octet && at < this.#length)) {
      this.#at = byteOrderMark.length;
      this.#start = this.#at;
    }
    return true;
  }

  #cut(): void {
    const cutOne = { csv: this.#cutRow, ndjson: this.#cutLine, json: this.#cutItem }[this.#format];
    while (this.#at < this.#length && this.fault === undefined && !this.#isFull) cutOne.call(this);
    if (this.#at - this.#start > this.#bounds.recordBytesMax && this.fault === undefined) this.#drop();
  }

  /** Scans to the end of a row, or of the octets. */
  #cutRow(): void {
    const bytes = this.#bytes;
    const length = this.#length;
    let place = this.#csv;
    let at = this.#at;
    for (; at < length; at += 1) {
      const octet = bytes[at];
      if (place === 'quoted') {
        if (octet === quote) place = 'closing';
        else if (octet === lineFeed) this.#line += 1;
      } else if (octet === quote && place !== 'plain') place = 'quoted';
      else if (octet === lineFeed) break;
      else place = octet === comma ? 'start' : 'plain';
    }
    this.#at = at;
    this.#csv = place;
    if (at === length) return;
    this.#csv = 'start';
    this.#endLine();
  }

  #cutLine(): void {
    const found = this.#bytes.subarray(0, this.#length).indexOf(lineFeed, this.#at);
    this.#at = found === -1 ? this.#length : found;
    if (found !== -1) this.#endLine();
  }

  /** The record ends with the line at `#at`. */
  #endLine(): void {
    const isReturned = this.#at > this.#start && this.#bytes[this.#at - 1] === carriageReturn;
    this.#add(isReturned ? this.#at - 1 : this.#at);
    this.#at += 1;
    this.#line += 1;
    this.#begin(this.#at);
  }

  #begin(at: number): void {
    this.#start = at;
    this.#recordLine = this.#line;
    this.#isTooLong = false;
  }

  /** Adds the record up to `end`; a blank line is none. */
  #add(end: number): void {
    const line = this.#recordLine;
    const start = this.#start;
    if (this.#isTooLong || end - start > this.#bounds.recordBytesMax)
      this.#records.push({ line, start: end, end, isTooLong: true });
    else if (!this.#isBlank(start, end)) this.#records.push({ line, start, end });
  }

  #isBlank(start: number, end: number): boolean {
    for (let at = start; at < end; at += 1) if (!isSpace(this.#bytes[at])) return false;
    return true;
  }

  /** Scans to the end of an item, or to the next one. */
  #cutItem(): void {
    if (this.#array === 'item') {
      this.#scanItem();
      return;
    }
    const octet = this.#bytes[this.#at];
    if (octet === lineFeed) this.#line += 1;
    if (isSpace(octet)) this.#at += 1;
    else if (this.#enter(octet)) return;
    this.#begin(this.#at);
  }

  /** An octet that is no white space, outside of an item. @returns true if an item begins with it */
  #enter(octet: number | undefined): boolean {
    const fail = (message: string) => {
      this.fault = { line: this.#line, message };
    };
    if (this.#array === 'before') {
      if (octet !== bracket) fail('the content must be an array of documents');
      this.#array = 'first';
      this.#at += 1;
    } else if (this.#array === 'after') fail('there is text after the array');
    else if (octet === closingBracket && this.#array === 'first') {
      this.#array = 'after';
      this.#at += 1;
    } else if (octet === closingBracket || octet === comma) fail('a document is missing beside a comma');
    else {
      this.#begin(this.#at);
      this.#array = 'item';
      this.#depth = 0;
      return true;
    }
    return false;
  }

  #scanItem(): void {
    const bytes = this.#bytes;
    const length = this.#length;
    for (let at = this.#at; at < length; at += 1) {
      const octet = bytes[at];
      if (octet === lineFeed) this.#line += 1;
      if (this.#isInText) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (octet === backslash) this.#isEscaped = true;
        else if (octet === quote) this.#isInText = false;
      } else if (octet === quote) this.#isInText = true;
      else if (octet === brace || octet === bracket) this.#depth += 1;
      else if (this.#depth === 0 && (octet === comma || octet === closingBracket)) {
        this.#add(at);
        this.#array = octet === comma ? 'after-comma' : 'after';
        this.#at = at + 1;
        this.#begin(this.#at);
        return;
      } else if (octet === closingBrace || octet === closingBracket) this.#depth -= 1;
    }
    this.#at = length;
  }

  /** The content has ended. */
  #end(): void {
    if (this.#format === 'json') {
      if (this.#array !== 'after') this.fault = { line: this.#line, message: 'the array is not closed' };
      return;
    }
    if (this.#csv === 'quoted') {
      this.fault = {
        line: this.#recordLine,
        message: 'a quote is not closed in the record that begins here',
      };
      return;
    }
    this.#add(this.#length);
    this.#begin(this.#length);
  }

  /** Drops the octets of a record that is too long. */
  #drop(): void {
    this.#isTooLong = true;
    this.#at = this.#start;
    this.#length = this.#start;
  }

  #giveBatch(): RecordBatch {
    const end = this.#records.at(-1)?.end ?? 0;
    const batch = { bytes: this.#bytes.slice(0, end), records: this.#records };
    this.#records = [];
    this.#compact();
    return batch;
  }

  /** Moves the record under way to the front. */
  #compact(): void {
    if (this.#records.length > 0) return;
    this.#bytes.copyWithin(0, this.#start, this.#length);
    this.#length -= this.#start;
    this.#at -= this.#start;
    this.#start = 0;
  }
}

function isSpace(octet: number | undefined): boolean {
  return octet === 0x20 || octet === 0x09 || octet === lineFeed || octet === carriageReturn;
}
