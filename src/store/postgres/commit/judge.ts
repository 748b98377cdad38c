/**
 * Judges each unit of a batch, in order, by the present state, with the same results as SQLite, which tries them (sqlite/writer/apply.ts):
 * a stale revision is reported before any other reason, a unit's changes are judged in their order, its events last. Pure.
 */

import { isLeaving, isOnlyExpected } from '../../change-listeners.ts';
import type { Commit, Row } from '../../store.ts';
import { type CommitTable, eventsOf, type Placed, type Work } from './commit-table.ts';
import { fieldValues, type Ledger, rowOfNext } from './ledger.ts';

export type Refused = Exclude<Commit, { outcome: 'committed' }>;

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
  const field = takenField(table, ledger, rowOfNext(id, rev, next));
  return field === undefined ? undefined : { outcome: 'taken', change: at, field };
}

/** Reports the last declared of several taken fields, as SQLite does, which checks its newest index first. */
function takenField(table: CommitTable, ledger: Ledger, row: Row): string | undefined {
  const { unique } = table.layout.table;
  if (unique.length === 0) return undefined;
  const values = fieldValues(unique, row);
  for (let position = unique.length - 1; position >= 0; position -= 1) {
    const value = values[position] ?? null;
    const holder = value === null ? undefined : ledger.holder(table, position, value);
    if (holder !== undefined && holder !== row.id) return unique[position]?.name;
  }
  return undefined;
}
