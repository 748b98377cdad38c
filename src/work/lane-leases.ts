/**
 * Leases of lanes, for processes that share a store. The table has two kinds of rows: each process has one, which it
 * rewrites at intervals (the renewal), and one row names the owner of each lane (the assignment).
 */
import type { Settings } from '../config/settings.ts';
import { always, byId } from '../model/filter.ts';
import type { Services } from '../store/capabilities.ts';
import {
  type Change,
  type Commit,
  keptRow,
  type MaybePromise,
  type NextRow,
  type Plan,
  type Row,
  type Store,
} from '../store/store.ts';
import { divide, type Lanes, laneCount, laneOf } from './lanes.ts';
import type { Timers } from './timers.ts';

/** Renewals within one lease, so that one or two may fail. */
const renewalsPerLease = 5;
/** Share of an attempt's time for what follows the response: reading its content and settling. */
const afterAnswerShare = 1 / 8;
/** Tries of a read and its unit, because other processes may change the table between them. */
const triesMax = 10;

/**
 * A process: `pid` and `startedAt` identify it on its host. `startedAt` is in milliseconds since the epoch. `worker` distinguishes the workers of a
 * process apart.
 */
type Holder = {
  readonly host: string;
  readonly pid: number;
  readonly startedAt: number;
  readonly worker?: string | undefined;
};

export type ThisProcess = {
  readonly holder: Holder;
  /** Returns true if the process with this number lives on this host. */
  readonly isAlive: (pid: number) => boolean;
  /** Returns true for a worker of this process that has ended. */
  readonly hasEnded: (worker: string) => MaybePromise<boolean>;
};

type LeaseServices = Pick<Services, 'clock' | 'observe'> & {
  readonly store: Pick<Store, 'shared' | 'plan' | 'commit' | 'onChange'>;
  readonly settings: Pick<Settings, 'webhookLeaseMs' | 'webhookTimeoutMs'>;
};

/**
 * A process sends for a lane while the assignment names it and its lease lasts: `ownMs` from the moment at which it
 * *began* its last successful renewal. `ownMs` is the lease without the time of one attempt, so an attempt that begins
 * within it ends within the lease.
 *
 * Only two units change the owner of a lane; each expects the assignment as it was read:
 * - A process gives lanes away or takes free ones. The unit also renews its own row, so it fails if that row is gone.
 *   Before a process gives a lane away it begins nothing more in it and waits for its attempts to end.
 * - A process that has seen the row of another one unchanged for a whole lease, from its read and on its own steady
 *   clock, removes that row. A lane whose owner has no row is free.
 *
 * Why two processes never send for one lane: the previous owner began its last renewal before its row was read, so its
 * `ownMs` and the time of an attempt have passed when a whole lease has passed since. If it still runs, its next
 * renewal expects a row that is gone, so it learns of the loss before it holds a lease again; it then joins as a new
 * process. A process that is suspended during an attempt for longer than that (SIGSTOP) may send what another one
 * sends; the revision of the delivery decides whose attempt counts.
 */
class Leases implements Omit<Lanes, 'need'> {
  readonly #services: LeaseServices;
  readonly #process: ThisProcess;
  readonly #timers: Timers;
  readonly #plan: Plan;
  readonly #ownMs: number;
  readonly #renewMs: number;
  readonly #watch: ProcessWatch;
  readonly #listeners = new Set<() => void>();
  readonly #underWay = new Int32Array(laneCount);
  /** This process's row as last written; undefined: it has none, or another process removed it. */
  #me: ProcessRow | undefined;
  #lives = 0;
  #mine: ReadonlySet<number> = new Set();
  #giving: ReadonlySet<number> = new Set();
  /** On the steady clock. */
  #leaseBegan = Number.NEGATIVE_INFINITY;
  #round: Promise<void> | undefined;
  #again = false;
  #closed = false;
  #failing = false;
  #cancel: (() => void) | undefined;
  #stopFollowing: (() => void) | undefined;

