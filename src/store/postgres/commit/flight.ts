/**
 * Commits a batch: boldly in one flight, or carefully in two, between which it is judged. A flight that ends with COMMIT is committed, not
 * committed, or unknown (StoreUnavailable).
 */
import { DatabaseError } from 'pg';
import type { Scalar } from '../../../model/field.ts';
import type { Outcome } from '../../group-commit.ts';
import { type Commit, isLeaving, isOnlyExpected, type Row, rowOf, StoreUnavailable } from '../../store.ts';
import { uniqueValues } from '../../unique-values.ts';
import {
  type Call,
  type Cell,
  type Connection,
  ConnectionLost,
  type Reply,
  type Rows,
} from '../connection/connection.ts';
import { isRetryable, sqlState } from '../postgres-failure.ts';
import {
  Appends,
  type CommitTable,
  eventsOf,
  isLookedUp,
  type Placed,
  type Work,
  Writes,
} from './commit-table.ts';
import { judge, Ledger, rowOfNext } from './judge.ts';
import {
  begin,
  commit,
  type Fence,
  type Frame,
  fenceText,
  firstRevOf,
  rollback,
  serverText,
  sessionText,
} from './transaction.ts';

export type CommitContext = {
  readonly connection: Connection;
  readonly tables: readonly CommitTable[];
  readonly fence: Fence;
  readonly frame: Frame;
};

/** Units to commit; `endsAt` is on the clock of `performance.now()`. */
export type Batch = { readonly works: readonly Work[]; readonly endsAt: number };

/** Thrown for a batch that is certainly not committed and may be retried. */
export class NotCommitted extends Error {
  override readonly name = 'NotCommitted';
}

/** Share of the remaining time for the transaction: the rest is for finding out its outcome. */
const transactionShare = 0.6;
const transactionLeastMs = 5;

/** @throws StoreUnavailable if too little time is left to start a transaction */
export function transactionMs(endsAt: number): number {
  const leftMs = (endsAt - performance.now()) * transactionShare;
  if (leftMs < transactionLeastMs)
    throw new StoreUnavailable('the database did not respond in time (COMITY_DATABASE_TIMEOUT_MS)');
  return leftMs;
}

/**
 * Sends calls without a commit. After a failure the transaction has ended.
 * @throws NotCommitted if the connection broke, or the server's DatabaseError
 */
async function ask(
  { connection }: CommitContext,
  calls: readonly Call[],
  timeoutMs: number,
): Promise<readonly Reply[]> {
  try {
    return await connection.send(calls, timeoutMs);
  } catch (error) {
    if (error instanceof ConnectionLost && error.sent)
      throw new NotCommitted('the connection broke', { cause: error });
    if (!(error instanceof ConnectionLost)) await giveUp(connection);
    throw error;
  }
}

/** Rolls back the transaction; if the connection breaks, the server does. */
async function giveUp(connection: Connection): Promise<void> {
  await connection.send([rollback]).catch(() => undefined);
}

type Ending = {
  /** Units that it commits; the reply is the revision of the first. */
  readonly units: number;
  /** Numbers of the tables that it changes. */
  readonly touched: readonly number[];
  readonly timeoutMs: number;
  /** Deadline for finding out the outcome, on the clock of `performance.now()`. */
  readonly endsAt: number;
};

/**
 * Sends the last calls of a transaction with its `close` and COMMIT.
 * @throws NotCommitted, the server's DatabaseError (nothing is committed then), or StoreUnavailable
 */
async function commitCalls(
  { connection, fence, frame }: CommitContext,
  calls: readonly Call[],
  { units, touched, timeoutMs, endsAt }: Ending,
): Promise<number> {
  const batch = fence.nextBatch();
  const flight = [...calls, frame.close(batch, units, touched), commit];
  try {
    const replies = await connection.send(flight, timeoutMs);
    return firstRevOf(replies.at(-2)?.rows);
  } catch (error) {
    if (error instanceof ConnectionLost && !error.sent) throw error;
    if (isUnencodable(error)) await giveUp(connection);
    if (!(error instanceof ConnectionLost) && meaningOf(error) !== 'unknown') throw error;
    fence.drop();
    const firstRev = await fence.findOut(batch, endsAt);
    if (firstRev === undefined) {
      throw new NotCommitted('the connection broke before the commit', { cause: error });
    }
    return firstRev;
  }
}

/**
 * `refused`: an assumption of the units does not hold. `values`: some unit's values are invalid. `again`: a retry may succeed immediately.
 * `fence`: another epoch began; take the fence and retry. `failed`: storage fails; the transaction was rolled back. `unknown`: it may have
 * been committed.
 */
