/**
 * A cache bounded by the memory that it holds, in octets, and not by a count: a client chooses the size of most things that are
 * worth keeping, and 2,000 compiled queries of 1 MB each are 2 GB. Every cache of the program whose keys or values a client chooses
 * is one of these; src/memory/bounds.ts lists them.
 *
 * The least recently used half goes when the cache is full. Two maps take turns: what is found in the old one moves to the young
 * one, and a full young one becomes the old one. A use of an entry in the young map costs one look-up, where an exact order of use
 * would rewrite the map each time.
 */

export type OctetCacheOptions<Value> = {
  /** Keys and values together; 0 keeps nothing. */
  readonly octetsMax: number;
  /** Octets of memory that the value holds besides its key. Called once, when the value is set. */
  readonly octetsOf: (value: Value, key: string) => number;
};

type Entry<Value> = { readonly value: Value; readonly octets: number };

/** Map slot, entry object and string header of one entry: 117 octets measured in V8, rounded up. */
const entryOctets = 128;

/** An entry larger than this part of the bound is not kept: it would push out everything else. */
const greatestPart = 1 / 8;

export class OctetCache<Value extends {}> {
  /** An entry that holds more is not kept. */
  readonly entryOctetsMax: number;
  readonly #octetsOf: OctetCacheOptions<Value>['octetsOf'];
  readonly #youngOctetsMax: number;
  #young = new Map<string, Entry<Value>>();
  #old = new Map<string, Entry<Value>>();
  #youngOctets = 0;
  #oldOctets = 0;

  constructor({ octetsMax, octetsOf }: OctetCacheOptions<Value>) {
    this.#octetsOf = octetsOf;
    this.entryOctetsMax = octetsMax * greatestPart;
    this.#youngOctetsMax = octetsMax / 2;
  }

  /** Entries held. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** Octets held, never more than the bound. */
  get octets(): number {
    return this.#youngOctets + this.#oldOctets;
  }

  get(key: string): Value | undefined {
    const young = this.#young.get(key);
    if (young !== undefined) return young.value;
    const old = this.#old.get(key);
    if (old === undefined) return undefined;
    this.#old.delete(key);
    this.#oldOctets -= old.octets;
    this.#add(key, old);
    return old.value;
  }

  /** Keeps the value under the key in place of an earlier one, unless it is too large to be kept. */
  set(key: string, value: Value): void {
    this.#remove(key);
    const octets = entryOctets + octetsOfText(key) + this.#octetsOf(value, key);
    if (octets <= this.entryOctetsMax) this.#add(key, { value, octets });
  }

  /** Removes the entry; with a value given, only if the entry still holds that value. */
  delete(key: string, value?: Value): void {
    if (value === undefined || this.#peek(key) === value) this.#remove(key);
  }

  clear(): void {
    this.#young = new Map();
    this.#old = new Map();
    this.#youngOctets = 0;
    this.#oldOctets = 0;
  }

  #peek(key: string): Value | undefined {
    return (this.#young.get(key) ?? this.#old.get(key))?.value;
  }

  #add(key: string, entry: Entry<Value>): void {
    if (this.#youngOctets + entry.octets > this.#youngOctetsMax) {
      this.#old = this.#young;
      this.#oldOctets = this.#youngOctets;
      this.#young = new Map();
      this.#youngOctets = 0;
    }
    this.#young.set(key, entry);
    this.#youngOctets += entry.octets;
  }

  #remove(key: string): void {
    const young = this.#young.get(key);
    if (young !== undefined) {
      this.#young.delete(key);
      this.#youngOctets -= young.octets;
      return;
    }
    const old = this.#old.get(key);
    if (old === undefined) return;
    this.#old.delete(key);
    this.#oldOctets -= old.octets;
  }
}

/** Texts shorter than this are taken to be of two octets a character, which is cheaper than to look. */
const lookedAtFrom = 256;

/** Octets of heap that a text holds. V8 uses two for each character of a text that has one above U+00FF. */
export function octetsOfText(text: string): number {
  const { length } = text;
  if (length < lookedAtFrom) return 2 * length;
  // Only ASCII has as many octets in UTF-8 as characters.
  return Buffer.byteLength(text) === length ? length : 2 * length;
}

/** A copy that keeps no longer text in memory: V8 makes a slice of 13 characters and more a view of the text that it was cut from. */
export function ownText(text: string): string {
  return ` ${text}`.slice(1);
}

/** A slot of an array, a member of an object, or a number on the heap. */
const slotOctets = 16;
/** An object or an array without its members. */
const objectOctets = 48;

/**
 * Octets of heap that a tree of plain values holds: texts, numbers, arrays, sets, maps and objects. Functions count as one object.
 *
 * @param isShared true for objects that are held elsewhere for as long as the program runs, such as declared fields
 */
export function octetsOfValue(value: unknown, isShared: (value: object) => boolean = () => false): number {
  let octets = 0;
  const pending: unknown[] = [value];
  while (pending.length > 0) {
    const next = pending.pop();
    octets += slotOctets;
    if (typeof next === 'string') octets += slotOctets + octetsOfText(next);
    else if (typeof next === 'function') octets += objectOctets;
    else if (typeof next === 'object' && next !== null && !isShared(next)) {
      octets += objectOctets;
      if (ArrayBuffer.isView(next)) octets += next.byteLength;
      else for (const member of membersOf(next)) pending.push(member);
    }
  }
  return octets;
}

function membersOf(object: object): Iterable<unknown> {
  if (Array.isArray(object) || object instanceof Set) return object;
  return object instanceof Map ? [...object.keys(), ...object.values()] : Object.values(object);
}
