/**
 * The calling thread's side of the writer: collects units and keeps exactly one batch under way, so that all units that arrive during a
 * transaction form the next one (group commit).
 * States: idle; busy (one request under way); closed (accepts nothing, and `close` waits until it is idle). `BatchTurns` below says when the
 * next batch leaves. If the writer thread dies, the request under way fails, and the next request joins another thread.
 */
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { isOnlyExpected } from '../../change-listeners.ts';
import type { ProvisionalRevisions } from '../../line.ts';
import { type Commit, eventsTable, StoreUnavailable, type Unit } from '../../store.ts';
import {
  batchCharacters,
  demandUnitFits,
  octetsPerCharacter,
  unitCharacters,
  unitCharactersMaxOf,
  unitCharactersMost,
} from '../../unit-size.ts';
import { type HomeState, requestsAt } from '../home-state.ts';
import type { Damage } from '../integrity.ts';
import type { TableNumbers } from '../reconcile.ts';
import { unavailable } from '../sqlite-failure.ts';
import { type Piece, type Reply, type Request, UnitEncoder } from './writer-messages.ts';

export type QueueOptions = {
  readonly unitsWaitingMax: number;
  readonly unitsWaitingBytesMax: number;
  readonly unitsPerTransactionMax: number;
  readonly charactersPerTransactionMax: number;
  /** Connects the writer to the other end of a channel (home.ts). */
  readonly join: (port: MessagePort) => void;
  /** Tables in the order of the writer. */
  readonly tables: readonly string[];
  readonly numbers: TableNumbers;
  readonly state: HomeState;
  /** Called with a batch before its promises settle and before the next one is handed over. */
  readonly onCommitted: (batch: Batch) => void;
  /** Called with the tables that a batch or another store changed. */
  readonly onChanged: (tables: ReadonlySet<string>) => void;
  readonly onBatch: (units: number, durationMs: number) => void;
  readonly onFailed: (error: unknown) => void;
  readonly damage: Damage;
  readonly revisions: ProvisionalRevisions;
};

/** `units` contains the refused ones too; the others have the revisions from `firstRev` to `lastRev`. */
export type Batch = {
  readonly units: readonly { readonly unit: Unit }[];
  readonly firstRev: number;
  readonly lastRev: number;
};

type Waiting = {
  readonly unit: Unit;
  readonly characters: number;
  readonly resolve: (commit: Commit) => void;
  readonly reject: (error: unknown) => void;
};

type Purge = {
  readonly request: Request & { kind: 'purge' | 'probe' };
  readonly resolve: (rows: number) => void;
  readonly reject: (error: unknown) => void;
};

type UnderWay =
  | { readonly kind: 'commit'; readonly units: readonly Waiting[]; readonly started: number }
  | { readonly kind: 'purge'; readonly purge: Purge };

