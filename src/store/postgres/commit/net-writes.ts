/**
 * What accepted units come to, row by row: however often a batch changes a row, the row is written once. Rows that go are
 * removed first, then rows change in the order they were judged in, then new ones come, so that a value that one frees is free
 * when another takes it. A row that was gone in between is removed and made anew, since what it held meanwhile may have
 * changed hands.
 */
import type { Call } from '../connection/connection.ts';
import { type CommitTable, eventsOf, type Work } from './commit-table.ts';
import type { Ledger } from './ledger.ts';
import { Appends, Writes } from './writes.ts';

export function netWrites(
  accepted: readonly Work[],
  ledger: Ledger,
  tables: readonly CommitTable[],
): readonly Call[] {
  const writes = new Writes();
  const appends = new Appends();
  const events = eventsOf(tables);
  const written = tables.map(() => new Set<string>());
  const write = (table: CommitTable, id: string): void => {
    const { before, next, changed, place, gone } = ledger.standing(table, id);
    if (!changed || written[table.place]?.has(id)) return;
    written[table.place]?.add(id);
    const into = writes.of(table);
    if (before !== undefined && (next === undefined || gone)) into.remove(id, before.rev);
    if (next === undefined || table === events) return;
    if (before === undefined || gone) into.insert(id, next, place);
    else into.update(id, before.rev, next, place);
  };
  for (const { changes } of accepted) for (const { table, change } of changes) write(table, change.id);
  for (const [index, { unit }] of accepted.entries()) {
    for (const event of unit.events) {
      // One that a later unit removed is not written at all.
      const { now, place } = ledger.standing(events, event.id);
      if (now !== undefined && place === index + 1) appends.add(event, place);
    }
  }
  const calls: Call[] = [];
  writes.addCalls(calls, accepted.length, 'removals first');
  appends.addCalls(calls, accepted.length, events);
  return calls;
}
