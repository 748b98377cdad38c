/**
 * Rows to write or check, collected by table and kind, and the calls for them: one per table and kind, however many rows there are.
 * Within one collection rows are inserted before others are updated or removed, so that a unique value freed by one row and taken by
 * another fails the transaction: which came first is decided only by judging.
 */
import type { EventEntry, NextRow } from '../../store.ts';
import type { Bindable, Call } from '../connection/connection.ts';
import type { CommitTable } from './commit-table.ts';

/** The order of the calls where kinds depend on each other. */
export type Order = 'checks first' | 'removals first';

export class Writes {
  readonly #tables = new Map<CommitTable, TableWrites>();

  of(table: CommitTable): TableWrites {
    let writes = this.#tables.get(table);
    if (writes === undefined) {
      writes = new TableWrites(table);
      this.#tables.set(table, writes);
    }
    return writes;
  }

  /** @param units revisions that the batch draws */
  addCalls(calls: Call[], units: number, order: Order): void {
    const all = [...this.#tables.values()];
    if (order === 'removals first') {
      for (const writes of all) writes.addRemovals(calls);
      for (const writes of all) writes.addUpdates(calls, units);
      for (const writes of all) writes.addInserts(calls, units);
      return;
    }
    for (const writes of all) writes.addChecks(calls);
    for (const writes of all) writes.addInserts(calls, units);
    for (const writes of all) writes.addUpdates(calls, units);
    for (const writes of all) writes.addRemovals(calls);
  }
}

class Columns {
  readonly ids: string[] = [];
  readonly places: number[] = [];
  readonly docs: string[] = [];
  readonly owners: (string | null)[] = [];
  readonly created: number[] = [];
  readonly updated: number[] = [];
  readonly deleted: (number | null)[] = [];
  readonly searches: (string | null)[] = [];

  add(id: string, next: NextRow, place: number): void {
    this.ids.push(id);
    this.places.push(place);
    this.docs.push(next.doc);
    this.owners.push(next.owner);
    this.created.push(next.createdAt);
    this.updated.push(next.updatedAt);
    this.deleted.push(next.deletedAt);
    this.searches.push(next.search);
  }

  rest(searched: boolean, separator: string): Bindable[] {
    const docs = this.docs.join(separator);
    const rest = [this.places, docs, this.owners, this.created, this.updated, this.deleted];
    return searched ? [...rest, this.searches] : rest;
  }
}

class TableWrites {
  readonly #table: CommitTable;
  readonly #inserts = new Columns();
  readonly #updates = new Columns();
  readonly #expected: number[] = [];
  readonly #removed: string[] = [];
  readonly #removedRevs: number[] = [];
  readonly #absent: string[] = [];
  readonly #standing: string[] = [];
  readonly #standingRevs: number[] = [];
  readonly #named = new Set<string>();
  readonly #leaving: string[] = [];

  constructor(table: CommitTable) {
    this.#table = table;
  }

  /** @param place of the unit in the batch, from 1 */
  insert(id: string, next: NextRow, place: number): void {
    this.#inserts.add(id, next, place);
  }

  update(id: string, expected: number, next: NextRow, place: number): void {
    this.#updates.add(id, next, place);
    this.#expected.push(expected);
  }

  remove(id: string, expected: number): void {
    this.#removed.push(id);
    this.#removedRevs.push(expected);
  }

  expectAbsent(id: string): void {
    this.#absent.push(id);
  }

  /** For a row that the unit depends on and leaves as it is. */
  expectStanding(id: string, expected: number): void {
    // Many units of a batch depend on one row, such as those that send webhooks.
    if (this.#standing.at(-1) === id && this.#standingRevs.at(-1) === expected) return;
    this.#standing.push(id);
    this.#standingRevs.push(expected);
  }

  /** For a reference to a row of this table. */
  expectLive(id: string): void {
    this.#named.add(id);
  }

  /** For a row that is removed, softly or not. */
  expectUnnamed(id: string): void {
    this.#leaving.push(id);
  }

  addChecks(calls: Call[]): void {
    const { statements } = this.#table;
    if (this.#absent.length > 0) calls.push({ sql: statements.expectAbsent, values: [this.#absent] });
    if (this.#standing.length > 0) {
      calls.push({ sql: statements.expectStanding, values: [this.#standing, this.#standingRevs] });
    }
    if (this.#named.size > 0) calls.push({ sql: statements.expectLive, values: [[...this.#named]] });
    if (this.#leaving.length > 0) calls.push({ sql: statements.expectUnnamed, values: [this.#leaving] });
  }

  addInserts(calls: Call[], units: number): void {
    const { statements, searched } = this.#table;
    if (this.#inserts.ids.length === 0) return;
    const separator = separatorOf(this.#inserts.docs);
    const rest = this.#inserts.rest(searched, separator);
    calls.push({ sql: statements.insert, values: [units, separator, this.#inserts.ids, ...rest] });
  }

  addUpdates(calls: Call[], units: number): void {
    const { statements, searched } = this.#table;
    if (this.#updates.ids.length === 0) return;
    const separator = separatorOf(this.#updates.docs);
    const rest = this.#updates.rest(searched, separator);
    const values = [units, separator, this.#updates.ids, this.#expected, ...rest];
    calls.push({ sql: statements.update, values });
  }

  addRemovals(calls: Call[]): void {
    if (this.#removed.length === 0) return;
    calls.push({ sql: this.#table.statements.remove, values: [this.#removed, this.#removedRevs] });
  }
}

/** The events of a batch, written after all changes. */
export class Appends {
  readonly #ids: string[] = [];
  readonly #places: number[] = [];
  readonly #types: string[] = [];
  readonly #collections: string[] = [];
  readonly #owners: (string | null)[] = [];
  readonly #docs: string[] = [];
  readonly #documents: (string | null)[] = [];
  readonly #formers: string[] = [];
  readonly #created: number[] = [];

  add(event: EventEntry, place: number): void {
    this.#ids.push(event.id);
    this.#places.push(place);
    this.#types.push(event.type);
    this.#collections.push(event.collection);
    this.#owners.push(event.owner);
    this.#documents.push(event.document ?? null);
    this.#formers.push(event.former ?? '');
    this.#docs.push(event.doc);
    this.#created.push(event.createdAt);
  }

  addCalls(calls: Call[], units: number, events: CommitTable): void {
    if (this.#ids.length === 0) return;
    const separator = separatorOf([...this.#docs, ...this.#formers]);
    calls.push({
      sql: events.statements.append,
      values: [
        units,
        separator,
        this.#ids,
        this.#places,
        this.#types,
        this.#collections,
        this.#owners,
        this.#documents,
        this.#formers.join(separator),
        this.#docs.join(separator),
        this.#created,
      ],
    });
  }
}

/** JSON contains control characters only escaped, but to the store a document is any text. */
const unitSeparator = '\u001f';

/** A text that occurs in none of the documents and cannot overlap itself. */
export function separatorOf(docs: readonly string[]): string {
  let separator = unitSeparator;
  for (let attempt = 1; docs.some((doc) => doc.includes(separator)); attempt += 1) {
    separator = `${unitSeparator}${attempt}\u001e`;
  }
  return separator;
}
