/**
 * Texts at places of long JSON, found without building its values: 25 MB of `{}` become more than 400 MB of objects. What it finds is what
 * `JSON.parse` and a walk along the pointers would: of equal names the last counts, and of invalid JSON there is nothing.
 */

/** RFC 6901 §4: `~1` first, so that `~01` becomes `~1` and not a slash. */
export function unescapedToken(token: string): string {
  return token.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** JSON of strings and numbers, by their pointers; undefined if the octets are not JSON. */
export type JsonTexts = ReadonlyMap<string, string> | undefined;

/**
 * Yields after every 128 KiB, which take some 3 ms if they are `{}`, so that a caller can give the event loop a turn in between.
 * @param octets valid UTF-8
 */
export function* jsonTexts(octets: Uint8Array, pointers: readonly string[]): Generator<undefined, JsonTexts> {
  return yield* new Scanner(octets, pointers).scan();
}

const stepOctets = 128 * 1024;

declare const TextDecoder: {
  new (label: 'utf-8'): { decode(octets: Uint8Array): string };
};

const utf8 = new TextDecoder('utf-8');

const [quote, backslash, comma, colon, minus, point] = [0x22, 0x5c, 0x2c, 0x3a, 0x2d, 0x2e];
const [openObject, closeObject, openArray, closeArray] = [0x7b, 0x7d, 0x5b, 0x5d];
const [zero, nine, lowerU] = [0x30, 0x39, 0x75];
const byteOrderMark = [0xef, 0xbb, 0xbf];
/** Characters that a backslash escapes, besides `u`. */
const escapes = new Set([...'"\\/bfnrt'].map((character) => character.charCodeAt(0)));
const literals = ['true', 'false', 'null'].map((text) => [...text].map((letter) => letter.charCodeAt(0)));

type Sought = {
  readonly pointer: string;
  readonly tokens: readonly string[];
  /** How many of its tokens lead to where the scanner is. */
  matched: number;
};

/** One pass over the octets. Its methods throw `invalid` where they are not JSON. */
class Scanner {
  readonly #octets: Uint8Array;
  readonly #sought: readonly Sought[];
  readonly #tokensMax: number;
  /** A longer name, as it is written, is none that is sought. */
  readonly #nameOctetsMax: number;
  readonly #found = new Map<string, string>();
  /** The closing character of each open object and array. */
  #closings = new Uint8Array(64);
  #depth = 0;
  /** The number of the current element, by depth, down to the depth of the longest pointer. */
  readonly #indexes: number[] = [];
  #at = 0;
  /** Where to go on in a string of several steps; 0: in none. */
  #stringAt = 0;

  constructor(octets: Uint8Array, pointers: readonly string[]) {
    this.#octets = octets;
    this.#sought = pointers
      .filter((pointer) => pointer === '' || pointer.startsWith('/'))
      .map((pointer) => ({ pointer, tokens: pointer.split('/').slice(1).map(unescapedToken), matched: 0 }));
    this.#tokensMax = Math.max(0, ...this.#sought.map(({ tokens }) => tokens.length));
    // A character has at most six octets: `\u` and four digits.
    const lengths = this.#sought.flatMap(({ tokens }) => tokens.map(({ length }) => length));
    this.#nameOctetsMax = 6 * Math.max(0, ...lengths);
  }

  *scan(): Generator<undefined, JsonTexts> {
    if (byteOrderMark.every((octet, at) => this.#octets[at] === octet)) this.#at = byteOrderMark.length;
    try {
      return yield* this.#values();
    } catch (error) {
      if (error === invalid) return undefined;
      throw error;
    }
  }

  *#values(): Generator<undefined, JsonTexts> {
    let stepEnd = stepOctets;
    for (;;) {
      if (this.#at >= stepEnd) {
        stepEnd = this.#at + stepOctets;
        yield;
      }
      if (this.#closing === closeObject) {
        if (this.#skipSpace() !== quote) throw invalid;
        const start = this.#at;
        while (!this.#endsString()) yield;
        this.#enter(this.#nameFrom(start));
      } else if (this.#closing === closeArray) this.#enter(undefined);
      const octet = this.#skipSpace();
      if (octet === openObject || octet === openArray) {
        if (this.#opens(octet)) continue;
      } else {
        const start = this.#at;
        if (octet === quote) while (!this.#endsString()) yield;
        else this.#scalar(octet);
        this.#note(start);
      }
      if (!this.#goOn()) return this.#found;
    }
  }

  /** Reads the start of an object or array, up to its first member. @returns false if it is empty, and over */
  #opens(octet: number): boolean {
    this.#at += 1;
    this.#open(octet === openObject ? closeObject : closeArray);
    if (this.#skipSpace() !== this.#closing) return true;
    this.#at += 1;
    this.#depth -= 1;
    return false;
  }

  /** Goes on after a value, to the next one. @returns false at the end of the content */
  #goOn(): boolean {
    for (;;) {
      const octet = this.#skipSpace();
      if (this.#depth === 0) {
        if (octet !== undefined) throw invalid;
        return false;
      }
      for (const each of this.#sought) if (each.matched === this.#depth) each.matched -= 1;
      this.#at += 1;
      if (octet === comma) return true;
      if (octet !== this.#closing) throw invalid;
      this.#depth -= 1;
    }
  }

  get #closing(): number | undefined {
    return this.#closings[this.#depth];
  }

  #open(closing: number): void {
    this.#depth += 1;
    if (this.#depth === this.#closings.length) {
      const longer = new Uint8Array(2 * this.#depth);
      longer.set(this.#closings);
      this.#closings = longer;
    }
    this.#closings[this.#depth] = closing;
    if (this.#depth <= this.#tokensMax) this.#indexes[this.#depth] = -1;
  }

  /** Notes what is sought at the member of this name, or counts the element. */
  #enter(name: string | undefined): void {
    const depth = this.#depth;
    if (depth > this.#tokensMax) return;
    const index = (this.#indexes[depth] ?? -1) + 1;
    this.#indexes[depth] = index;
    const token = this.#closing === closeObject ? name : String(index);
    for (const each of this.#sought) {
      if (each.matched !== depth - 1 || each.tokens[depth - 1] !== token || token === undefined) continue;
      each.matched = depth;
      // Of equal names the last counts.
      this.#found.delete(each.pointer);
    }
  }

  /** Reads up to the value. @returns undefined if it is too long, or too deep, to be sought */
  #nameFrom(start: number): string | undefined {
    const end = this.#at;
    if (this.#skipSpace() !== colon) throw invalid;
    this.#at += 1;
    if (this.#depth > this.#tokensMax || end - start - 2 > this.#nameOctetsMax) return undefined;
    return JSON.parse(utf8.decode(this.#octets.subarray(start, end))) as string;
  }

  #scalar(first: number | undefined): void {
    if (first === minus || isDigit(first)) this.#number();
    else this.#literal(first);
  }

  /** Keeps the text of a string or number that is sought. */
  #note(start: number): void {
    const first = this.#octets[start];
    if (first !== quote && first !== minus && !isDigit(first)) return;
    for (const { pointer, tokens, matched } of this.#sought) {
      if (matched !== this.#depth || tokens.length !== matched) continue;
      this.#found.set(pointer, utf8.decode(this.#octets.subarray(start, this.#at)));
    }
  }

  #literal(first: number | undefined): void {
    const literal = literals.find(([letter]) => letter === first);
    if (literal?.every((letter, index) => this.#octets[this.#at + index] === letter) !== true) throw invalid;
    this.#at += literal.length;
  }

  /** Reads on in a string, at most one step of it. @returns true at its end */
  #endsString(): boolean {
    const octets = this.#octets;
    let at = this.#stringAt === 0 ? this.#at + 1 : this.#stringAt;
    const stepEnd = at + stepOctets;
    for (let octet = octets[at]; octet !== quote; octet = octets[at]) {
      if (at >= stepEnd) {
        this.#stringAt = at;
        return false;
      }
      if (octet === undefined || octet < 0x20) throw invalid;
      at += octet === backslash ? this.#escapeLength(at) : 1;
    }
    this.#stringAt = 0;
    this.#at = at + 1;
    return true;
  }

  #escapeLength(at: number): number {
    const octet = this.#octets[at + 1] ?? 0;
    if (escapes.has(octet)) return 2;
    if (octet !== lowerU) throw invalid;
    for (let digit = at + 2; digit < at + 6; digit += 1) if (!isHexDigit(this.#octets[digit])) throw invalid;
    return 6;
  }

  #number(): void {
    if (this.#octets[this.#at] === minus) this.#at += 1;
    if (this.#octets[this.#at] === zero) this.#at += 1;
    else this.#digits();
    if (this.#octets[this.#at] === point) {
      this.#at += 1;
      this.#digits();
    }
    if (((this.#octets[this.#at] ?? 0) | 0x20) !== 0x65) return;
    this.#at += 1;
    const sign = this.#octets[this.#at];
    if (sign === minus || sign === 0x2b) this.#at += 1;
    this.#digits();
  }

  #digits(): void {
    const start = this.#at;
    while (isDigit(this.#octets[this.#at])) this.#at += 1;
    if (this.#at === start) throw invalid;
  }

  #skipSpace(): number | undefined {
    const octets = this.#octets;
    let at = this.#at;
    let octet = octets[at];
    while (octet === 0x20 || octet === 0x0a || octet === 0x0d || octet === 0x09) octet = octets[++at];
    this.#at = at;
    return octet;
  }
}

const invalid = new Error('the octets are not JSON');

function isDigit(octet: number | undefined): boolean {
  return octet !== undefined && octet >= zero && octet <= nine;
}

function isHexDigit(octet: number | undefined): boolean {
  const letter = (octet ?? 0) | 0x20;
  return isDigit(octet) || (letter >= 0x61 && letter <= 0x66);
}
