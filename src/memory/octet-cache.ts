/**
 * A cache bounded in octets, not in entries: a client chooses the size of most cached values, and 2,000 compiled
 * queries of 1 MB each are 2 GB. Every cache with keys or values chosen by clients is one of these;
 * src/memory/bounds.ts lists them.
 *
 * A full cache drops the half used less recently. It keeps two maps: a hit in the old map moves the entry to the young
 * map, and a full young map becomes the old one. A hit in the young map costs one look-up, where an exact order of use
 * would rewrite the map each time.
 */

type OctetCacheOptions<Value> = {
  /** Keys and values together; 0 disables the cache. */
  readonly octetsMax: number;
  /** Octets of memory that the value holds besides its key. Called once, when the value is set. */
  readonly octetsOf: (value: Value, key: string) => number;
};

type Entry<Value> = { readonly value: Value; readonly octets: number };

/** Map slot, entry object and string header of one entry: V8 takes 117 octets. */
const entryOctets = 128;

/** Largest entry, as a part of the bound: a larger one would evict everything else. */
const greatestPart = 1 / 8;

export class OctetCache<Value extends {}> {
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

  get size(): number {
    return this.#young.size + this.#old.size;
  }

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

  /** Stores the value under the key, unless it is larger than `entryOctetsMax`. */
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

/** Shorter texts are counted as two octets per character, which is cheaper than a scan. */
const lookedAtFrom = 256;

/** Octets of heap that a text takes. V8 uses two per character if the text has a character above U+00FF. */
export function octetsOfText(text: string): number {
  const { length } = text;
  if (length < lookedAtFrom) return 2 * length;
  // Only ASCII has as many octets in UTF-8 as characters.
  return Buffer.byteLength(text) === length ? length : 2 * length;
}

/** Copies a text, so that it keeps no longer one in memory: a slice of 13 or more characters is a view in V8. */
export function ownText(text: string): string {
  return ` ${text}`.slice(1);
}

/** A slot of an array, a member of an object, or a number on the heap. */
const slotOctets = 16;
/** An object or an array without its members. */
const objectOctets = 48;

/**
 * Estimates the octets of heap of a tree of plain values. A function counts as one object.
 *
 * @param isShared true for objects that live as long as the program anyway, such as declared fields
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

// Remembers in fixed memory whether a text was given before, so that a cache takes in only what is asked a second time. Most lists are asked
// once: keeping each page cost 20 us of garbage collection, where reading it costs 11 (20 rows of 300 octets, two-core machine).
//
// Each text leaves its hash in one of a fixed number of places, and a later text with the same place replaces it. A text that was given
// before may therefore seem new; a new one seems given if its hash is that of another, one in 2^32.
//

/** Only the beginning and the length of a longer text are hashed. */
const lookedAtMax = 1024;

export class SeenBefore {
  readonly #hashes: Uint32Array;

  /** @param places a power of two */
  constructor(places: number) {
    this.#hashes = new Uint32Array(places);
  }

  /** Notes the text; true if it was noted before. */
  note(text: string): boolean {
    const hash = hashOf(text);
    const place = hash & (this.#hashes.length - 1);
    const isKnown = this.#hashes[place] === hash;
    this.#hashes[place] = hash;
    return isKnown;
  }
}

/** FNV-1a over UTF-16 code units. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5 ^ text.length;
  const end = Math.min(text.length, lookedAtMax);
  for (let at = 0; at < end; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}