export class WriterQueue {
  readonly #options: QueueOptions;
  readonly #indexOf: ReadonlyMap<string, number>;
  readonly #nameOf: ReadonlyMap<number, string>;
  #waiting: Waiting[] = [];
  #charactersWaiting = 0;
  readonly #purges: Purge[] = [];
  #port: MessagePort | undefined;
  #underWay: UnderWay | undefined;
  #full: StoreUnavailable | undefined;
  readonly #turns = new BatchTurns(
    () => this.#next(),
    () => this.#waiting.length,
  );
  #closed: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: QueueOptions) {
    this.#options = options;
    this.#indexOf = new Map(options.tables.map((name, index) => [name, index]));
    this.#nameOf = new Map([...options.numbers].map(([name, number]) => [number, name]));
    this.#join();
  }

  /** The longest unit that `commit` takes. */
  get unitCharactersMax(): number {
    return unitCharactersMaxOf(this.#options.unitsWaitingBytesMax);
  }

  get unitsWaiting(): number {
    return this.#waiting.length;
  }

  /** True if the file may contain a batch that `onCommitted` was not called for. */
  get isCommitting(): boolean {
    return this.#underWay !== undefined;
  }

  get alive(): boolean {
    return this.#port !== undefined && this.#closing === undefined;
  }

  commit(unit: Unit): Promise<Commit> {
    if (this.#closing !== undefined) return Promise.reject(unavailable('the store is closed'));
    if (this.#waiting.length >= this.#options.unitsWaitingMax) {
      return Promise.reject(
        unavailable(`${this.#waiting.length} writes wait to be committed: the queue is full`),
      );
    }
    const characters = unitCharacters(unit);
    const { unitsWaitingBytesMax } = this.#options;
    return new Promise((resolve, reject) => {
      demandUnitFits(characters, this.unitCharactersMax);
      if (octetsPerCharacter * (this.#charactersWaiting + characters) > unitsWaitingBytesMax) {
        throw unavailable(
          `${this.#charactersWaiting} characters wait to be committed: the queue is full (COMITY_UNITS_WAITING_BYTES_MAX)`,
        );
      }
      this.#options.damage.refuse();
      this.#charactersWaiting += characters;
      this.#waiting.push({ unit, characters, resolve, reject });
      this.#schedule();
    });
  }

  /** Removes those of the rows that are still last updated before the time. */
  purge(table: string, updatedBefore: number, ids: readonly string[]): Promise<number> {
    if (this.#closing !== undefined) return Promise.reject(unavailable('the store is closed'));
    return new Promise((resolve, reject) => {
      this.#purges.push({ request: { kind: 'purge', table, updatedBefore, ids }, resolve, reject });
      this.#schedule();
    });
  }

  /** After a write found the disk full: checks for space. @throws StoreUnavailable */
  async probe(): Promise<void> {
    if (this.#full === undefined) return;
    if (this.#closing !== undefined) throw unavailable('the store is closed');
    await new Promise<number>((resolve, reject) => {
      this.#purges.push({ request: { kind: 'probe' }, resolve, reject });
      this.#schedule();
    });
  }

  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      this.#closed = resolve;
      this.#schedule();
    });
    return this.#closing;
  }

  #schedule(): void {
    if (this.#underWay === undefined) this.#turns.schedule();
  }

  #next(): void {
    if (this.#underWay !== undefined) return;
    const purge = this.#purges.shift();
    if (purge !== undefined) {
      this.#underWay = { kind: 'purge', purge };
      this.#post(purge.request);
    } else if (this.#waiting.length > 0) this.#postBatch();
    else if (this.#closed === undefined) this.#port?.unref();
    else {
      const port = this.#port;
      this.#port = undefined;
      port?.close();
      this.#closed();
    }
  }

  #postBatch(): void {
    const { unitsPerTransactionMax, charactersPerTransactionMax } = this.#options;
    const encoder = new UnitEncoder({ indexOf: this.#indexOf, revisions: this.#options.revisions });
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
        encoder.append(waiting.unit);
        units.push(waiting);
        characters += waiting.characters;
        weight += batchCharacters(waiting.unit, waiting.characters);
      } catch (error) {
        waiting.reject(error);
      }
    }
    this.#waiting = taken === this.#waiting.length ? [] : this.#waiting.slice(taken);
    if (units.length === 0) {
      this.#next();
      return;
    }
    const underWay: UnderWay = { kind: 'commit', units, started: performance.now() };
    this.#underWay = underWay;
    this.#postEncoded(encoder, underWay);
  }

  /** Posts the pieces of a long text one in a turn of the event loop, then the rest of it with the request. */
  #postEncoded(encoder: UnitEncoder, underWay: UnderWay): void {
    // The writer ended meanwhile.
    if (this.#underWay !== underWay) return;
    try {
      const text = encoder.takePiece();
      if (text === undefined) {
        this.#post({ kind: 'commit', batch: encoder.finish() });
        return;
      }
      this.#portInUse().postMessage({ kind: 'piece', text } satisfies Piece);
      setImmediate(() => this.#postEncoded(encoder, underWay));
    } catch (error) {
      // The length of a batch is bounded, but its memory may be used up: that fails its units, and not the process.
      this.#fail(error);
    }
  }

  #post(request: Request): void {
    try {
      this.#portInUse().postMessage(request);
      Atomics.add(this.#options.state, requestsAt, 1);
      Atomics.notify(this.#options.state, requestsAt);
    } catch (error) {
      // The request contains a value that cannot be cloned, so the writer never received it.
      this.#fail(error);
    }
  }

  /** Keeps the process running during a commit; an idle writer does not. */
  #portInUse(): MessagePort {
    const port = this.#port ?? this.#join();
    port.ref();
    return port;
  }

  #join(): MessagePort {
    const { port1: port, port2: joined } = new MessageChannel();
    this.#options.join(joined);
    port.on('message', (reply: Reply) => this.#answer(reply));
    port.on('close', () => this.#lost(port));
    port.unref();
    this.#port = port;
    return port;
  }

  /** The writer ended. */
  #lost(port: MessagePort): void {
    if (this.#port !== port) return;
    this.#port = undefined;
    this.#fail(unavailable('the writer thread ended'));
  }

  #answer(reply: Reply): void {
    if (reply.kind === 'changed') {
      this.#options.onChanged(this.#namesOf(reply.tables));
      return;
    }
    const underWay = this.#underWay;
    if (underWay === undefined) return;
    if (reply.kind === 'failed') {
      this.#options.damage.note(reply.fault, reply.message);
      const error = unavailable(`storage failed: ${reply.message}`, undefined, reply.fault);
      if (reply.fault === 'storage_full') this.#full = error;
      this.#fail(error);
      return;
    }
    this.#underWay = undefined;
    this.#full = undefined;
    if (underWay.kind === 'commit' && reply.kind === 'committed') {
      const { units } = underWay;
      const { firstRev, refusals } = reply;
      this.#options.onCommitted({ units, firstRev, lastRev: firstRev + units.length - refusals.length - 1 });
      this.#settleRevisions(units, reply);
    }
    // A next batch that is worth a commit leaves before the promises of this one settle, so that the writer does not wait for them.
    this.#turns.follow(underWay.kind === 'commit' ? underWay.units.length : 0);
    if (underWay.kind === 'purge') {
      const rows = reply.kind === 'purged' ? reply.rows : 0;
      underWay.purge.resolve(rows);
      const { request } = underWay.purge;
      if (rows > 0 && request.kind === 'purge') this.#options.onChanged(new Set([request.table]));
    } else if (reply.kind === 'committed') {
      const changed = settle(underWay.units, reply);
      this.#options.onBatch(underWay.units.length, performance.now() - underWay.started);
      if (changed.size > 0) this.#options.onChanged(changed);
    }
  }

  /** Before the next batch is encoded, in which units may expect revisions of this one. */
  #settleRevisions(units: readonly Waiting[], { firstRev, refusals }: Reply & { kind: 'committed' }): void {
    let refused = 0;
    for (const [index, { unit }] of units.entries()) {
      const isRefused = refusals[refused]?.unit === index;
      if (unit.provisional !== undefined) {
        const rev = isRefused ? undefined : firstRev + index - refused;
        this.#options.revisions.settle(unit.provisional, rev);
      }
      if (isRefused) refused += 1;
    }
  }

  /** Fails the request under way and schedules the next. */
  #fail(error: unknown): void {
    const underWay = this.#underWay;
    this.#underWay = undefined;
    if (error instanceof StoreUnavailable) this.#options.onFailed(error);
    if (underWay?.kind === 'commit') for (const { reject } of underWay.units) reject(error);
    if (underWay?.kind === 'purge') underWay.purge.reject(error);
    this.#schedule();
  }

  #namesOf(numbers: readonly number[]): ReadonlySet<string> {
    return new Set(numbers.map((number) => this.#nameOf.get(number)).filter((name) => name !== undefined));
  }
}

/** @returns the tables that were changed */
function settle(units: readonly Waiting[], reply: Reply & { kind: 'committed' }): ReadonlySet<string> {
  const changed = new Set<string>();
  let rev = reply.firstRev;
  let refused = 0;
  for (const [index, { unit, resolve, reject }] of units.entries()) {
    const refusal = reply.refusals[refused];
    if (refusal === undefined || refusal.unit !== index) {
      resolve({ outcome: 'committed', rev });
      for (const change of unit.changes) if (!isOnlyExpected(change)) changed.add(change.table);
      if (unit.events.length > 0) changed.add(eventsTable);
      rev += 1;
      continue;
    }
    refused += 1;
    if ('error' in refusal) reject(refusal.error);
    else resolve(refusal.commit);
  }
  return changed;
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
