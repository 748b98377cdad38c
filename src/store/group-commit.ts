/**
 * The queue of a store's writes, the same for both engines: collects units, bounds what waits, and keeps exactly one batch under way, so that
 * all units that arrive during a transaction form the next one (group commit). Units are taken in order of arrival, and get revisions in
 * that order. The engine makes and sends the batches; its other writes, such as a purge, run between two of them.
 * States: idle; busy (a batch or another write is under way); closed (accepts nothing, and `close` waits until what was accepted has
 * ended). `BatchTurns` below says when the next batch leaves.
 */
import { defaultSettings, type Settings } from '../config/settings.ts';
import type { Observe } from '../observe/observation.ts';
import { type Commit, StoreUnavailable, type Unit } from './store.ts';

export type UnitBounds = Pick<
  Settings,
  'unitsWaitingMax' | 'unitsWaitingBytesMax' | 'unitsPerTransactionMax' | 'charactersPerTransactionMax'
>;

/** The engine of a store, as the queue uses it. */
export type CommitEngine = {
  /** Begins a batch; revisions of earlier ones are settled. */
  readonly begin: () => Batch;
  /** Gets the revision of each unit that has a provisional one; undefined if it failed (lines.ts). */
  readonly revisions: { settle(provisional: number, rev: number | undefined): void };
  readonly observe: Observe;
  /** A unit that waited longer is not begun (COMITY_DATABASE_TIMEOUT_MS). Default: none waits too long. */
  readonly unitWaitMs?: number;
};

export type Batch = {
  /** @throws if the unit is invalid; then it is not part of the batch */
  add(unit: Unit): void;
  /** Sends the units. Rejects if it is known of none that it was committed. */
  commit(): Promise<Settled>;
};

export type Settled = {
  /** For each unit of the batch. */
  readonly outcomes: readonly Outcome[];
  /** Called after the promises of the units settled: with the tables that they changed. */
  readonly announce: () => void;
};

/** `error` if the unit's own values are invalid, or storage failed. */
export type Outcome = { readonly commit: Commit } | { readonly error: unknown };

type Waiting = {
  readonly unit: Unit;
  readonly characters: number;
  readonly since: number;
  readonly resolve: (commit: Commit) => void;
  readonly reject: (error: unknown) => void;
};

/** Rows that a purge removes at a time. */
const rowsPerPurge = 500;