  constructor(services: LeaseServices, process: ThisProcess, timers: Timers) {
    const { webhookLeaseMs, webhookTimeoutMs } = services.settings;
    this.#services = services;
    this.#process = process;
    this.#timers = timers;
    this.#plan = services.store.plan({ table: lanesTable, filter: always, sort: byId, limit: rowsMax });
    this.#watch = new ProcessWatch(process, webhookLeaseMs);
    this.#ownMs = webhookLeaseMs - Math.ceil(webhookTimeoutMs * (1 + afterAnswerShare));
    if (this.#ownMs <= 0) {
      throw new RangeError(
        `a lease of ${webhookLeaseMs} ms is too short for attempts of up to ${webhookTimeoutMs} ms`,
      );
    }
    this.#renewMs = Math.floor(Math.min(webhookLeaseMs / renewalsPerLease, this.#ownMs / 2));
  }

  async open(): Promise<void> {
    this.#stopFollowing = this.#services.store.onChange(lanesTable, () => this.#look());
    await this.#look();
    this.#tick();
  }

  owns(endpointId: string): boolean {
    const lane = laneOf(endpointId);
    return this.#mine.has(lane) && !this.#giving.has(lane) && this.#isLeased();
  }

  hold(endpointId: string): void {
    const lane = laneOf(endpointId);
    this.#underWay[lane] = (this.#underWay[lane] ?? 0) + 1;
  }