type Meaning = 'refused' | 'values' | 'again' | 'fence' | 'failed' | 'unknown';

/** SQLSTATE raised by `comity_expect`. */
const unexpected = 'CM001';

/** Classes of errors that roll back the transaction; others, such as a full disk (53100), may stop the server during a commit. */
const undoing: ReadonlySet<string> = new Set([
  '0A',
  '20',
  '21',
  '22',
  '23',
  '25',
  '26',
  '40',
  '42',
  '54',
  '55',
  'P0',
]);
const ofValues: ReadonlySet<string> = new Set(['21', '22', '23', '54']);

/** No statement could be made of the units' values, such as a text that would be too long. */
function isUnencodable(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError;
}

/** Classifies a failed commit by SQLSTATE, by what is certain about the transaction (postgres/postgres-failure.ts has the others). */
export function meaningOf(error: unknown): Meaning {
  if (isUnencodable(error)) return 'values';
  const state = sqlState(error);
  if (state === undefined) return 'unknown';
  if (state === unexpected) {
    const { message } = error as DatabaseError;
    return [fenceText, serverText, sessionText].includes(message) ? 'fence' : 'refused';
  }
  if (isRetryable(error)) return 'again';
  const kind = state.slice(0, 2);
  if (ofValues.has(kind)) return 'values';
  return undoing.has(kind) ? 'failed' : 'unknown';
}

/** The constraint or index that a value violated, and its table. */
export function violationOf(error: unknown): { readonly index: string; readonly table: string } | undefined {
  if (sqlState(error) !== '23505' || !(error instanceof DatabaseError)) return undefined;
  const { constraint, table } = error;
  return constraint === undefined || table === undefined ? undefined : { index: constraint, table };
}

/** The outcome of a batch: one outcome per unit, and the tables changed. */
export type BatchOutcome = {
  readonly outcomes: readonly Outcome[];
  /** Numbers of the changed tables, each with the last revision that changed it. */
  readonly touched: ReadonlyMap<number, number>;
};

/** Joins two batches: for a table that both changed, the later revision counts. */
export function joinOutcomes(first: BatchOutcome, second: BatchOutcome): BatchOutcome {
  return {
    outcomes: [...first.outcomes, ...second.outcomes],
    touched: new Map([...first.touched, ...second.touched]),
  };
}

export function failBatch(units: number, error: unknown): BatchOutcome {
  return { outcomes: Array.from({ length: units }, () => ({ error })), touched: new Map() };
}

/*
 * Commits a batch the usual way: in one flight, begun and committed without waiting for a reply, with a statement for each assumption that
 * fails the transaction if it does not hold. The k-th changes of all units form one stage, so each unit's changes are made in order. Only
 * for units that do not interact (`interacts`).
 * New rows that nothing else in their unit depends on are all inserted in the first stage: an event with a thousand deliveries would
 * otherwise be a thousand statements. If an earlier change concerns the same row, the early insert fails and the batch is judged. Nothing
 * may be made later than its place in the unit, since a removal after it would let it pass.
 * The failure does not name the assumption, so the batch is then judged (`commitCarefully`).
 */

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

type Changes = {
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

/*
 * Commits a batch in two flights: the first takes the lock and reads the present state, then this process judges each unit, and the second
 * writes the accepted ones. The lock is held for the round trip in between.
 */

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
  /** Wanted values of each list of unique fields, by their JSON text. */
  readonly #wanted: readonly Map<string, readonly Scalar[]>[];

  constructor(table: CommitTable) {
    this.#table = table;
    this.#wanted = table.layout.table.unique.map(() => new Map());
  }

  /** Adds the unique values of an undeleted row. */
  want(row: Row): void {
    for (const [at, values] of uniqueValues(this.#table.layout.table.unique, row).entries()) {
      if (values !== undefined) this.#wanted[at]?.set(JSON.stringify(values), values);
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
    for (const [at, fields] of layout.table.unique.entries()) {
      const wanted = [...(this.#wanted[at]?.values() ?? [])];
      if (wanted.length === 0 || !fields.every(isLookedUp)) continue;
      const columns = fields.map((_, column) => wanted.map((values) => values[column] ?? null));
      const take = ([id, ...values]: readonly Cell[]) =>
        ledger.addHolder(table, at, values as readonly Scalar[], String(id));
      questions.push({
        sql: statements.holders[at] ?? '',
        values: columns,
        take: (rows) => rows.forEach(take),
      });
    }
    for (const [at, sql] of statements.namings.entries()) {
      ask(sql, this.leaving, ([id, count]) => ledger.addNamings(table, at, String(id), Number(count)));
    }
    return questions;
  }
}
