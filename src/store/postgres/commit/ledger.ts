/**
 * The state in which a batch is judged: what the database returned (commit-carefully.ts), plus the effects of accepted units and of earlier
 * changes of the current unit. `undo` reverts a refused unit. It holds only what the batch needs: rows that it changes or refers to,
 * holders of unique values that it wants, and counts of rows that refer to removed ones.
 */
import type { Field, Scalar } from '../../../model/field.ts';
import { memberAt } from '../../../model/matches.ts';
import { instantKey } from '../../../model/timestamp.ts';
import { kindOf } from '../../field-value.ts';
import type { NextRow, Row } from '../../store.ts';
import type { CommitTable } from './commit-table.ts';
import type { Naming } from './statements.ts';

export type RowState = {
  readonly before: Row | undefined;
  readonly now: Row | undefined;
  /** The row's last new state; undefined while unchanged. */
  readonly next: NextRow | undefined;
  readonly changed: boolean;
  /** Place of the unit that changed it last. */
  readonly place: number;
  /** True if it was removed in between, so that one update of the previous row is not enough. */
  readonly gone: boolean;
};

export class Ledger {
  readonly #rows: Map<string, RowState>[];
  /** Undeleted rows that others refer to and that the batch does not change. */
  readonly #live: Set<string>[];
  /** For each table and each of its unique fields: the id of the row that holds a value. */
  readonly #holders: Map<Scalar, string>[][];
  /** For each table and each of its dependants: the number of rows that refer to an id. */
  readonly #namings: Map<string, number>[][];
  readonly #undos: (() => void)[] = [];

  constructor(tables: readonly CommitTable[]) {
    this.#rows = tables.map(() => new Map());
    this.#live = tables.map(() => new Set());
    this.#holders = tables.map(({ layout }) => layout.table.unique.map(() => new Map()));
    this.#namings = tables.map(({ dependants }) => dependants.map(() => new Map()));
  }

  addRow(table: CommitTable, row: Row): void {
    this.#rows[table.place]?.set(row.id, { ...untouched, before: row, now: row });
  }

  addLive(table: CommitTable, id: string): void {
    this.#live[table.place]?.add(id);
  }

  /** @param unique index among the table's unique fields */
  addHolder(table: CommitTable, unique: number, value: Scalar, id: string): void {
    this.#holders[table.place]?.[unique]?.set(value, id);
  }

  /** @param dependant index among the table's dependants */
  addNamings(table: CommitTable, dependant: number, id: string, count: number): void {
    this.#namings[table.place]?.[dependant]?.set(id, count);
  }

  stateOf(table: CommitTable, id: string): RowState {
    return this.#rows[table.place]?.get(id) ?? untouched;
  }

  isLive(place: number, id: string): boolean {
    const state = this.#rows[place]?.get(id);
    if (state === undefined) return this.#live[place]?.has(id) ?? false;
    return state.now !== undefined && state.now.deletedAt === null;
  }

  holder(table: CommitTable, unique: number, value: Scalar): string | undefined {
    return this.#holders[table.place]?.[unique]?.get(value);
  }

  namings(table: CommitTable, dependant: number, id: string): number {
    return this.#namings[table.place]?.[dependant]?.get(id) ?? 0;
  }

