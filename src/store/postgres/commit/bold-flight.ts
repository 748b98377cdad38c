/**
 * Commits a batch the usual way: in one flight, begun and committed without waiting for a reply, with a statement for each assumption that
 * fails the transaction if it does not hold. The k-th changes of all units form one stage, so each unit's changes are made in order. Only
 * for units that do not interact (`interacts`).
 * New rows that nothing else in their unit depends on are all inserted in the first stage: an event with a thousand deliveries would
 * otherwise be a thousand statements. If an earlier change concerns the same row, the early insert fails and the batch is judged. Nothing
 * may be made later than its place in the unit, since a removal after it would let it pass.
 * The failure does not name the assumption, so the batch is then judged (commit-carefully.ts).
 */

import { isLeaving, isOnlyExpected } from '../../change-listeners.ts';
import type { Call } from '../connection/connection.ts';
import { type CommitTable, eventsOf, type Placed, type Work } from './commit-table.ts';
import { type Batch, type CommitContext, commitCalls, transactionMs } from './flight.ts';
import type { BatchOutcome } from './outcome.ts';
import { begin } from './transaction.ts';
import { Appends, Writes } from './writes.ts';

/** @throws DatabaseError if an assumption does not hold, NotCommitted, or StoreUnavailable */
export async function commitBoldly(context: CommitContext, { works, endsAt }: Batch): Promise<BatchOutcome> {
  const { frame, fence, tables } = context;
  await fence.ensure(endsAt);
  const timeoutMs = transactionMs(endsAt);
  const units = works.length;
  const { calls, touched } = boldChanges(works, tables);
  const flight = [begin, frame.open(fence, timeoutMs), frame.draw(units), ...calls];
  const firstRev = await commitCalls(context, flight, { units, touched, timeoutMs, endsAt });
  return {
    outcomes: works.map((_, index) => ({ commit: { outcome: 'committed', rev: firstRev + index } })),
    touched: new Map(touched.map((number) => [number, firstRev + units - 1])),
  };
}

export type Changes = {
  readonly calls: readonly Call[];
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
      // Changes after a new row are made after it, such as an expectation of its absence.
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

/** True for a new row without references, dependants and unique fields. */
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
    if (change.stays === true && 'rev' in expect) writes.expectStanding(id, expect.rev);
    else if ('rev' in expect) writes.remove(id, expect.rev);
    else writes.expectAbsent(id);
    return;
  }
  if ('rev' in expect) writes.update(id, expect.rev, next, place);
  else writes.insert(id, next, place);
  if (next.deletedAt !== null) return;
  for (const { field, id: named } of next.references) {
    const target = tables[table.references.get(field)?.to ?? -1];
    // A new row may refer to itself.
    if (target !== undefined && (target !== table || named !== id)) stage.of(target).expectLive(named);
  }
}