  release(endpointId: string): void {
    const lane = laneOf(endpointId);
    const left = (this.#underWay[lane] ?? 0) - 1;
    this.#underWay[lane] = left;
    if (left === 0 && this.#giving.has(lane)) void this.#look();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#cancel?.();
    this.#stopFollowing?.();
    await this.#round;
    this.#leaseBegan = Number.NEGATIVE_INFINITY;
    try {
      for (let tries = 0; tries < triesMax && !(await this.#leave()); tries += 1);
    } catch (error) {
      this.#services.observe({ kind: 'sending-failed', what: 'giving lanes back', error });
    }
    this.#become(undefined, new Set());
  }

  #isLeased(): boolean {
    return this.#timers.monotonic() - this.#leaseBegan < this.#ownMs;
  }

  #tick(): void {
    this.#cancel = this.#timers.after(this.#renewMs, () => {
      void this.#look().then(() => {
        if (!this.#closed) this.#tick();
      });
    });
  }

  /**
   * Runs one round at a time; requests during a round cause one more step of it, unless it fails: a unit whose answer was lost has changed the
   * table. Never rejects.
   */
  #look(): Promise<void> {
    if (this.#round !== undefined) {
      this.#again = true;
      return this.#round;
    }
    this.#round = this.#rounds().finally(() => {
      this.#round = undefined;
    });
    return this.#round;
  }

  async #rounds(): Promise<void> {
    try {
      for (let tries = 0; tries < triesMax && !this.#closed; tries += 1) {
        this.#again = false;
        const settled = await this.#step();
        if (settled && !this.#again) break;
      }
      this.#failing = false;
    } catch (error) {
      if (!this.#failing) this.#services.observe({ kind: 'sending-failed', what: 'leasing lanes', error });
      this.#failing = true;
    }
  }

  /** Reads the table and commits at most one unit. @returns true if the table needs no further change */
  async #step(): Promise<boolean> {
    const { clock } = this.#services;
    const table = leaseTableOf(await this.#plan.rows({ from: 'start' }));
    const readAt = this.#timers.monotonic();
    const ownRow = this.#me === undefined ? undefined : table.processes.get(this.#me.id);
    if (ownRow === undefined) return await this.#join();
    // After a unit with an unknown outcome, the table has this process's row and lanes.
    this.#me = ownRow;
    const dead = await this.#watch.findDead(table, ownRow.id, readAt);
    const live = new Set(table.processes.keys());
    for (const { id } of dead) live.delete(id);
    const { lanes } = table;
    const division = divide({ lanes, me: ownRow.id, live, giving: this.#giving, isBusy: this.#isBusy });
    const begunGiving = [...division.giving].some((lane) => !this.#giving.has(lane));
    const kept = [...this.#giving].some(
      (lane) => !division.giving.has(lane) && division.lanes[lane] === ownRow.id,
    );
    const given = lanesOf(lanes, ownRow.id).difference(lanesOf(division.lanes, ownRow.id));
    // Until the unit is known to have failed, another process may have the lanes that it gives away.
    this.#giving = division.giving.union(given);
    const moved = division.lanes.some((owner, lane) => owner !== lanes[lane]);
    if (!moved && dead.length === 0 && !this.#isRenewalDue()) {
      this.#become(ownRow, lanesOf(lanes, ownRow.id), kept);
      return !begunGiving;
    }
    const changes: Change[] = [processChange(ownRow, clock()), ...dead.map(processEnd)];
    if (moved) changes.push(lanesChange(table, division.lanes, clock()));
    const began = this.#timers.monotonic();
    const commit = await this.#commit(changes);
    if (commit.outcome !== 'committed') return false;
    this.#renewed({ ...ownRow, rev: commit.rev }, lanesOf(division.lanes, ownRow.id), began, kept);
    // An idle lane that is being given away since now is given away in the next round.
    return !begunGiving;
  }

  async #commit(changes: readonly Change[]): Promise<Commit> {
    try {
      return await this.#services.store.commit({ changes, events: [] });
    } catch (error) {
      // The unit may have been committed and have given lanes away: begin nothing before a renewal based on a later
      // read.
      this.#leaseBegan = Number.NEGATIVE_INFINITY;
      throw error;
    }
  }

  readonly #isBusy = (lane: number): boolean => (this.#underWay[lane] ?? 0) > 0;

  #isRenewalDue(): boolean {
    // Half an interval early, so that a tick that comes slightly too soon does not wait for the next.
    return this.#timers.monotonic() - this.#leaseBegan >= this.#renewMs / 2;
  }

  async #join(): Promise<boolean> {
    const { clock, store } = this.#services;
    const { holder } = this.#process;
    this.#become(undefined, new Set());
    this.#lives += 1;
    const joinedAt = clock();
    const row = { id: processId(holder, this.#lives), rev: undefined, holder, joinedAt };
    // Set before the commit: a unit with an unknown outcome may have created the row.
    this.#me = { ...row, rev: 0 };
    const began = this.#timers.monotonic();
    const commit = await store.commit({ changes: [processChange(row, joinedAt)], events: [] });
    if (commit.outcome === 'committed') this.#renewed({ ...row, rev: commit.rev }, new Set(), began);
    return false;
  }

  /** Removes this process's row and lanes from the table. @returns true if done */
  async #leave(): Promise<boolean> {
    const table = leaseTableOf(await this.#plan.rows({ from: 'start' }));
    const ownRow = this.#me === undefined ? undefined : table.processes.get(this.#me.id);
    if (ownRow === undefined) return true;
    const lanes = table.lanes.map((owner) => (owner === ownRow.id ? null : owner));
    const changes = [processEnd(ownRow), lanesChange(table, lanes, this.#services.clock())];
    const commit = await this.#services.store.commit({ changes, events: [] });
    return commit.outcome === 'committed';
  }

  #renewed(me: ProcessRow, mine: ReadonlySet<number>, began: number, kept = false): void {
    const lapsed = kept || !this.#isLeased();
    this.#leaseBegan = began;
    this.#become(me, mine, lapsed && mine.size > 0);
  }

  /** @param lapsed the process kept some lanes, but could begin nothing in them for a while */
  #become(me: ProcessRow | undefined, mine: ReadonlySet<number>, lapsed = false): void {
    const before = this.#mine;
    this.#me = me;
    this.#mine = mine;
    const same = before.size === mine.size && [...mine].every((lane) => before.has(lane));
    if (same && !lapsed) return;
    if (!same) this.#services.observe({ kind: 'lanes-held', lanes: mine.size, of: laneCount });
    for (const listener of this.#listeners) listener();
  }
}

function lanesOf(lanes: LeaseTable['lanes'], me: string): Set<number> {
  return new Set(lanes.flatMap((owner, lane) => (owner === me ? [lane] : [])));
}

/** The endpoints, which need lanes as soon as there is one. */
type Endpoints = { all(): Iterable<unknown>; onChange(listener: () => void): () => void };

/**
 * Creates the lanes of this process. It leases nothing until an endpoint or other work needs lanes, so a program that
 * sends nothing writes nothing here.
 *
 * @returns after the first round of leasing, if lanes are needed; while the store is away, leasing continues
 * @throws RangeError if the lease is no longer than an attempt
 */
export async function createLanes(
  services: LeaseServices,
  process: ThisProcess,
  directory: Endpoints,
  timers: Timers,
): Promise<Lanes> {
  if (!services.store.shared) return everyLane;
  const leases = new Leases(services, process, timers);
  let opening: Promise<void> | undefined;
  const need = (): void => {
    opening ??= leases.open();
  };
  const openWhenNeeded = (): void => {
    if (hasAny(directory.all())) need();
  };
  const stopFollowing = directory.onChange(openWhenNeeded);
  openWhenNeeded();
  await opening;
  return {
    owns: (queue) => leases.owns(queue),
    need,
    hold: (queue) => leases.hold(queue),
    release: (queue) => leases.release(queue),
    onChange: (listener) => leases.onChange(listener),
    async close() {
      stopFollowing();
      if (opening === undefined) return;
      await opening;
      await leases.close();
    },
  };
}

function hasAny(all: Iterable<unknown>): boolean {
  for (const _each of all) return true;
  return false;
}

/** All lanes, for the only process of a store. */
const everyLane: Lanes = {
  owns: () => true,
  need: () => undefined,
  hold: () => undefined,
  release: () => undefined,
  onChange: () => () => undefined,
  close: async () => undefined,
};

/** The table of leases, used if several processes share the store. */
export const lanesTable = 'webhook_lanes';

/** Far more than there are lanes. */
const rowsMax = 1024;
const assignmentId = 'assignment';
const processPrefix = 'process/';

type ProcessRow = {
  readonly id: string;
  readonly rev: number;
  readonly holder: Holder;
  /** When it joined, on its own clock. */
  readonly joinedAt: number;
};

type LeaseTable = {
  readonly processes: ReadonlyMap<string, ProcessRow>;
  /** For each lane the id of its process's row; null: free. */
  readonly lanes: readonly (string | null)[];
  /** Undefined: the row does not exist yet. */
  readonly lanesRev: number | undefined;
};

/** Returns a new id for each life, because a process may join again after others removed its row. */
function processId({ host, pid, startedAt, worker }: Holder, life: number): string {
  const process = `${processPrefix}${host}:${pid}:${startedAt}`;
  return worker === undefined ? `${process}:${life}` : `${process}:${worker}:${life}`;
}

function leaseTableOf(rows: readonly Row[]): LeaseTable {
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
function processChange(
  { id, rev, holder, joinedAt }: Omit<ProcessRow, 'rev'> & { readonly rev: number | undefined },
  at: number,
): Change {
  return changeTo(id, rev, keptRow(JSON.stringify({ holder, joinedAt }), null, joinedAt, at));
}

function processEnd({ id, rev }: Pick<ProcessRow, 'id' | 'rev'>): Change {
  return changeTo(id, rev, null);
}

function lanesChange(
  { lanesRev }: Pick<LeaseTable, 'lanesRev'>,
  lanes: LeaseTable['lanes'],
  at: number,
): Change {
  return changeTo(assignmentId, lanesRev, keptRow(JSON.stringify({ lanes }), null, at, at));
}

function changeTo(id: string, rev: number | undefined, next: NextRow | null): Change {
  return { table: lanesTable, id, expect: rev === undefined ? { absent: true } : { rev }, next };
}

type Seen = { readonly rev: number; readonly since: number };

/** Finds dead processes: those that were silent for a whole lease, and those of this host that are not alive. */
class ProcessWatch {
  readonly #process: ThisProcess;
  readonly #leaseMs: number;
  /** Rows of other processes, with the time since which each is unchanged. */
  #seen = new Map<string, Seen>();

  constructor(process: ThisProcess, leaseMs: number) {
    this.#process = process;
    this.#leaseMs = leaseMs;
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
      if (readAt - now.since >= this.#leaseMs || (await this.#isGone(row))) dead.push(row);
    }
    this.#seen = seen;
    return dead;
  }

  /** Returns true if the process certainly ended, because it ran on this host. */
  async #isGone({ holder, joinedAt }: ProcessRow): Promise<boolean> {
    const own = this.#process.holder;
    if (holder.host !== own.host) return false;
    if (holder.worker !== undefined && (await this.#process.hasEnded(holder.worker))) return true;
    // The same number is an earlier life of this process only if it joined before this one started; a row that joined
    // later is from another host of the same name.
    if (holder.pid === own.pid) return holder.startedAt !== own.startedAt && joinedAt < own.startedAt;
    return !this.#process.isAlive(holder.pid);
  }
}
