/**
 * Messages between the calling thread and the writer. A batch travels as one array of numbers and one text, read by position: the clone of
 * each string or object by itself costs several times as much (32 units: 1.7 µs a unit as an array of strings and numbers, 0.6 so), and
 * both threads pay for it. A long text travels in pieces, each joined and copied in a turn of the event loop: 13 million characters at once held
 * it for 54 ms, and once more to send them.
 */
import type { MessagePort } from 'node:worker_threads';
import type { ProvisionalRevisions } from '../../lines.ts';
import type { Change, Commit, EventEntry, StorageFault, Table, Unit } from '../../store.ts';
import type { HomeData } from '../home-state.ts';

/** Units, encoded one after the other (`encodeUnit`). */
export type EncodedUnits = {
  readonly units: number;
  /** A text is its length here and its characters in a piece; null is -1 for a text, NaN for a number. */
  readonly numbers: Float64Array<ArrayBuffer>;
  /** The texts, joined in order; each is whole in one piece. */
  readonly pieces: readonly string[];
};

/** Units as they are sent after all pieces but the last. */
export type SentUnits = Omit<EncodedUnits, 'pieces'> & {
  readonly piecesBefore: number;
  readonly lastPiece: string;
};

/** Characters of the shortest piece: its turn takes 4 to 8 ms. */
export const charactersPerPiece = 1024 * 1024;

export type WriterData = HomeData & {
  readonly tables: readonly Table[];
  /** Time after a write in which the log is truncated. */
  readonly logTruncateMs: number;
};

/** What a store sends before a request: a piece of the text of its next batch. */
export type Piece = { readonly kind: 'piece'; readonly text: string };

export type Request =
  | { readonly kind: 'commit'; readonly batch: SentUnits }
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
  /** Characters that are in no piece yet. */
  #characters = 0;
  #units = 0;
  #pieces = 0;
  #textsInPieces = 0;

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

  /** After the last unit. @returns the next piece of the text; undefined if the rest of it is short. A piece has whole texts. */
  takePiece(): string | undefined {
    if (this.#characters <= charactersPerPiece) return undefined;
    const first = this.#textsInPieces;
    const left = this.#characters - charactersPerPiece;
    while (this.#characters > left) this.#characters -= this.#texts[this.#textsInPieces++]?.length ?? 0;
    this.#pieces += 1;
    return this.#texts.slice(first, this.#textsInPieces).join('');
  }

  finish(): SentUnits {
    return {
      units: this.#units,
      numbers: new Float64Array(this.#numbers),
      piecesBefore: this.#pieces,
      lastPiece: this.#texts.slice(this.#textsInPieces).join(''),
    };
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
  /** Those after `#piece`. */
  readonly #pieces: string[];
  #piece: string;
  /** Characters of the pieces before `#piece`. */
  #pieceAt = 0;
  #at = 0;
  #textAt = 0;
  #end = 0;
  #textEnd = 0;

  constructor({ numbers, pieces }: EncodedUnits) {
    this.#numbers = numbers;
    this.#pieces = [...pieces];
    this.#piece = this.#pieces.shift() ?? '';
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
    const length = this.number();
    while (this.#textAt >= this.#pieceAt + this.#piece.length && this.#pieces.length > 0) {
      this.#pieceAt += this.#piece.length;
      this.#piece = this.#pieces.shift() ?? '';
    }
    const start = this.#textAt - this.#pieceAt;
    this.#textAt += length;
    return this.#piece.slice(start, start + length);
  }

  textOrNull(): string | null {
    if (this.#numbers[this.#at] !== -1) return this.text();
    this.#at += 1;
    return null;
  }
}
