/**
 * Commits a batch in two flights: the first takes the lock and reads the present state, then this process judges each unit, and the second
 * writes the accepted ones. The lock is held for the round trip in between.
 */

import type { Scalar } from '../../../model/field.ts';
import { isLeaving } from '../../change-listeners.ts';
import { rowOf } from '../../kept-row.ts';
import type { Commit, Row } from '../../store.ts';
import type { Call, Cell, Rows } from '../connection/connection.ts';
import { type CommitTable, eventsOf, type Work } from './commit-table.ts';
import { ask, type Batch, type CommitContext, commitCalls, giveUp, transactionMs } from './flight.ts';
import { judge } from './judge.ts';
import { fieldValues, Ledger, rowOfNext } from './ledger.ts';
import type { BatchOutcome } from './outcome.ts';
import { isLookedUp } from './statements.ts';
import { begin, firstRevOf } from './transaction.ts';
import { Appends, Writes } from './writes.ts';

/** @throws DatabaseError if a write failed nevertheless, NotCommitted, or StoreUnavailable */
export async function commitCarefully(
  context: CommitContext,
  { works, endsAt }: Batch,
): Promise<BatchOutcome> {
  const { tables, fence, frame } = context;
  await fence.ensure(endsAt);
  const timeoutMs = transactionMs(endsAt);
  const until = performance.now() + timeoutMs;
  const { ledger, questions } = inspect(works, tables);
  const opening = [begin, frame.open(fence, timeoutMs), frame.draw(0)];
  const replies = await ask(context, [...opening, ...questions], timeoutMs);
  const { accepted, refusals, touched, writes } = await orGiveUp(context, () => {
    for (const [at, { take }] of questions.entries()) take(replies[opening.length + at]?.rows ?? []);
    const judgement = judge(works, ledger, tables, firstRevOf(replies[opening.length - 1]?.rows));
    return { ...judgement, writes: netWrites(judgement.accepted, ledger, tables) };
  });
  const units = accepted.length;
  let rev = 0;
  if (units === 0) await giveUp(context.connection);
  else {
    const calls = [frame.resume(), frame.draw(units), ...writes];
    const leftMs = Math.max(1, until - performance.now());
    rev = await commitCalls(context, calls, { units, touched, timeoutMs: leftMs, endsAt });
  }
  const lastRev = rev + units - 1;
  const outcomes = refusals.map((refused): { readonly commit: Commit } => {
    if (refused !== undefined) return { commit: refused };
    rev += 1;
    return { commit: { outcome: 'committed', rev: rev - 1 } };
  });
  return { outcomes, touched: new Map(touched.map((number) => [number, lastRev])) };
}

/** The transaction is open: values that cannot be judged or written end it. */
async function orGiveUp<T>({ connection }: CommitContext, make: () => T): Promise<T> {
  try {
    return make();
  } catch (error) {
    await giveUp(connection);
    throw error;
  }
}

/**
 * The net effect of the accepted units: however often a batch changes a row, it is written once. Removals come first, then updates in the
 * order of judgement, then inserts, so that a unique value freed by one row is free for another. A row that was removed in between is
 * removed and inserted again, since its unique values may have gone to another row meanwhile.
 */
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
    const { before, next, changed, place, gone } = ledger.stateOf(table, id);
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
      // An event that a later unit removed is not written.
      const { now, place } = ledger.stateOf(events, event.id);
      if (now !== undefined && place === index + 1) appends.add(event, place);
    }
  }
  const calls: Call[] = [];
  writes.addCalls(calls, accepted.length, 'removals first');
  appends.addCalls(calls, accepted.length, events);
  return calls;
}

type Question = {
  readonly sql: string;
  readonly values: readonly (readonly Cell[])[];
  readonly take: (rows: Rows) => void;
};

type Inspection = { readonly ledger: Ledger; readonly questions: readonly Question[] };

/**
 * Builds the queries whose results the judgement needs, each for the whole batch: the rows that units change, the undeleted rows that they
 * refer to, the holders of the unique values that they want, the number of rows that refer to removed ones, and known events. They run
 * while the lock is held, so the results stay valid until the end of the transaction.
 */
function inspect(works: readonly Work[], tables: readonly CommitTable[]): Inspection {
  const byTable = tables.map((table) => new TableQuestions(table));
  const events = eventsOf(tables);
  for (const { unit, changes } of works) {
    for (const { table, change } of changes) {
      const own = byTable[table.place];
      own?.rows.add(change.id);
      if (isLeaving(change)) own?.leaving.add(change.id);
      if (change.next === null || change.next.deletedAt !== null) continue;
      own?.want(rowOfNext(change.id, 0, change.next));
      for (const { field, id } of change.next.references) {
        byTable[table.references.get(field)?.to ?? -1]?.named.add(id);
      }
    }
    for (const { id } of unit.events) byTable[events.place]?.rows.add(id);
  }
  const ledger = new Ledger(tables);
  return { ledger, questions: byTable.flatMap((each) => each.questions(ledger)) };
}

class TableQuestions {
  readonly #table: CommitTable;
  readonly rows = new Set<string>();
  readonly named = new Set<string>();
  readonly leaving = new Set<string>();
  /** Wanted values of each unique field. */
  readonly #wanted: readonly Set<Scalar>[];

  constructor(table: CommitTable) {
    this.#table = table;
    this.#wanted = table.layout.table.unique.map(() => new Set());
  }

  /** Adds the unique values of an undeleted row. */
  want(row: Row): void {
    const { unique } = this.#table.layout.table;
    if (unique.length === 0) return;
    for (const [at, value] of fieldValues(unique, row).entries()) {
      if (value !== null) this.#wanted[at]?.add(value);
    }
  }

  questions(ledger: Ledger): readonly Question[] {
    const table = this.#table;
    const { statements, layout } = table;
    const questions: Question[] = [];
    const ask = (sql: string, values: Iterable<Cell>, take: (row: readonly Cell[]) => void): void => {
      const list = [...values];
      if (list.length > 0) questions.push({ sql, values: [list], take: (rows) => rows.forEach(take) });
    };
    ask(statements.current, this.rows, (cells) => ledger.addRow(table, rowOf(cells)));
    const others = [...this.named].filter((id) => !this.rows.has(id));
    ask(statements.live, others, ([id]) => ledger.addLive(table, String(id)));
    for (const [at, field] of layout.table.unique.entries()) {
      if (!isLookedUp(field)) continue;
      ask(statements.holders[at] ?? '', this.#wanted[at] ?? [], ([id, value]) =>
        ledger.addHolder(table, at, value ?? null, String(id)),
      );
    }
    for (const [at, sql] of statements.namings.entries()) {
      ask(sql, this.leaving, ([id, count]) => ledger.addNamings(table, at, String(id), Number(count)));
    }
    return questions;
  }
}
