/** The rows of leases, as values and back: one for each process, and one that says whose each lane is. */
import { always, byId } from '../../model/filter.ts';
import type { Change, NextRow, Plan, Row, Store } from '../../store/store.ts';
import { laneCount } from './lanes.ts';

/** Who works in which lane, where several processes share the store. */
export const lanesTable = 'webhook_lanes';

/** Far more processes than there are lanes. */
const rowsMax = 1024;
const assignmentId = 'assignment';
const processPrefix = 'process/';

/** Which process: `pid` and `startedAt` tell lives of one host apart. `startedAt` is in milliseconds since the epoch. */
export type Holder = { readonly host: string; readonly pid: number; readonly startedAt: number };

export type ProcessRow = {
  readonly id: string;
  readonly rev: number;
  readonly holder: Holder;
  /** When it took up work, on its clock. */
  readonly joinedAt: number;
};

export type LeaseTable = {
  readonly processes: ReadonlyMap<string, ProcessRow>;
  /** For each lane the id of the row of its process; null: free. */
  readonly lanes: readonly (string | null)[];
  /** Undefined: not written yet. */
  readonly lanesRev: number | undefined;
};

/** Each is a process of its own, also where one process takes up work again after it was given up. */
export function processId({ host, pid, startedAt }: Holder, life: number): string {
  return `${processPrefix}${host}:${pid}:${startedAt}:${life}`;
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

/** @param rev undefined for a row that is made */
export function processChange(
  { id, rev, holder, joinedAt }: Omit<ProcessRow, 'rev'> & { readonly rev: number | undefined },
  at: number,
): Change {
  return changeTo(id, rev, nextRow(JSON.stringify({ holder, joinedAt }), joinedAt, at));
}

export function processEnd({ id, rev }: Pick<ProcessRow, 'id' | 'rev'>): Change {
  return changeTo(id, rev, null);
}

export function lanesChange(
  { lanesRev }: Pick<LeaseTable, 'lanesRev'>,
  lanes: LeaseTable['lanes'],
  at: number,
): Change {
  return changeTo(assignmentId, lanesRev, nextRow(JSON.stringify({ lanes }), at, at));
}

function changeTo(id: string, rev: number | undefined, next: NextRow | null): Change {
  return { table: lanesTable, id, expect: rev === undefined ? { absent: true } : { rev }, next };
}

function nextRow(doc: string, createdAt: number, updatedAt: number): NextRow {
  return { doc, owner: null, createdAt, updatedAt, deletedAt: null, search: null, references: [] };
}

export type ProcessWatchOptions = {
  readonly leaseMs: number;
  /** Ourselves. */
  readonly holder: Holder;
  /** Whether a process of this host lives. */
  readonly isAlive: (pid: number) => boolean;
};

type Seen = { readonly rev: number; readonly since: number };

/** Which of the other processes are gone: those that were silent for a whole lease, and those of this host that are not alive. */
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
    // What took up work after we were started is no former life of ours, whatever its number is: a host that is two.
    if (holder.pid === own.pid) return holder.startedAt !== own.startedAt && joinedAt < own.startedAt;
    return !this.#options.isAlive(holder.pid);
  }
}
