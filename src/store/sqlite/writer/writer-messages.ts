/**
 * Messages between the calling thread and the writer. A batch travels as one array of numbers and one text, read by position: the clone of
 * each string or object by itself costs several times as much (32 units: 1.7 µs a unit as an array of strings and numbers, 0.6 so), and
 * both threads pay for it.
 */

import type { MessagePort } from 'node:worker_threads';
import type { ProvisionalRevisions } from '../../line.ts';
import type { Change, Commit, EventEntry, StorageFault, Table, Unit } from '../../store.ts';
import type { HomeData } from '../home-state.ts';

/** Units, encoded one after the other (`encodeUnit`). */
export type EncodedUnits = {
  readonly units: number;
  /** A text is its length here and its characters in `text`; null is -1 for a text, NaN for a number. */
  readonly numbers: Float64Array<ArrayBuffer>;
  readonly text: string;
};

export type WriterData = HomeData & {
  readonly tables: readonly Table[];
  /** Time after a write in which the log is truncated. */
  readonly logTruncateMs: number;
};

export type Request =
  | { readonly kind: 'commit'; readonly batch: EncodedUnits }
  | {
      readonly kind: 'purge';
      readonly table: string;
      readonly updatedBefore: number;
      readonly ids: readonly string[];
    }
  /** Rewrites a row without change, to learn if there is space again. */
  | { readonly kind: 'probe' };

/** Commands from home.ts to the writer: connect another store, or end. */
export type HomeMessage = { readonly kind: 'join'; readonly port: MessagePort } | { readonly kind: 'end' };

/** A unit that was not committed; `error` if its own values are invalid. */
export type Refusal =
  | { readonly unit: number; readonly commit: Commit }
  | { readonly unit: number; readonly error: Error };

export type Reply =
  /** The committed units have the revisions from `firstRev` on, in order. */
  | {
      readonly kind: 'committed';
      readonly firstRev: number;
      readonly refusals: readonly Refusal[];
    }
  | { readonly kind: 'purged'; readonly rows: number }
  | { readonly kind: 'probed' }
  /** The request had no effect. */
  | { readonly kind: 'failed'; readonly message: string; readonly fault: StorageFault | undefined }
  /** No reply: other stores changed these tables, by their numbers in the counters. */
  | { readonly kind: 'changed'; readonly tables: readonly number[] };

/** Encodes `expect: {absent: true}`; revisions are above it, provisional ones of units of the same batch below. */
export const absentRev = -1;

/** What a change does with its row. */
export const actRemoves = 0;
export const actPuts = 1;
export const actStays = 2;

/** Encodes a unit without a provisional revision. */
export const noRevision = 0;

export type Encoding = {
  /** Index of a table by its name. */
  readonly indexOf: ReadonlyMap<string, number>;
  readonly revisions: Pick<ProvisionalRevisions, 'resolve'>;
};

export class UnitEncoder {
  readonly #encoding: Encoding;
  readonly #numbers: number[] = [];
  readonly #texts: string[] = [];
  #characters = 0;
  #units = 0;

  constructor(encoding: Encoding) {
    this.#encoding = encoding;
  }

  /**
   * Appends a unit: how many numbers and characters it takes, its provisional revision, its changes, its events, each list preceded by
   * its length.
   * @throws TypeError for an undeclared table or a value of another type; then nothing is appended
   */
  append(unit: Unit): void {
    const numbers = this.#numbers;
    const [start, texts, characters] = [numbers.length, this.#texts.length, this.#characters];
    try {
      numbers.push(0, 0, unit.provisional ?? noRevision, unit.changes.length);
      for (const change of unit.changes) this.#appendChange(change);
      numbers.push(unit.events.length);
      for (const event of unit.events) this.#appendEvent(event);
    } catch (error) {
      numbers.length = start;
      this.#texts.length = texts;
      this.#characters = characters;
      throw error;
    }
    numbers[start] = numbers.length - start;
    numbers[start + 1] = this.#characters - characters;
    this.#units += 1;
  }

  finish(): EncodedUnits {
    return { units: this.#units, numbers: new Float64Array(this.#numbers), text: this.#texts.join('') };
  }

  #appendChange({ table, id, expect, next, stays }: Change): void {
    const { indexOf, revisions } = this.#encoding;
    const index = indexOf.get(table);
    if (index === undefined) throw new TypeError(`no table is named ${table}`);
    const numbers = this.#numbers;
    const act = stays === true ? actStays : next === null ? actRemoves : actPuts;
    numbers.push(index, 'rev' in expect ? revisions.resolve(expect.rev) : absentRev, act);
    this.#appendText(id);
    if (next === null) return;
    numbers.push(next.createdAt, next.updatedAt, next.deletedAt ?? Number.NaN, next.references.length);
    this.#appendText(next.doc);
    this.#appendText(next.owner);
    this.#appendText(next.search);
    for (const { field, id: target } of next.references) {
      this.#appendText(field);
      this.#appendText(target);
    }
  }

  #appendEvent({ id, type, collection, owner, document, former, doc, createdAt }: EventEntry): void {
    this.#appendText(id);
    this.#appendText(type);
    this.#appendText(collection);
    this.#appendText(owner);
    this.#appendText(document ?? null);
    this.#appendText(former ?? null);
    this.#appendText(doc);
    this.#numbers.push(createdAt);
  }

  #appendText(text: string | null): void {
    if (typeof text === 'string') {
      this.#numbers.push(text.length);
      this.#texts.push(text);
      this.#characters += text.length;
    } else if (text === null) this.#numbers.push(-1);
    else throw new TypeError('a unit holds a value that is neither a text nor null');
  }
}

/** Reads a batch in the order in which it was encoded. */
export class UnitReader {
  readonly #numbers: Float64Array;
  readonly #text: string;
  #at = 0;
  #textAt = 0;
  #end = 0;
  #textEnd = 0;

  constructor({ numbers, text }: EncodedUnits) {
    this.#numbers = numbers;
    this.#text = text;
  }

  beginUnit(): void {
    this.#end = this.#at + this.number();
    this.#textEnd = this.#textAt + this.number();
  }

  /** Skips the rest of a unit. */
  endUnit(): void {
    this.#at = this.#end;
    this.#textAt = this.#textEnd;
  }

  number(): number {
    return this.#numbers[this.#at++] as number;
  }

  numberOrNull(): number | null {
    const number = this.number();
    return Number.isNaN(number) ? null : number;
  }

  text(): string {
    const start = this.#textAt;
    this.#textAt += this.number();
    return this.#text.slice(start, this.#textAt);
  }

  textOrNull(): string | null {
    if (this.#numbers[this.#at] !== -1) return this.text();
    this.#at += 1;
    return null;
  }
}
