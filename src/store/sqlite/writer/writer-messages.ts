/**
 * Messages between the calling thread and the writer. Units travel as one flat array per batch, read by position: structured clone of
 * nested objects costs several times as much, and the writer's time limits the commits per second.
 */

import type { MessagePort } from 'node:worker_threads';
import type { ProvisionalRevisions } from '../../provisional-revisions.ts';
import type { Commit, EventEntry, StorageFault, Table, Unit } from '../../store.ts';
import type { HomeData } from '../home-state.ts';

export type Cell = string | number | null;

export type WriterData = HomeData & {
  readonly tables: readonly Table[];
  /** Time after a write in which the log is truncated. */
  readonly logTruncateMs: number;
};

export type Request =
  | { readonly kind: 'commit'; readonly units: number; readonly cells: readonly Cell[] }
  | {
      readonly kind: 'purge';
      readonly table: string;
      readonly updatedBefore: number;
      readonly ids: readonly string[];
    }
  /** Rewrites a row without change, to learn if there is space again. */
  | { readonly kind: 'probe' };

/** What the home of the store (home.ts) tells the writer: that another store joins it, or to end. */
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

/** Encodes a unit without a provisional revision. */
export const noRevision = 0;

export type Encoding = {
  /** Index of a table by its name. */
  readonly indexOf: ReadonlyMap<string, number>;
  readonly revisions: Pick<ProvisionalRevisions, 'resolve'>;
};

/**
 * Appends a unit: the number of its cells, its provisional revision, its changes, its events, each list preceded by its length.
 * @throws TypeError for an undeclared table; then nothing is appended
 */
export function encodeUnit(unit: Unit, { indexOf, revisions }: Encoding, cells: Cell[]): void {
  const start = cells.length;
  cells.push(0, unit.provisional ?? noRevision, unit.changes.length);
  for (const change of unit.changes) {
    const table = indexOf.get(change.table);
    if (table === undefined) {
      cells.length = start;
      throw new TypeError(`no table is named ${change.table}`);
    }
    cells.push(table, change.id, 'rev' in change.expect ? revisions.resolve(change.expect.rev) : absentRev);
    const { next } = change;
    if (next === null) {
      cells.push(0);
      continue;
    }
    cells.push(1, next.doc, next.owner, next.createdAt, next.updatedAt, next.deletedAt, next.search);
    cells.push(next.references.length);
    for (const reference of next.references) cells.push(reference.field, reference.id);
  }
  cells.push(unit.events.length);
  for (const event of unit.events) encodeEvent(event, cells);
  cells[start] = cells.length - start - 1;
}

function encodeEvent(event: EventEntry, cells: Cell[]): void {
  cells.push(event.id, event.type, event.collection, event.owner, event.doc, event.createdAt);
}

/** Characters of a unit's texts, which bound a batch besides the number of units. */
export function unitCharacters(unit: Unit): number {
  let characters = 0;
  for (const { next } of unit.changes) {
    if (next !== null) characters += next.doc.length + (next.search?.length ?? 0);
  }
  for (const event of unit.events) characters += event.doc.length;
  return characters;
}

export class CellReader {
  readonly #cells: readonly Cell[];
  #at = 0;

  constructor(cells: readonly Cell[]) {
    this.#cells = cells;
  }

  get position(): number {
    return this.#at;
  }

  seek(position: number): void {
    this.#at = position;
  }

  number(): number {
    return this.#cells[this.#at++] as number;
  }

  text(): string {
    return this.#cells[this.#at++] as string;
  }

  textOrNull(): string | null {
    return this.#cells[this.#at++] as string | null;
  }

  numberOrNull(): number | null {
    return this.#cells[this.#at++] as number | null;
  }
}
