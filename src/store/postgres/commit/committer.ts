/**
 * Commits on PostgreSQL: what each batch of the queue (group-commit.ts) becomes, over one connection and under the writer's fence; purges; and
 * whether commits hang.
 */
import { setTimeout as pause } from 'node:timers/promises';
import {
  type CommitEngine,
  GroupCommit,
  type Outcome,
  type Batch as QueuedBatch,
  storageFailure,
  type UnitBounds,
} from '../../group-commit.ts';
import type { ProvisionalRevisions } from '../../lines.ts';
import { purgedCounter, purgedCounterName } from '../../revision.ts';
import { quoteName } from '../../sql-text.ts';
import {
  type Commit,
  eventsTable,
  isLeaving,
  isOnlyExpected,
  StoreUnavailable,
  type Unit,
} from '../../store.ts';
import type { Call, Connection } from '../connection/connection.ts';
import { asUnavailable } from '../postgres-failure.ts';
import type { Layout, TableNumbers } from '../schema/schema-layout.ts';
import {
  type CommitTable,
  commitTables,
  drawnRev,
  eventsOf,
  type Placed,
  resolveUnit,
  type Work,
} from './commit-table.ts';
import {
  type Batch,
  type BatchOutcome,
  type CommitContext,
  commitBoldly,
  commitCarefully,
  failBatch,
  joinOutcomes,
  meaningOf,
  NotCommitted,
  transactionMs,
  violationOf,
} from './flight.ts';
import { begin, commit, Fence, type FenceOptions, transactionFrame } from './transaction.ts';

export type CommitterOptions = {
  readonly connection: Connection;
  readonly layouts: readonly Layout[];
  readonly numbers: TableNumbers;
  readonly schema: string;
  readonly channel: string;
  /** Identifies this committer among all, of any process and at any time. */
  readonly writer: string;
  /** Timeout of a batch from its start to its outcome; a unit that waited longer is not started. */
  readonly timeoutMs: number;
  /** Retries of a batch that the database rolled back. */
  readonly retriesMax: number;
  /** Finds ids of rows last updated before the time (ms), at most `limit`; may take long. */
  readonly findOld: (table: string, updatedBefore: number, limit: number) => Promise<readonly string[]>;
  /** Called after a batch's promises settled: numbers of tables, each with the last revision that changed it. */
  readonly onChanged: (touched: ReadonlyMap<number, number>) => void;
  readonly revisions: ProvisionalRevisions;
} & Pick<CommitEngine, 'observe'> &
  Pick<FenceOptions, 'newestRev' | 'onRaised' | 'clock'>;