export class GroupCommit {
  readonly #engine: CommitEngine;
  readonly #bounds: UnitBounds;
  #waiting: Waiting[] = [];
  #charactersWaiting = 0;
  /** Writes that are no units; none rejects. */
  readonly #others: (() => Promise<void>)[] = [];
  #isBusy = false;
  readonly #turns = new BatchTurns(
    () => this.#next(),
    () => this.#waiting.length,
  );
  #closing: PromiseWithResolvers<void> | undefined;

  constructor(engine: CommitEngine, bounds: Partial<UnitBounds>) {
    this.#engine = engine;
    this.#bounds = { ...defaultSettings, ...bounds };
  }

  /** The longest unit that `commit` takes. */
  get unitCharactersMax(): number {
    return unitCharactersMaxOf(this.#bounds.unitsWaitingBytesMax);
  }

  get unitsWaiting(): number {
    return this.#waiting.length;
  }

  /** True if the store may contain a batch whose promises have not settled. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  get isClosed(): boolean {
    return this.#closing !== undefined;
  }

  /** @throws UnitTooLarge, StoreUnavailable, and what the engine throws for an invalid unit */
  commit(unit: Unit): Promise<Commit> {
    return new Promise((resolve, reject) => {
      this.#refuseClosed();
      const { length } = this.#waiting;
      if (length >= this.#bounds.unitsWaitingMax) {
        throw new StoreUnavailable(`${length} writes wait to be committed: the queue is full`);
      }
      const characters = unitCharacters(unit);
      demandUnitFits(characters, this.unitCharactersMax);
      if (octetsPerCharacter * (this.#charactersWaiting + characters) > this.#bounds.unitsWaitingBytesMax) {
        throw new StoreUnavailable(
          `${this.#charactersWaiting} characters wait to be committed: the queue is full (COMITY_UNITS_WAITING_BYTES_MAX)`,
        );
      }
      this.#charactersWaiting += characters;
      this.#waiting.push({ unit, characters, since: performance.now(), resolve, reject });
      this.#schedule();
    });
  }

  /** Runs another write when no batch is under way, before the next one. @throws StoreUnavailable */
  async alone<T>(write: () => Promise<T>): Promise<T> {
    this.#refuseClosed();
    return new Promise((resolve, reject) => {
      this.#others.push(async () => {
        try {
          resolve(await write());
        } catch (error) {
          this.#observeFailure(error);
          reject(error);
        }
      });
      this.#schedule();
    });
  }

  /** @param remove removes the rows that are still as `find` found them @returns how many it removed */
  async purge(
    find: () => Promise<readonly string[]>,
    remove: (ids: readonly string[]) => Promise<number>,
  ): Promise<number> {
    this.#refuseClosed();
    const ids = await find();
    let rows = 0;
    for (let start = 0; start < ids.length; start += rowsPerPurge) {
      rows += await this.alone(() => remove(ids.slice(start, start + rowsPerPurge)));
    }
    return rows;
  }

  close(): Promise<void> {
    if (this.#closing === undefined) {
      this.#closing = Promise.withResolvers();
      this.#schedule();
    }
    return this.#closing.promise;
  }

  #refuseClosed(): void {
    if (this.isClosed) throw new StoreUnavailable('the store is closed');
  }

  #schedule(): void {
    if (!this.#isBusy) this.#turns.schedule();
  }

  #next(): void {
    if (this.#isBusy) return;
    const other = this.#others.shift();
    if (other !== undefined) void this.#runOther(other);
    else if (this.#waiting.length > 0) this.#startBatch();
    else this.#closing?.resolve();
  }

  async #runOther(other: () => Promise<void>): Promise<void> {
    this.#isBusy = true;
    await other();
    this.#isBusy = false;
    this.#turns.follow(0);
  }

  #startBatch(): void {
    const batch = this.#engine.begin();
    const units = this.#take(batch);
    if (units.length === 0) this.#next();
    else void this.#runBatch(batch, units);
  }

  /** @returns the units that the batch has taken */
  #take(batch: Batch): readonly Waiting[] {
    const { unitsPerTransactionMax, charactersPerTransactionMax } = this.#bounds;
    const { unitWaitMs = Number.POSITIVE_INFINITY } = this.#engine;
    const sinceLeast = performance.now() - unitWaitMs;
    const units: Waiting[] = [];
    let characters = 0;
    let weight = 0;
    let taken = 0;
    for (const waiting of this.#waiting) {
      if (units.length >= unitsPerTransactionMax || weight >= charactersPerTransactionMax) break;
      if (units.length > 0 && characters + waiting.characters > unitCharactersMost) break;
      taken += 1;
      this.#charactersWaiting -= waiting.characters;
      try {
        if (waiting.since < sinceLeast) {
          throw new StoreUnavailable(
            'the write waited too long to be committed (COMITY_DATABASE_TIMEOUT_MS)',
          );
        }
        batch.add(waiting.unit);
        units.push(waiting);
        characters += waiting.characters;
        weight += batchCharacters(waiting.unit, waiting.characters);
      } catch (error) {
        waiting.reject(error);
      }
    }
    this.#waiting = taken === this.#waiting.length ? [] : this.#waiting.slice(taken);
    return units;
  }

  async #runBatch(batch: Batch, units: readonly Waiting[]): Promise<void> {
    this.#isBusy = true;
    const started = performance.now();
    const { outcomes, announce } = await settle(batch, units.length);
    this.#isBusy = false;
    // Before the next batch is made, in which units may expect revisions of this one.
    for (const [index, { unit }] of units.entries()) this.#settleRevision(unit, outcomes[index] as Outcome);
    // A next batch that is worth a commit leaves before the promises of this one settle, so that the engine does not wait for them.
    this.#turns.follow(units.length);
    for (const [index, { resolve, reject }] of units.entries()) {
      const outcome = outcomes[index] as Outcome;
      if ('commit' in outcome) resolve(outcome.commit);
      else reject(outcome.error);
    }
    if (outcomes.some((outcome) => 'commit' in outcome)) {
      const durationMs = performance.now() - started;
      this.#engine.observe({ kind: 'units-committed', units: units.length, durationMs });
    }
    this.#observeFailure(storageFailure(outcomes));
    announce();
  }

  #settleRevision({ provisional }: Unit, outcome: Outcome): void {
    if (provisional === undefined) return;
    const isCommitted = 'commit' in outcome && outcome.commit.outcome === 'committed';
    this.#engine.revisions.settle(provisional, isCommitted ? outcome.commit.rev : undefined);
  }

  #observeFailure(error: unknown): void {
    if (!(error instanceof StoreUnavailable)) return;
    this.#engine.observe({ kind: 'store-failed', what: 'commit', error });
  }
}

