/** Which of the other processes are gone: those that were silent for a whole lease, and those of this host that are not alive. */
import type { Holder, LeaseTable, ProcessRow } from './lease-rows.ts';

export type ProcessWatchOptions = {
  readonly leaseMs: number;
  /** Ourselves. */
  readonly holder: Holder;
  /** Whether a process of this host lives. */
  readonly isAlive: (pid: number) => boolean;
};

type Seen = { readonly rev: number; readonly since: number };

export class ProcessWatch {
  readonly #options: ProcessWatchOptions;
  /** Rows of other processes, and since when they are as they are. */
  #seen = new Map<string, Seen>();

  constructor(options: ProcessWatchOptions) {
    this.#options = options;
  }

  /**
   * @param me id of our own row
   * @param readAt when the table had been read, on the steady clock: a moment before that would count the lease from too early
   */
  findDead({ processes }: Pick<LeaseTable, 'processes'>, me: string, readAt: number): readonly ProcessRow[] {
    const seen = new Map<string, Seen>();
    const dead: ProcessRow[] = [];
    for (const row of processes.values()) {
      if (row.id === me) continue;
      const before = this.#seen.get(row.id);
      const now = before?.rev === row.rev ? before : { rev: row.rev, since: readAt };
      seen.set(row.id, now);
      if (readAt - now.since >= this.#options.leaseMs || this.#isGone(row)) dead.push(row);
    }
    this.#seen = seen;
    return dead;
  }

  /** Whether the process ended for certain, because it was one of this host. */
  #isGone({ holder, joinedAt }: ProcessRow): boolean {
    const own = this.#options.holder;
    if (holder.host !== own.host) return false;
    // What took up sending after we were started is no former life of ours, whatever its number is: a host that is two.
    if (holder.pid === own.pid) return holder.startedAt !== own.startedAt && joinedAt < own.startedAt;
    return !this.#options.isAlive(holder.pid);
  }
}