export class Committer {
  readonly queue: GroupCommit;
  /** Resolves when the first attempt to begin has ended, successful or not. */
  readonly ready: Promise<void>;
  readonly #options: CommitterOptions;
  readonly #context: BatchContext & PurgeContext;
  readonly #byName: ReadonlyMap<string, CommitTable>;
  #isStalled = false;
  #probing: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: CommitterOptions, bounds: Partial<UnitBounds>) {
    const { connection, layouts, numbers, schema, channel, writer, retriesMax } = options;
    const { revisions, observe, timeoutMs } = options;
    const tables = commitTables(layouts, numbers, schema);
    const fence = new Fence(options);
    const frame = transactionFrame(schema, writer, channel);
    this.#options = options;
    this.#context = { connection, tables, fence, frame, schema, channel, retriesMax };
    this.#byName = new Map(tables.map((table) => [table.layout.table.name, table]));
    this.queue = new GroupCommit(
      { begin: () => this.#begin(), revisions, observe, unitWaitMs: timeoutMs },
      bounds,
    );
    this.ready = this.queue.alone(() => this.#arrive());
  }

  /** @throws TypeError for an undeclared table or reference; UnitTooLarge; StoreUnavailable */
  commit(unit: Unit): Promise<Commit> {
    return this.queue.commit(unit);
  }

  /** True since a batch failed with the storage and none was committed afterwards. */
  get isStalled(): boolean {
    return this.#isStalled;
  }

  /** Commits a change of its own, unless writes that clients wait for do so soon. @throws StoreUnavailable */
  probe(): Promise<void> {
    this.#probing ??= this.#probeOnce().finally(() => {
      this.#probing = undefined;
    });
    return this.#probing;
  }

  /** Takes the fence anew, which is a commit that waits for what every commit waits for. */
  async #probeOnce(): Promise<void> {
    if (this.queue.isBusy) throw new StoreUnavailable('no write was committed since one failed');
    await this.queue.alone(async () => {
      this.#context.fence.drop();
      await this.#context.fence.ensure(this.#endsAt());
      this.#isStalled = false;
    });
  }

  async purge(name: string, updatedBefore: number, limit: number): Promise<number> {
    const table = this.#byName.get(name);
    if (table === undefined) throw new TypeError(`no table is named ${name}`);
    const find = () => this.#options.findOld(name, updatedBefore, limit);
    return this.queue.purge(find, async (ids) => {
      const { rows, rev } = await purgeStep(this.#context, { table, updatedBefore, ids }, this.#endsAt());
      if (rows > 0) this.#options.onChanged(new Map([[table.number, rev]]));
      return rows;
    });
  }

  /** Commits accepted units, then deletes the writer's row. The connection stays open. */
  close(): Promise<void> {
    this.#closing ??= this.#leave();
    return this.#closing;
  }

  #endsAt(): number {
    return performance.now() + this.#options.timeoutMs;
  }

  /** Creates the writer's row before the first batch needs it; if this fails, the first batch creates it. */
  async #arrive(): Promise<void> {
    const { fence } = this.#context;
    try {
      await fence.ensure(this.#endsAt());
      await fence.removeForgotten(this.#options.timeoutMs);
    } catch {
      // The first batch reports the failure if it persists.
      this.#isStalled = true;
    }
  }

  async #leave(): Promise<void> {
    await this.queue.close();
    // Another process eventually removes a row that stays.
    await this.#context.fence.removeOwn(this.#options.timeoutMs).catch(() => undefined);
  }

  #begin(): QueuedBatch {
    const { revisions, onChanged } = this.#options;
    const works: Work[] = [];
    return {
      add: (unit) => void works.push(resolveUnit(unit, this.#byName, revisions)),
      commit: async () => {
        const { outcomes, touched } = await commitBatch(this.#context, { works, endsAt: this.#endsAt() });
        if (storageFailure(outcomes) !== undefined) this.#isStalled = true;
        else if (touched.size > 0) this.#isStalled = false;
        return { outcomes, announce: () => (touched.size > 0 ? onChanged(touched) : undefined) };
      },
    };
  }
}

type PurgeContext = CommitContext & { readonly schema: string; readonly channel: string };

type PurgeStep = {
  readonly table: CommitTable;
  readonly updatedBefore: number;
  readonly ids: readonly string[];
};

type Purged = { readonly rows: number; readonly rev: number };

/**
 * Removes old rows in one flight, under the lock of every commit, and checks the time of each again. The revision and the table's version
 * rise only if a row was removed. Only for logs: references are not checked.
 * @throws StoreUnavailable; rows may then be removed or not, and the next purge finds the remaining ones
 */
async function purgeStep(context: PurgeContext, step: PurgeStep, endsAt: number): Promise<Purged> {
  const { connection, fence, frame } = context;
  try {
    await fence.ensure(endsAt);
    const timeoutMs = transactionMs(endsAt);
    const opening = [begin, frame.open(fence, timeoutMs), atThisServer, frame.draw(0)];
    const replies = await connection.send([...opening, purgeCall(context, step), commit], timeoutMs);
    const [rows, rev] = (replies[opening.length]?.rows[0] ?? []) as readonly number[];
    return { rows: rows ?? 0, rev: rev ?? 0 };
  } catch (error) {
    fence.drop();
    throw asUnavailable(error);
  }
}

/** A purge waits for no replica: what it removed may come back, and is removed again. */
const atThisServer: Call = { sql: 'SET LOCAL synchronous_commit = local', values: [], prepared: false };

function purgeCall({ schema, channel }: PurgeContext, { table, updatedBefore, ids }: PurgeStep): Call {
  const counters = `${quoteName(schema)}.comity_counters`;
  const isLog = table.layout.table.name === eventsTable;
  const sql = `WITH gone AS (DELETE FROM ${table.layout.name} WHERE id = ANY($1::text[]) AND updated_at < $2::bigint AND rev <= ${drawnRev} RETURNING rev),
 ${
   isLog
     ? `kept AS (INSERT INTO ${counters} AS counter (n, name, rev) SELECT ${purgedCounter}, '${purgedCounterName}', max(rev) FROM gone HAVING count(*) > 0
   ON CONFLICT (n) DO UPDATE SET rev = greatest(counter.rev, excluded.rev)),`
     : ''
 }
 purged AS MATERIALIZED (SELECT count(*) AS rows, ${drawnRev} + 1 AS rev FROM gone),
 raised AS (UPDATE ${counters} AS counter SET rev = purged.rev FROM purged WHERE n IN (0, $3::int) AND purged.rows > 0)
SELECT rows, rev, CASE WHEN rows > 0 THEN pg_notify($4, rev || ':' || $3::int)::text END FROM purged`;
  return { sql, values: [ids, updatedBefore, table.number, channel] };
}

/*
 * Commits a batch: boldly if its units do not interact, otherwise carefully; carefully after an assumption failed; again, after a pause, if
 * the database rolled it back for reasons of its own; in halves if some unit's values are invalid, down to the one unit, which alone is
 * rejected.
 */

type BatchContext = CommitContext & { readonly schema: string; readonly retriesMax: number };

/** Upper bound of the random pause before a retry. */
const pauseMostMs = 20;

/** Never rejects: a failure is the outcome of the units concerned. */
async function commitBatch(context: BatchContext, batch: Batch): Promise<BatchOutcome> {
  const { works, endsAt } = batch;
  let careful = interacts(works, context.tables);
  for (let retries = 0; ; retries += 1) {
    try {
      return careful ? await commitCarefully(context, batch) : await commitBoldly(context, batch);
    } catch (error) {
      const meaning = error instanceof NotCommitted ? 'again' : meaningOf(error);
      if (!careful && (meaning === 'refused' || meaning === 'values')) {
        careful = true;
        continue;
      }
      if (meaning === 'values') return failApart(context, batch, error);
      if (meaning === 'fence') context.fence.drop();
      else if (meaning !== 'again' && meaning !== 'refused')
        return failBatch(works.length, asUnavailable(causeOf(error)));
      if (retries >= context.retriesMax || performance.now() + pauseMostMs > endsAt) {
        return failBatch(works.length, asUnavailable(causeOf(error)));
      }
    }
    await pause(Math.random() * pauseMostMs);
  }
}

async function failApart(
  context: BatchContext,
  { works, endsAt }: Batch,
  error: unknown,
): Promise<BatchOutcome> {
  const [first, second] = works;
  if (first === undefined || second === undefined) {
    const outcome: Outcome = first === undefined ? { error } : await faultOf(context, first, error);
    return { outcomes: [outcome], touched: new Map() };
  }
  const middle = works.length >> 1;
  const before = await commitBatch(context, { works: works.slice(0, middle), endsAt });
  return joinOutcomes(before, await commitBatch(context, { works: works.slice(middle), endsAt }));
}

/** Maps a violation of a unique index to its fields, including an index of a newer declaration that this process does not know. */
async function faultOf(context: BatchContext, { unit }: Work, error: unknown): Promise<Outcome> {
  const violation = violationOf(error);
  if (violation === undefined) return { error };
  const change = unit.changes.findIndex(
    ({ table, next }) => table === violation.table && next !== null && next.deletedAt === null,
  );
  const fields = await fieldsOf(context, violation.index);
  if (change < 0 || fields === undefined) return { error };
  const commit: Commit = { outcome: 'taken', change, fields };
  return { commit };
}

async function fieldsOf(
  { connection, schema }: BatchContext,
  index: string,
): Promise<readonly string[] | undefined> {
  const sql = `SELECT fields::text FROM ${quoteName(schema)}.comity_indexes WHERE name = $1`;
  try {
    const [reply] = await connection.send([{ sql, values: [index] }]);
    const fields = reply?.rows[0]?.[0];
    return fields === undefined ? undefined : (JSON.parse(String(fields)) as readonly string[]);
  } catch {
    // The caller then reports the violation itself.
    return undefined;
  }
}

/** The statements are Comity's own: a failure that is no unit's fault is storage failing. */
function causeOf(error: unknown): unknown {
  return error instanceof NotCommitted ? error.cause : error;
}

/**
 * True if units of a batch interact: they change the same row, one refers to a row that another changes, or one removes a row of a table
 * while another changes a table that refers to it. Only a batch without interactions may be committed as if all units came at once. Two
 * units with the same unique value are left to the index. Several units that only expect the same row absent do not interact: every unit
 * that sends webhooks has such an expectation (webhooks/sending/fan-out).
 */
export function interacts(works: readonly Work[], tables: readonly CommitTable[]): boolean {
  if (works.length < 2) return false;
  const seen = new Seen(tables);
  return works.some((work, unit) => seen.meets(work, unit));
}

/** Stands for more than one unit. */
const several = -1;

class Seen {
  readonly #events: CommitTable;
  /** For each table, the unit that wrote a row. */
  readonly #written: Map<string, number>[];
  /** For each table, the unit that expected a row absent and did not create it. */
  readonly #expected: Map<string, number>[];
  /** For each table, the unit that refers to a row of it. */
  readonly #named: Map<string, number>[];
  /** For each table, the unit that changed any row of it. */
  readonly #changed: (number | undefined)[];
  /** For each table, the unit that removes a row of it, softly or not. */
  readonly #left: (number | undefined)[];

  constructor(tables: readonly CommitTable[]) {
    this.#events = eventsOf(tables);
    this.#written = tables.map(() => new Map());
    this.#expected = tables.map(() => new Map());
    this.#named = tables.map(() => new Map());
    this.#changed = tables.map(() => undefined);
    this.#left = tables.map(() => undefined);
  }

  /** Adds the unit. @returns true if it interacts with an earlier one */
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
    this.#changed[place] = alsoChangedBy(this.#changed[place], unit);
    if (table.dependants.length > 0 && isLeaving(change)) {
      for (const { from } of table.dependants) if (isOther(this.#changed[from], unit)) met = true;
      this.#left[place] = alsoChangedBy(this.#left[place], unit);
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

function alsoChangedBy(seen: number | undefined, unit: number): number {
  return seen === undefined || seen === unit ? unit : several;
}

function note(units: Map<string, number> | undefined, id: string, unit: number): void {
  units?.set(id, alsoChangedBy(units.get(id), unit));
}
