/**
 * Judges each unit of a batch, in order, by the present state, with the same results as SQLite, which tries them (sqlite/writer/apply.ts):
 * a stale revision is reported before any other reason, a unit's changes are judged in their order, its events last. Pure.
 */
import type { Scalar } from '../../../model/field.ts';
import { type Commit, isLeaving, isOnlyExpected, type NextRow, type Row } from '../../store.ts';
import { fieldValues, uniqueValues } from '../../unique-values.ts';
import { type CommitTable, eventsOf, type Naming, type Placed, type Work } from './commit-table.ts';

type Refused = Exclude<Commit, { outcome: 'committed' }>;

export type Judgement = {
  /** For each unit the refusal; undefined if it is accepted. */
  readonly refusals: readonly (Refused | undefined)[];
  readonly accepted: readonly Work[];
  /** Numbers of the tables that accepted units change. */
  readonly touched: readonly number[];
};

/** @param rev the last revision used: accepted units get the following ones */
export function judge(
  works: readonly Work[],
  ledger: Ledger,
  tables: readonly CommitTable[],
  rev: number,
): Judgement {
  const refusals: (Refused | undefined)[] = [];
  const accepted: Work[] = [];
  const touched = new Set<number>();
  const events = eventsOf(tables);
  const revisions = new Map<number, number>();
  for (const work of works) {
    const place = accepted.length + 1;
    const refused = judgeUnit(work, { ledger, tables, events, rev: rev + place, place, revisions });
    refusals.push(refused);
    if (refused !== undefined) {
      ledger.undo();
      continue;
    }
    ledger.keep();
    accepted.push(work);
    if (work.unit.provisional !== undefined) revisions.set(work.unit.provisional, rev + place);
    for (const { table, change } of work.changes) if (!isOnlyExpected(change)) touched.add(table.number);
    if (work.unit.events.length > 0) touched.add(events.number);
  }
  return { refusals, accepted, touched: [...touched] };
}

type JudgeContext = {
  readonly ledger: Ledger;
  readonly tables: readonly CommitTable[];
  readonly events: CommitTable;
  /** The unit's revision if it is accepted. */
  readonly rev: number;
  readonly place: number;
  /** Revisions of the units accepted so far, by their provisional ones. */
  readonly revisions: ReadonlyMap<number, number>;
};

function judgeUnit({ unit, changes }: Work, context: JudgeContext): Refused | undefined {
  const { ledger, events, rev, place } = context;
  for (const [at, placed] of changes.entries()) {
    const { table, change } = placed;
    const refused = judgeChange(placed, at, context);
    if (refused !== undefined) return refused;
    if (!isOnlyExpected(change)) ledger.change(context.tables, table, change.id, change.next, { rev, place });
  }
  for (const [at, { id, doc, owner, createdAt }] of unit.events.entries()) {
    const { now } = ledger.stateOf(events, id);
    // An event with a known id is reported as a change that expected no row, after the unit's changes.
    if (now !== undefined) return { outcome: 'superseded', change: unit.changes.length + at, current: now };
    const next = {
      doc,
      owner,
      createdAt,
      updatedAt: createdAt,
      deletedAt: null,
      search: null,
      references: [],
    };
    ledger.change(context.tables, events, id, next, { rev, place });
  }
  return undefined;
}

function judgeChange(
  { table, change }: Placed,
  at: number,
  { ledger, tables, rev, revisions }: JudgeContext,
): Refused | undefined {
  const { id, expect, next } = change;
  const { now } = ledger.stateOf(table, id);
  const expected = 'rev' in expect ? (revisions.get(expect.rev) ?? expect.rev) : undefined;
  if (now?.rev !== expected) {
    return { outcome: 'superseded', change: at, current: now };
  }
  if (next !== null && next.deletedAt === null) {
    for (const { field, id: named } of next.references) {
      const target = table.references.get(field)?.to;
      if (target === undefined || (target === table.place && named === id)) continue;
      if (!ledger.isLive(target, named)) return { outcome: 'dangling', change: at, field };
    }
  }
  // Nothing refers to a softly deleted row.
  if (isLeaving(change) && now?.deletedAt === null) {
    for (const [dependant, { field, from }] of table.dependants.entries()) {
      const count = ledger.namings(table, dependant, id);
      const name = tables[from]?.layout.table.name ?? '';
      if (count > 0) return { outcome: 'depended-on', change: at, table: name, field: field.name, count };
    }
  }
  if (next === null || next.deletedAt !== null) return undefined;
  const fields = takenFields(table, ledger, rowOfNext(id, rev, next));
  return fields === undefined ? undefined : { outcome: 'taken', change: at, fields };
}

/** Reports the last declared of several taken ones, as SQLite does, which checks its newest index first. */
function takenFields(table: CommitTable, ledger: Ledger, row: Row): readonly string[] | undefined {
  const { unique } = table.layout.table;
  const wanted = uniqueValues(unique, row);
  for (let position = unique.length - 1; position >= 0; position -= 1) {
    const values = wanted[position];
    const holder = values === undefined ? undefined : ledger.holder(table, position, values);
    if (holder !== undefined && holder !== row.id) return unique[position]?.map(({ name }) => name);
  }
  return undefined;
}

/*
 * The state in which a batch is judged: what the database returned (flight.ts), plus the effects of accepted units and of earlier
 * changes of the current unit. `undo` reverts a refused unit. It holds only what the batch needs: rows that it changes or refers to,
 * holders of unique values that it wants, and counts of rows that refer to removed ones.
 */

type RowState = {
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
  /** For each table and each list of its unique fields: the id of the row that holds values, by their JSON text. */
  readonly #holders: Map<string, string>[][];
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

  /** @param unique index among the lists of the table's unique fields */
  addHolder(table: CommitTable, unique: number, values: readonly Scalar[], id: string): void {
    this.#holders[table.place]?.[unique]?.set(JSON.stringify(values), id);
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

  holder(table: CommitTable, unique: number, values: readonly Scalar[]): string | undefined {
    return this.#holders[table.place]?.[unique]?.get(JSON.stringify(values));
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
    use: (holders: Map<string, string>, values: string, id: string) => void,
  ): void {
    if (row === undefined || row.deletedAt !== null) return;
    for (const [at, values] of uniqueValues(table.layout.table.unique, row).entries()) {
      const holders = this.#holders[table.place]?.[at];
      if (values !== undefined && holders !== undefined) use(holders, JSON.stringify(values), row.id);
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
