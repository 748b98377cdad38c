/**
 * Commits a batch: boldly if its units do not interact, otherwise carefully; carefully after an assumption failed; again, after a pause, if
 * the database rolled it back for reasons of its own; in halves if some unit's values are invalid, down to the one unit, which alone is
 * rejected.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { isLeaving, isOnlyExpected } from '../../change-listeners.ts';
import type { Outcome } from '../../group-commit.ts';
import { quoteName } from '../../quote-name.ts';
import type { Commit } from '../../store.ts';
import { asUnavailable } from '../connection/connection-failure.ts';
import { commitBoldly } from './bold-flight.ts';
import { commitCarefully } from './commit-carefully.ts';
import { type CommitTable, eventsOf, type Placed, type Work } from './commit-table.ts';
import { type Batch, type CommitContext, meaningOf, NotCommitted, violationOf } from './flight.ts';
import { type BatchOutcome, failBatch, joinOutcomes } from './outcome.ts';

export type BatchContext = CommitContext & { readonly schema: string; readonly retriesMax: number };

/** Upper bound of the random pause before a retry. */
const pauseMostMs = 20;

/** Never rejects: a failure is the outcome of the units concerned. */
export async function commitBatch(context: BatchContext, batch: Batch): Promise<BatchOutcome> {
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

/** Maps a violation of a unique index to its field, including an index of a newer declaration that this process does not know. */
async function faultOf(context: BatchContext, { unit }: Work, error: unknown): Promise<Outcome> {
  const violation = violationOf(error);
  if (violation === undefined) return { error };
  const change = unit.changes.findIndex(
    ({ table, next }) => table === violation.table && next !== null && next.deletedAt === null,
  );
  const field = await fieldOf(context, violation.index);
  if (change < 0 || field === undefined) return { error };
  const commit: Commit = { outcome: 'taken', change, field };
  return { commit };
}

async function fieldOf({ connection, schema }: BatchContext, index: string): Promise<string | undefined> {
  const sql = `SELECT fields::text FROM ${quoteName(schema)}.comity_indexes WHERE name = $1`;
  try {
    const [reply] = await connection.send([{ sql, values: [index] }]);
    const fields = reply?.rows[0]?.[0];
    return fields === undefined ? undefined : String(JSON.parse(String(fields))[0]);
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
