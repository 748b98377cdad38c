/**
 * Asks the store, endpoint by endpoint, when the first delivery is due: at the start, for endpoints that came, and in the sweep that
 * makes up for a wake that was lost. A few questions at a time, and others have the event loop in between: a look at an embedded
 * store takes 40 µs, and there may be 10^5.
 */
import type { Observe } from '../../../observe/observation.ts';
import type { Store } from '../../../store/store.ts';
import { DueRows, dueDeliveries } from './due-rows.ts';
import type { Timers } from './timers.ts';

const looksAtOnce = 8;
const looksPerTurn = 32;
const againMs = 1000;

export type LooksOptions = {
  readonly store: Pick<Store, 'plan'>;
  readonly timers: Timers;
  readonly observe: Observe;
  /** The endpoint has one due at the time, in milliseconds since the epoch: often a past one. */
  readonly onDue: (endpointId: string, at: number) => void;
};

export class Looks {
  readonly #options: LooksOptions;
  readonly #wanted = new Set<string>();
  #working = 0;
  #closed = false;

  constructor(options: LooksOptions) {
    this.#options = options;
  }

  add(endpointId: string): void {
    this.#wanted.add(endpointId);
    if (this.#working >= looksAtOnce || this.#closed) return;
    this.#working += 1;
    void this.#work();
  }

  close(): void {
    this.#closed = true;
    this.#wanted.clear();
  }

  async #work(): Promise<void> {
    // Those that are added in one go are looked at by several workers, not by the first alone.
    await Promise.resolve();
    let looked = 0;
    for (const id of this.#wanted) {
      this.#wanted.delete(id);
      try {
        const rows = new DueRows(this.#options.store, dueDeliveries, id).first(1);
        const [row] = rows instanceof Promise ? await rows : rows;
        if (this.#closed) break;
        if (row !== undefined) this.#options.onDue(id, dueAtOf(row.doc));
      } catch (error) {
        this.#failed(id, error);
        break;
      }
      looked += 1;
      if (looked % looksPerTurn === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    this.#working -= 1;
  }

  /** The store is away: the others would find it so as well. */
  #failed(id: string, error: unknown): void {
    const { observe, timers } = this.#options;
    if (this.#closed) return;
    observe({ kind: 'sending-failed', what: 'looking for deliveries', error });
    this.#wanted.add(id);
    timers.after(againMs, () => {
      if (!this.#closed) this.add(id);
    });
  }
}

function dueAtOf(doc: string): number {
  const { dueAt } = JSON.parse(doc) as { readonly dueAt: string | null };
  return dueAt === null ? Number.POSITIVE_INFINITY : Date.parse(dueAt);
}