async function settle(batch: Batch, units: number): Promise<Settled> {
  try {
    return await batch.commit();
  } catch (error) {
    return { outcomes: Array.from({ length: units }, () => ({ error })), announce: () => undefined };
  }
}

/** The first failure of storage; undefined if storage failed for no unit. */
export function storageFailure(outcomes: readonly Outcome[]): StoreUnavailable | undefined {
  for (const outcome of outcomes) {
    if ('error' in outcome && outcome.error instanceof StoreUnavailable) return outcome.error;
  }
  return undefined;
}

/*
 * When the next batch of a group commit leaves. In the idle state it leaves at the end of the turn of the event loop, so that a turn is one
 * batch. After a commit it leaves at once if it has half as many units as the last one; fewer wait for the requests that the responses bring,
 * for at most four turns, which an idle event loop passes in 0.1 ms (docs/decisions/0065-a-commit-waits-for-those-it-answers.md).
 */

/** The next requests of clients on the same machine arrive in the second turn. */
const turnsMax = 4;

export class BatchTurns {
  readonly #next: () => void;
  readonly #waiting: () => number;
  #isScheduled = false;

  /** @param next starts the next batch unless one is under way @param waiting the number of units that wait */
  constructor(next: () => void, waiting: () => number) {
    this.#next = next;
    this.#waiting = waiting;
  }

  /** Starts the next batch at the end of this turn. */
  schedule(): void {
    this.#schedule(1, 0);
  }

  /** Starts the next batch after one of so many units. */
  follow(units: number): void {
    const least = units / 2;
    if (this.#waiting() >= least) this.#next();
    else this.#schedule(turnsMax, least);
  }

  #schedule(turns: number, least: number): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const end = (left: number): void => {
      if (left > 1 && this.#waiting() < least) {
        setImmediate(end, left - 1);
        return;
      }
      this.#isScheduled = false;
      this.#next();
    };
    setImmediate(end, turns);
  }
}

/*
 * The length of a unit, which both engines count and bound alike: what waits to be committed is held in memory, and PostgreSQL gets the
 * documents of a unit as one text.
 */

/** Characters of the longest unit, and of the units of one batch together: half of the longest text of the runtime. */
const unitCharactersMost = 256 * 1024 * 1024;

/** An upper bound of what the runtime holds for a character. */
const octetsPerCharacter = 2;

/** A unit that is longer than the store takes: nothing of it was made, and a retry would not help. */
export class UnitTooLarge extends Error {
  override readonly name = 'UnitTooLarge';
}

/** Characters of a unit's documents and search texts. */
export function unitCharacters(unit: Unit): number {
  let characters = 0;
  for (const { next } of unit.changes) {
    if (next !== null) characters += next.doc.length + (next.search?.length ?? 0);
  }
  for (const { doc, former } of unit.events) characters += doc.length + (former?.length ?? 0);
  return characters;
}

/**
 * Characters that a batch counts for each row, besides its document: the program encodes, writes and announces every row. With them, a batch
 * of units with 250 deliveries each has 2,000 rows; with 30,000 it held the event loop for 450 ms.
 */
export const charactersPerRow = 4096;

/** The part of `charactersPerTransactionMax` that a unit takes. @param characters of its documents and search texts */
function batchCharacters({ changes, events }: Unit, characters: number): number {
  return characters + charactersPerRow * (changes.length + events.length);
}

/** Characters of the longest unit. @param bytesMax `unitsWaitingBytesMax`, which bounds a unit that waits alone as well */
function unitCharactersMaxOf(bytesMax: number): number {
  return Math.min(Math.floor(bytesMax / octetsPerCharacter), unitCharactersMost);
}

/** Characters of the documents that one unit deletes or changes: their events hold them again. */
export function deletedCharactersMaxOf({
  unitCharactersMax,
}: {
  readonly unitCharactersMax: number;
}): number {
  return Math.floor(unitCharactersMax / 2);
}

/** @throws UnitTooLarge */
function demandUnitFits(characters: number, most: number): void {
  if (characters > most)
    throw new UnitTooLarge(
      `the change would write ${characters} characters at once, and ${most} are the limit (COMITY_UNITS_WAITING_BYTES_MAX): change fewer or shorter documents at once`,
    );
}
