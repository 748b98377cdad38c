/**
 * Whether what one unit of a batch does can bear on another: they change one row, one names a row that another changes, or one
 * removes a row of a table while another changes a table that refers to it. Only a batch without such pairs may be made
 * as if all units came at once. Two units after one unique value are not looked for: the index finds them. That several expect one
 * row absent, and none makes it, is no pair: every unit that sends webhooks expects the same one (webhooks/outbound/fan-out).
 */
import { isLeaving, isOnlyExpected } from '../../change-kind.ts';
import { type CommitTable, eventsOf, type Placed, type Work } from './commit-table.ts';

export function interacts(works: readonly Work[], tables: readonly CommitTable[]): boolean {
  if (works.length < 2) return false;
  const seen = new Seen(tables);
  return works.some((work, unit) => seen.meets(work, unit));
}

/** More units than one did this. */
const several = -1;

class Seen {
  readonly #events: CommitTable;
  /** For each table, which unit wrote a row. */
  readonly #written: Map<string, number>[];
  /** For each table, which unit expected a row absent and did not make it. */
  readonly #expected: Map<string, number>[];
  /** For each table, which unit names a row of it. */
  readonly #named: Map<string, number>[];
  /** For each table, which unit changed any row of it. */
  readonly #changed: (number | undefined)[];
  /** For each table, which unit removes a row of it, softly or not. */
  readonly #left: (number | undefined)[];

  constructor(tables: readonly CommitTable[]) {
    this.#events = eventsOf(tables);
    this.#written = tables.map(() => new Map());
    this.#expected = tables.map(() => new Map());
    this.#named = tables.map(() => new Map());
    this.#changed = tables.map(() => undefined);
    this.#left = tables.map(() => undefined);
  }

  /** Takes the unit in. @returns whether it has to do with one before */
  meets({ unit, changes }: Work, number: number): boolean {
    let met = false;
    for (const placed of changes) if (this.#meetsChange(placed, number)) met = true;
    for (const { id } of unit.events) if (this.#meetsRow(this.#events.place, id, number)) met = true;
    return met;
  }

  #meetsChange({ table, change }: Placed, unit: number): boolean {
    const { place } = table;
    if (isOnlyExpected(change)) {
      note(this.#expected[place], change.id, unit);
      return isOther(this.#written[place]?.get(change.id), unit);
    }
    let met = this.#meetsRow(place, change.id, unit);
    for (const reference of change.next?.references ?? []) {
      const target = table.references.get(reference.field)?.to;
      if (target === undefined) continue;
      if (isOther(this.#written[target]?.get(reference.id), unit)) met = true;
      note(this.#named[target], reference.id, unit);
    }
    for (const { to } of table.references.values()) if (isOther(this.#left[to], unit)) met = true;
    this.#changed[place] = joined(this.#changed[place], unit);
    if (table.dependants.length > 0 && isLeaving(change)) {
      for (const { from } of table.dependants) if (isOther(this.#changed[from], unit)) met = true;
      this.#left[place] = joined(this.#left[place], unit);
    }
    return met;
  }

  #meetsRow(place: number, id: string, unit: number): boolean {
    const met =
      isOther(this.#written[place]?.get(id), unit) ||
      isOther(this.#expected[place]?.get(id), unit) ||
      isOther(this.#named[place]?.get(id), unit);
    note(this.#written[place], id, unit);
    return met;
  }
}

function isOther(seen: number | undefined, unit: number): boolean {
  return seen !== undefined && seen !== unit;
}

function joined(seen: number | undefined, unit: number): number {
  return seen === undefined || seen === unit ? unit : several;
}

function note(units: Map<string, number> | undefined, id: string, unit: number): void {
  units?.set(id, joined(units.get(id), unit));
}
