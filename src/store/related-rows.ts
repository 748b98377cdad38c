/**
 * The rows that references name, as filters over references see them while one decision is made (§5.9): each is read as it is now, and what
 * the decision rests on can be expected by the unit that follows from it.
 *
 * An engine that answers at once is asked within the decision. For another the decision notes what it lacks, taking it for absent, and is
 * made again when that has been read: as often as references follow each other, and for a few rows at a time.
 * Of a row only the values that were asked for stay in memory, for documents may be long and many.
 */
import { valueAt } from '../http/syntax/json-members.ts';
import type { Field } from '../model/field.ts';
import type { Matchable } from '../model/matches.ts';
import type { Change, MaybePromise, Row, RowName, Store } from './store.ts';

/** Documents in memory at once. */
const documentsMax = 64;

type Known = RowName & {
  /** Undefined: there is no row. */
  readonly row: Pick<Row, 'rev' | 'owner' | 'deletedAt'> | undefined;
  /** The document, until `documentsMax` others were read. */
  doc: string | undefined;
  readonly values: Map<string, unknown>;
};

export class RelatedRows {
  readonly #store: Pick<Store, 'read'>;
  readonly #known = new Map<string, Known>();
  /** The latest rows with their documents, the oldest first. */
  readonly #held: Known[] = [];
  /** What the decision lacks. */
  readonly #lacking = new Set<string>();
  /** Reads that the decision began. */
  #reading: Promise<void>[] = [];

  constructor(store: Pick<Store, 'read'>) {
    this.#store = store;
  }

  /** For `matches`; a row that must be waited for counts as absent until it is loaded. */
  readonly find = (table: string, id: string): Matchable | undefined => {
    const known = this.#knownOf(table, id);
    return known?.row?.deletedAt === null ? this.#matchable(known, this.find) : undefined;
  };

  /** The same, with deleted rows as the store has them. A row that was not deleted is the one that `find` returns. */
  readonly findDeletedToo = (table: string, id: string): Matchable | undefined => {
    const known = this.#knownOf(table, id);
    return known?.row === undefined ? undefined : this.#matchable(known, this.findDeletedToo);
  };

  /** Reads what the decision lacked; undefined if it lacked nothing. @throws StoreUnavailable */
  load(): Promise<void> | undefined {
    if (this.#reading.length === 0) return undefined;
    const reading = this.#reading;
    this.#reading = [];
    this.#lacking.clear();
    return Promise.all(reading).then(() => undefined);
  }

  /** The rows as they were read first, for the unit that rests on the decision. */
  expectations(): readonly Change[] {
    return [...this.#known.values()].map(({ table, id, row }) => ({
      table,
      id,
      expect: row === undefined ? { absent: true } : { rev: row.rev },
      next: null,
      stays: true,
    }));
  }

  #knownOf(table: string, id: string): Known | undefined {
    return this.#known.get(keyOf(table, id)) ?? this.#ask({ table, id });
  }

  #matchable(known: Known, related: NonNullable<Matchable['related']>): Matchable {
    return { search: null, related, value: (field) => this.#valueOf(known, field) };
  }

  /** Returns the row if the engine answers at once. */
  #ask(name: RowName): Known | undefined {
    const key = keyOf(name.table, name.id);
    if (this.#lacking.has(key) || this.#reading.length >= documentsMax) return undefined;
    const answer = this.#store.read(name.table, name.id);
    if (!(answer instanceof Promise)) return this.#keep(key, name, answer);
    this.#lacking.add(key);
    const reading = answer.then((row) => void this.#keep(key, name, row));
    // The caller of `load` gets the failure.
    reading.catch(() => undefined);
    this.#reading.push(reading);
    return undefined;
  }

  /** The revision that the first read found is expected, whatever a later one finds. */
  #keep(key: string, name: RowName, found: Row | undefined): Known {
    const before = this.#known.get(key);
    const row = found === undefined ? undefined : pick(found);
    const known = before ?? { ...name, row, doc: undefined, values: new Map<string, unknown>() };
    known.doc = found?.doc ?? '';
    this.#known.set(key, known);
    this.#held.push(known);
    if (this.#held.length > documentsMax) {
      const [oldest] = this.#held.splice(0, 1);
      if (oldest !== undefined && oldest !== known) oldest.doc = undefined;
    }
    return known;
  }

  #valueOf(known: Known, { column, path }: Field): unknown {
    if (column === 'id') return known.id;
    if (column === 'owner') return known.row?.owner;
    const key = path.join('\0');
    if (known.values.has(key)) return known.values.get(key);
    if (known.doc === undefined) this.#ask(known);
    if (known.doc === undefined) return undefined;
    const value = valueAt(known.doc, path);
    known.values.set(key, value);
    return value;
  }
}

function pick({ rev, owner, deletedAt }: Row): Known['row'] {
  return { rev, owner, deletedAt };
}

function keyOf(table: string, id: string): string {
  return `${table} ${id}`;
}

/** The decision, made again until it lacks no row. It must do nothing but decide. */
export function judged<T>(rows: Pick<RelatedRows, 'load'>, decide: () => T): MaybePromise<T> {
  const decision = decide();
  const loading = rows.load();
  return loading === undefined ? decision : loading.then(() => judged(rows, decide));
}