  /** Changes the row to `next`, or removes it. @param by the unit's revision and its place in the batch */
  change(
    tables: readonly CommitTable[],
    table: CommitTable,
    id: string,
    next: NextRow | null,
    by: { readonly rev: number; readonly place: number },
  ): void {
    const rows = this.#rows[table.place];
    const was = this.stateOf(table, id);
    const now = next === null ? undefined : rowOfNext(id, by.rev, next);
    this.#releaseValues(table, was.now);
    this.#countNamings(tables, table, was.now, -1);
    set(this.#undos, rows, id, {
      before: was.before,
      now,
      next: next ?? undefined,
      changed: true,
      place: by.place,
      gone: was.gone || next === null,
    });
    this.#holdValues(table, now);
    this.#countNamings(tables, table, now, 1);
  }

  /** Accepts the current unit: its changes stay. */
  keep(): void {
    this.#undos.length = 0;
  }

  /** Refuses the current unit: reverts its changes. */
  undo(): void {
    for (let undo = this.#undos.pop(); undo !== undefined; undo = this.#undos.pop()) undo();
  }

  #releaseValues(table: CommitTable, row: Row | undefined): void {
    this.#eachValue(table, row, (holders, value, id) => {
      if (holders.get(value) === id) set(this.#undos, holders, value, undefined);
    });
  }

  #holdValues(table: CommitTable, row: Row | undefined): void {
    this.#eachValue(table, row, (holders, value, id) => set(this.#undos, holders, value, id));
  }

  #eachValue(
    table: CommitTable,
    row: Row | undefined,
    use: (holders: Map<Scalar, string>, value: Scalar, id: string) => void,
  ): void {
    const { unique } = table.layout.table;
    if (row === undefined || row.deletedAt !== null || unique.length === 0) return;
    const values = fieldValues(unique, row);
    for (const [at, value] of values.entries()) {
      const holders = this.#holders[table.place]?.[at];
      if (value !== null && holders !== undefined) use(holders, value, row.id);
    }
  }

  #countNamings(tables: readonly CommitTable[], table: CommitTable, row: Row | undefined, by: 1 | -1): void {
    if (row === undefined || row.deletedAt !== null || table.references.size === 0) return;
    const namings = [...table.references.values()];
    const values = fieldValues(
      namings.map(({ field }) => field),
      row,
    );
    for (const [at, naming] of namings.entries()) {
      const target = tables[naming.to];
      const value = values[at];
      if (target === undefined || typeof value !== 'string') continue;
      // A reference to itself does not block the removal of a row.
      if (target === table && value === row.id) continue;
      const counts = this.#namings[target.place]?.[dependantOf(target, naming)];
      set(this.#undos, counts, value, (counts?.get(value) ?? 0) + by);
    }
  }
}

/** The values of fields as the database's indexes hold them: the value in the document if it has the field's type. */
export function fieldValues(fields: readonly Field[], row: Row): readonly Scalar[] {
  let resource: unknown;
  return fields.map((field) => {
    if (field.column !== undefined) return columnValue(field.column, row);
    resource ??= JSON.parse(row.doc);
    const value = memberAt(resource, field.path);
    const kind = kindOf(field);
    if (kind === 'text' && typeof value === 'string') return value;
    if (kind === 'instant' && typeof value === 'string') return instantKey(value);
    if (kind === 'number' && typeof value === 'number') return value;
    return kind === 'boolean' && typeof value === 'boolean' ? Number(value) : null;
  });
}

/** Columns of events are not in `Row`, and a rank is no column: none of them is unique or a reference. */
function columnValue(column: NonNullable<Field['column']>, row: Row): Scalar {
  return column in row ? row[column as keyof Row] : null;
}

export function rowOfNext(id: string, rev: number, next: NextRow): Row {
  const { doc, owner, createdAt, updatedAt, deletedAt } = next;
  return { id, rev, doc, owner, createdAt, updatedAt, deletedAt };
}

const untouched: RowState = {
  before: undefined,
  now: undefined,
  next: undefined,
  changed: false,
  place: 0,
  gone: false,
};

function dependantOf(target: CommitTable, naming: Naming): number {
  return target.dependants.findIndex(({ from, field }) => from === naming.from && field === naming.field);
}

/** Sets or removes an entry, and records how to revert that. */
function set<Key, Value>(
  undos: (() => void)[],
  map: Map<Key, Value> | undefined,
  key: Key,
  value: Value | undefined,
): void {
  if (map === undefined) return;
  const before = map.get(key);
  if (value === undefined) map.delete(key);
  else map.set(key, value);
  undos.push(() => {
    if (before === undefined) map.delete(key);
    else map.set(key, before);
  });
}
