/**
 * The audit trail: facts of security, in the table that `/audit` serves. A fact that comes with a change is committed in its unit. One that
 * changes nothing else, such as a failed login, is noted: written soon, many in one unit, by a writer in the background that tries again
 * while the store is away. What waits is bounded, so a flood of bad logins costs neither memory nor answers; facts beyond the bound are
 * missing in the trail, and that is observed.
 *
 * Deliberately not durable before the answer: a crash may lose the noted facts of the last moment.
 */
import type { Observe } from '../observe/observation.ts';
import { type Change, type Store, StoreUnavailable } from '../store/store.ts';
import type { Audit, AuditFact } from './audit-fact.ts';
import { auditRow } from './audit-row.ts';
import { auditTable } from './tables.ts';

/** Facts of a moment go into one unit. */
const gatherMs = 50;
const batchFactsMax = 500;
/** Between attempts while the store is away: doubled from the first to the second. */
const retryMs = 1000;
const retryMsMax = 30_000;
/** What a stop waits for at most. */
const closeMs = 5000;

export type AuditOptions = {
  readonly store: Pick<Store, 'commit'>;
  /** 26 characters (`createIdSource`). */
  readonly newId: () => string;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly observe: Observe;
  /** Facts that may wait to be written. */
  readonly waitingMax: number;
};

/** `waiting`: facts that are not written yet. */
export type AuditTrail = Audit & { readonly waiting: () => number };

export function createAudit(options: AuditOptions): AuditTrail {
  const writer = new Writer(options);
  const entry = (fact: AuditFact): Change => {
    const id = `aud_${options.newId()}`;
    return { table: auditTable, id, expect: { absent: true }, next: auditRow(id, fact, options.clock()) };
  };
  return {
    entry,
    note: (fact) => {
      if (writer.hasRoom()) writer.add(entry(fact));
      else writer.drop(1);
    },
    close: () => writer.close(),
    waiting: () => writer.waiting(),
  };
}

class Writer {
  readonly #options: AuditOptions;
  #queue: Change[] = [];
  /** Tried again as it is: a unit whose answer was lost must be known again. */
  #batch: readonly Change[] = [];
  #dropped = 0;
  #closed = false;
  #running: Promise<void> | undefined;
  /** Ends the pause of the writer. */
  #wake: () => void = () => undefined;

  constructor(options: AuditOptions) {
    this.#options = options;
  }

  waiting(): number {
    return this.#queue.length + this.#batch.length;
  }

  hasRoom(): boolean {
    return !this.#closed && this.waiting() < this.#options.waitingMax;
  }

  add(change: Change): void {
    this.#queue.push(change);
    this.#running ??= this.#run();
  }

  drop(facts: number): void {
    // One line in the log for many: while the writer runs, it tells.
    this.#dropped += facts;
    if (this.#running === undefined) this.#tellDropped();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#wake();
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, closeMs);
    await Promise.race([this.#running, late]);
    clearTimeout(timer);
    this.#dropped += this.waiting();
    this.#queue = [];
    this.#batch = [];
    this.#tellDropped();
  }

  async #run(): Promise<void> {
    let failures = 0;
    await this.#pause(gatherMs);
    while (this.waiting() > 0) {
      if (this.#batch.length === 0) this.#batch = this.#queue.splice(0, batchFactsMax);
      if (await this.#write()) {
        failures = 0;
        this.#batch = [];
      } else {
        this.#tellDropped();
        // A program that stops tries once more, not until the bound.
        if (this.#closed && failures > 0) break;
        await this.#pause(Math.min(retryMs * 2 ** failures, retryMsMax));
        failures += 1;
      }
    }
    this.#tellDropped();
    this.#running = undefined;
  }

  /** Whether nothing is left to do for the batch. */
  async #write(): Promise<boolean> {
    const batch = this.#batch;
    try {
      // Ids are new: a row that stands there already is that of an attempt whose answer was lost.
      await this.#options.store.commit({ changes: batch, events: [] });
      return true;
    } catch (error) {
      this.#options.observe({ kind: 'store-failed', what: 'audit trail', error });
      if (error instanceof StoreUnavailable) return false;
      // Nothing but a defect of ours; the same unit would fail for ever.
      this.#dropped += batch.length;
      return true;
    }
  }

  #pause(ms: number): Promise<void> {
    if (this.#closed) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms).unref();
    this.#wake = () => {
      clearTimeout(timer);
      resolve();
    };
    return promise;
  }

  #tellDropped(): void {
    if (this.#dropped === 0) return;
    this.#options.observe({ kind: 'audit-dropped', facts: this.#dropped });
    this.#dropped = 0;
  }
}
