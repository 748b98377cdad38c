/**
 * The backups under way. Apart from the store, because closing it has to stop each of them and to begin no other.
 */
import { startBackup } from './backup.ts';
import { unavailable } from './failure.ts';

export class RunningBackups {
  readonly #path: string;
  readonly #stops = new Set<() => Promise<void>>();
  #closed = false;

  /** @param path the database file to copy */
  constructor(path: string) {
    this.#path = path;
  }

  /** Copies the database to `to`. @throws StoreUnavailable when it fails, or after `close` */
  async run(to: string, onProgress: Parameters<typeof startBackup>[2]): Promise<void> {
    if (this.#closed) throw unavailable('the store is closed');
    const copy = startBackup(this.#path, to, onProgress);
    this.#stops.add(copy.stop);
    try {
      await copy.done;
    } finally {
      this.#stops.delete(copy.stop);
    }
  }

  /** Stops what is under way, and takes no more from this call on. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const stop of this.#stops) await stop();
  }
}
