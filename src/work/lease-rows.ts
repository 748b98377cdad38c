/**
 * The rows of leases: encoding, decoding and the detection of dead processes. Each process has a row, and one row
 * assigns the lanes.
 */
import { always, byId } from '../model/filter.ts';
import {
  type Change,
  keptRow,
  type MaybePromise,
  type NextRow,
  type Plan,
  type Row,
  type Store,
} from '../store/store.ts';
import { laneCount } from './lanes.ts';

/** The table of leases, used if several processes share the store. */
export const lanesTable = 'webhook_lanes';

/** Far more than there are lanes. */
const rowsMax = 1024;
const assignmentId = 'assignment';
const processPrefix = 'process/';

/**
 * A process: `pid` and `startedAt` identify it on its host. `startedAt` is in milliseconds since the epoch. `worker` distinguishes the workers of a
 * process apart.
 */
export type Holder = {
  readonly host: string;
  readonly pid: number;
  readonly startedAt: number;
  readonly worker?: string | undefined;
};

export type ProcessRow = {
  readonly id: string;
  readonly rev: number;
  readonly holder: Holder;
  /** When it joined, on its own clock. */
  readonly joinedAt: number;
};

export type LeaseTable = {
  readonly processes: ReadonlyMap<string, ProcessRow>;
  /** For each lane the id of its process's row; null: free. */
  readonly lanes: readonly (string | null)[];
  /** Undefined: the row does not exist yet. */
  readonly lanesRev: number | undefined;
};

/** Returns a new id for each life, because a process may join again after others removed its row. */
export function processId({ host, pid, startedAt, worker }: Holder, life: number): string {
  const process = `${processPrefix}${host}:${pid}:${startedAt}`;
  return worker === undefined ? `${process}:${life}` : `${process}:${worker}:${life}`;
}

export function leasePlan(store: Pick<Store, 'plan'>): Plan {
  return store.plan({ table: lanesTable, filter: always, sort: byId, limit: rowsMax });
}

export function leaseTableOf(rows: readonly Row[]): LeaseTable {
  const processes = new Map<string, ProcessRow>();
  let lanes: readonly (string | null)[] = new Array<null>(laneCount).fill(null);
  let lanesRev: number | undefined;
  for (const { id, rev, doc } of rows) {
    if (id === assignmentId) {
      lanes = (JSON.parse(doc) as { readonly lanes: readonly (string | null)[] }).lanes;
      lanesRev = rev;
    } else {
      const { holder, joinedAt } = JSON.parse(doc) as Pick<ProcessRow, 'holder' | 'joinedAt'>;
      processes.set(id, { id, rev, holder, joinedAt });
    }
  }
  return { processes, lanes, lanesRev };
}

/** @param rev undefined for a new row */
export function processChange(
  { id, rev, holder, joinedAt }: Omit<ProcessRow, 'rev'> & { readonly rev: number | undefined },
  at: number,
): Change {
  return changeTo(id, rev, keptRow(JSON.stringify({ holder, joinedAt }), null, joinedAt, at));
}

export function processEnd({ id, rev }: Pick<ProcessRow, 'id' | 'rev'>): Change {
  return changeTo(id, rev, null);
}

export function lanesChange(
  { lanesRev }: Pick<LeaseTable, 'lanesRev'>,
  lanes: LeaseTable['lanes'],
  at: number,
): Change {
  return changeTo(assignmentId, lanesRev, keptRow(JSON.stringify({ lanes }), null, at, at));
}

function changeTo(id: string, rev: number | undefined, next: NextRow | null): Change {
  return { table: lanesTable, id, expect: rev === undefined ? { absent: true } : { rev }, next };
}

export type ProcessWatchOptions = {
  readonly leaseMs: number;
  /** This process. */
  readonly holder: Holder;
  /** Returns true if the process with this number lives on this host. */
  readonly isAlive: (pid: number) => boolean;
  readonly hasEnded: HasEnded;
};

/** Returns true for a worker of this process that has ended. */
export type HasEnded = (worker: string) => MaybePromise<boolean>;

type Seen = { readonly rev: number; readonly since: number };

/** Finds dead processes: those that were silent for a whole lease, and those of this host that are not alive. */
export class ProcessWatch {
  readonly #options: ProcessWatchOptions;
  /** Rows of other processes, with the time since which each is unchanged. */
  #seen = new Map<string, Seen>();

  constructor(options: ProcessWatchOptions) {
    this.#options = options;
  }

  /**
   * @param me id of this process's row
   * @param readAt when the read of the table ended, on the steady clock: an earlier moment would begin the lease too
   * early
   */
  async findDead(
    { processes }: Pick<LeaseTable, 'processes'>,
    me: string,
    readAt: number,
  ): Promise<readonly ProcessRow[]> {
    const seen = new Map<string, Seen>();
    const dead: ProcessRow[] = [];
    for (const row of processes.values()) {
      if (row.id === me) continue;
      const before = this.#seen.get(row.id);
      const now = before?.rev === row.rev ? before : { rev: row.rev, since: readAt };
      seen.set(row.id, now);
      if (readAt - now.since >= this.#options.leaseMs || (await this.#isGone(row))) dead.push(row);
    }
    this.#seen = seen;
    return dead;
  }

  /** Returns true if the process certainly ended, because it ran on this host. */
  async #isGone({ holder, joinedAt }: ProcessRow): Promise<boolean> {
    const own = this.#options.holder;
    if (holder.host !== own.host) return false;
    if (holder.worker !== undefined && (await this.#options.hasEnded(holder.worker))) return true;
    // The same number is an earlier life of this process only if it joined before this one started; a row that joined
    // later is from another host of the same name.
    if (holder.pid === own.pid) return holder.startedAt !== own.startedAt && joinedAt < own.startedAt;
    return !this.#options.isAlive(holder.pid);
  }
}
