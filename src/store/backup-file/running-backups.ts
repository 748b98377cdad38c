/** The backups of a store under way. Closing the store stops them and refuses new ones. */
import { StoreUnavailable } from '../store.ts';
import type { Copy, OnProgress } from './start-copy.ts';

export class RunningBackups {
  readonly #start: (to: string, onProgress: OnProgress) => Copy;
  readonly #stops = new Set<() => Promise<void>>();
  #closed = false;

  /** @param start starts one copy of the store */
  constructor(start: (to: string, onProgress: OnProgress) => Copy) {
    this.#start = start;
  }

  /** Copies the store to `to`. @throws StoreUnavailable if it fails, or after `close` */
  async run(to: string, onProgress: OnProgress): Promise<void> {
    if (this.#closed) throw new StoreUnavailable('the store is closed');
    const copy = this.#start(to, onProgress);
    this.#stops.add(copy.stop);
    try {
      await copy.done;
    } finally {
      this.#stops.delete(copy.stop);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const stop of this.#stops) await stop();
  }
}
