/**
 * The usual way of a batch: one flight, begun and committed without waiting for an answer, in which every assumption of the units is
 * a statement that fails the transaction where it does not hold. The k-th changes of all units make one stage, so that
 * each unit's changes are made in order. Only for units that do not bear on each other (interaction.ts).
 *
 * New rows that nothing else in their unit can depend on are all made in the first stage: an event with a thousand deliveries would
 * be a thousand statements. Were there a change of the same row before it, the early insert fails, and the batch is judged; so
 * nothing may be made later than it stands in its unit, since a removal after it would let it pass.
 *
 * Which assumption failed is not told: the batch is then judged (careful-flights.ts).
 */

import { isLeaving, isOnlyExpected } from '../../change-kind.ts';
import type { Call } from '../connection/connection.ts';
import { type CommitTable, eventsOf, type Placed, type Work } from './commit-table.ts';
import { Appends, Writes } from './writes.ts';

export type Changes = {
  readonly calls: readonly Call[];
  /** Numbers of the tables that are changed. */
  readonly touched: readonly number[];
};

export function boldChanges(works: readonly Work[], tables: readonly CommitTable[]): Changes {
  const stages: Writes[] = [];
  const appends = new Appends();
  const touched = new Set<number>();
  const events = eventsOf(tables);
  for (const [index, { unit, changes }] of works.entries()) {
    let next = 0;
    for (const placed of changes) {
      const isFirst = isNewAndAlone(placed);
      addChange(stageAt(stages, isFirst ? 0 : next), placed, tables, index + 1);
      // What comes after a new row is made after it, as what expects it absent must be.
      next = isFirst ? Math.max(next, 1) : next + 1;
      if (!isOnlyExpected(placed.change)) touched.add(placed.table.number);
    }
    for (const event of unit.events) appends.add(event, index + 1);
    if (unit.events.length > 0) touched.add(events.number);
  }
  const calls: Call[] = [];
  for (const stage of stages) stage.addCalls(calls, works.length, 'checks first');
  appends.addCalls(calls, works.length, events);
  return { calls, touched: [...touched] };
}

function stageAt(stages: Writes[], at: number): Writes {
  let stage = stages[at];
  if (stage === undefined) {
    stage = new Writes();
    stages[at] = stage;
  }
  return stage;
}

/** A new row that names none, is named by none and holds no value that only one may. */
function isNewAndAlone({ table, change }: Placed): boolean {
  return (
    change.next !== null &&
    'absent' in change.expect &&
    table.references.size === 0 &&
    table.dependants.length === 0 &&
    table.layout.table.unique.length === 0
  );
}

function addChange(
  stage: Writes,
  { table, change }: Placed,
  tables: readonly CommitTable[],
  place: number,
): void {
  const { id, expect, next } = change;
  const writes = stage.of(table);
  if (table.dependants.length > 0 && isLeaving(change)) writes.expectUnnamed(id);
  if (next === null) {
    if ('rev' in expect) writes.remove(id, expect.rev);
    else writes.expectAbsent(id);
    return;
  }
  if ('rev' in expect) writes.update(id, expect.rev, next, place);
  else writes.insert(id, next, place);
  if (next.deletedAt !== null) return;
  for (const { field, id: named } of next.references) {
    const target = tables[table.references.get(field)?.to ?? -1];
    // A row may name itself while it is made.
    if (target !== undefined && (target !== table || named !== id)) stage.of(target).expectLive(named);
  }
}
