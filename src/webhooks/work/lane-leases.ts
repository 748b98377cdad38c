/**
 * Leases of lanes, where several processes share a store. Two kinds of rows: each process has one, which it writes anew every so often
 * (the renewal), and one row says whose each lane is (the assignment).
 */
import type { Services } from '../../store/capabilities.ts';
import type { Change, Commit, Store } from '../../store/store.ts';
import { divide, type Lanes, laneCount, laneOf } from './lanes.ts';
import {
  type Holder,
  type LeaseTable,
  lanesChange,
  lanesTable,
  leasePlan,
  leaseTableOf,
  type ProcessRow,
  ProcessWatch,
  processChange,
  processEnd,
  processId,
} from './lease-rows.ts';
import { runtimeTimers, type Timers } from './timers.ts';

/** Renewals within one lease, so that one or two may fail. */
const renewalsPerLease = 5;
/** Of the time of an attempt, for what comes after the answer: reading its content, and writing it down. */
const afterAnswerShare = 1 / 8;
/** Other processes may change the table between a read and a unit; then both are made again, so often. */
const triesMax = 10;

type LeasesOptions = Pick<Services, 'clock' | 'observe'> & {
  readonly store: Pick<Store, 'shared' | 'plan' | 'commit' | 'onChange'>;
  /** Milliseconds that no setting of the clock changes. */
  readonly monotonic: () => number;
  readonly settings: { readonly webhookLeaseMs: number; readonly webhookTimeoutMs: number };
  readonly holder: Holder;
  /** Whether a process of this host lives. */
  readonly isAlive: (pid: number) => boolean;
  readonly timers?: Timers;
};

/**
 * A process sends for a lane while the assignment names it and its lease lasts: `ownMs` from the moment at which it *began* its last
 * renewal that was made. That is the lease without the time that one attempt may take, so that what begins within it ends within the lease.
 *
 * Only two things change the owner of a lane, and each is one unit that expects the assignment as it was read:
 * - A process gives lanes away or takes free ones, for itself. The unit renews its own row, so it fails when that is gone.
 *   Before it gives one away it begins nothing more in it and waits for what is under way.
 * - A process has seen the row of another unchanged for a whole lease, from the moment at which it had read it, on its own steady
 *   clock: it removes that row. A lane whose owner has no row is free.
 *
 * Why no two send for one lane: the other began its last renewal before the row was read, so its `ownMs` and the time of an attempt are
 * over when a whole lease has passed since. If it still runs, its next renewal expects a row that is gone, so it finds out before it
 * believes in a lease again; then it takes up work as a new process. A process that stands still in the middle of an attempt for
 * longer than that (SIGSTOP) may send what another sends; the revision of the delivery decides whose attempt counts.
 */
class Leases implements Omit<Lanes, 'need'> {
  readonly #options: LeasesOptions;
  readonly #timers: Timers;
  readonly #plan: ReturnType<typeof leasePlan>;
  readonly #ownMs: number;
  readonly #renewMs: number;
  readonly #watch: ProcessWatch;
  readonly #listeners = new Set<() => void>();
  readonly #underWay = new Int32Array(laneCount);
  /** Our row as we wrote it last; undefined: we have none, or it was taken from us. */
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

  constructor(options: LeasesOptions) {
    const { webhookLeaseMs, webhookTimeoutMs } = options.settings;
    this.#options = options;
    this.#timers = options.timers ?? runtimeTimers;
    this.#plan = leasePlan(options.store);
    this.#watch = new ProcessWatch({ ...options, leaseMs: webhookLeaseMs });
    this.#ownMs = webhookLeaseMs - Math.ceil(webhookTimeoutMs * (1 + afterAnswerShare));
    if (this.#ownMs <= 0) {
      throw new RangeError(
        `a lease of ${webhookLeaseMs} ms leaves no time to begin attempts of ${webhookTimeoutMs} ms in`,
      );
    }
    this.#renewMs = Math.floor(Math.min(webhookLeaseMs / renewalsPerLease, this.#ownMs / 2));
  }

  async open(): Promise<void> {
    this.#stopFollowing = this.#options.store.onChange(lanesTable, () => this.#look());
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
    try {
      for (let tries = 0; tries < triesMax && !(await this.#leave()); tries += 1);
    } catch (error) {
      this.#options.observe({ kind: 'sending-failed', what: 'giving lanes back', error });
    }
    this.#become(undefined, new Set());
  }

  #isLeased(): boolean {
    return this.#options.monotonic() - this.#leaseBegan < this.#ownMs;
  }

  #tick(): void {
    this.#cancel = this.#timers.after(this.#renewMs, () => {
      void this.#look().then(() => {
        if (!this.#closed) this.#tick();
      });
    });
  }

  /** One round at a time; what is asked for meanwhile is one more after it. Never rejects. */
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
      if (!this.#failing) this.#options.observe({ kind: 'sending-failed', what: 'leasing lanes', error });
      this.#failing = true;
    }
  }

  /** Reads the table and makes one unit, or none where nothing is to be done. @returns whether the table is as we want it */
  async #step(): Promise<boolean> {
    const { clock, monotonic } = this.#options;
    const table = leaseTableOf(await this.#plan.rows({ from: 'start' }));
    const readAt = monotonic();
    const standing = this.#me === undefined ? undefined : table.processes.get(this.#me.id);
    if (standing === undefined) return await this.#join();
    // After a unit whose outcome was lost, our row and lanes are those in the table.
    this.#me = standing;
    const dead = this.#watch.findDead(table, standing.id, readAt);
    const live = new Set(table.processes.keys());
    for (const { id } of dead) live.delete(id);
    const { lanes } = table;
    const division = divide({ lanes, me: standing.id, live, giving: this.#giving, isBusy: this.#isBusy });
    const begunGiving = [...division.giving].some((lane) => !this.#giving.has(lane));
    const kept = [...this.#giving].some(
      (lane) => !division.giving.has(lane) && division.lanes[lane] === standing.id,
    );
    this.#giving = division.giving;
    const moved = division.lanes.some((owner, lane) => owner !== lanes[lane]);
    if (!moved && dead.length === 0 && !this.#isRenewalDue()) {
      this.#become(standing, lanesOf(lanes, standing.id), kept);
      return !begunGiving;
    }
    const changes: Change[] = [processChange(standing, clock()), ...dead.map(processEnd)];
    if (moved) changes.push(lanesChange(table, division.lanes, clock()));
    const began = monotonic();
    const commit = await this.#commit(changes);
    if (commit.outcome !== 'committed') return false;
    this.#renewed({ ...standing, rev: commit.rev }, lanesOf(division.lanes, standing.id), began, kept);
    // What is given away from now on is so at once where nothing is under way in it.
    return !begunGiving;
  }

  async #commit(changes: readonly Change[]): Promise<Commit> {
    try {
      return await this.#options.store.commit({ changes, events: [] });
    } catch (error) {
      // It may have been made, and given lanes away: nothing begins before a renewal that expects what was read after it.
      this.#leaseBegan = Number.NEGATIVE_INFINITY;
      throw error;
    }
  }

  readonly #isBusy = (lane: number): boolean => (this.#underWay[lane] ?? 0) > 0;

  #isRenewalDue(): boolean {
    // Half a tick early: a tick that comes a moment too soon must not wait for the next.
    return this.#options.monotonic() - this.#leaseBegan >= this.#renewMs / 2;
  }

  async #join(): Promise<boolean> {
    const { clock, monotonic, holder, store } = this.#options;
    this.#become(undefined, new Set());
    this.#lives += 1;
    const joinedAt = clock();
    const row = { id: processId(holder, this.#lives), rev: undefined, holder, joinedAt };
    // Known before it is made: a unit whose outcome is lost may have made it.
    this.#me = { ...row, rev: 0 };
    const began = monotonic();
    const commit = await store.commit({ changes: [processChange(row, joinedAt)], events: [] });
    if (commit.outcome === 'committed') this.#renewed({ ...row, rev: commit.rev }, new Set(), began);
    return false;
  }

  /** Takes our row and our lanes out of the table. @returns whether that is done */
  async #leave(): Promise<boolean> {
    const table = leaseTableOf(await this.#plan.rows({ from: 'start' }));
    const standing = this.#me === undefined ? undefined : table.processes.get(this.#me.id);
    if (standing === undefined) return true;
    const lanes = table.lanes.map((owner) => (owner === standing.id ? null : owner));
    const changes = [processEnd(standing), lanesChange(table, lanes, this.#options.clock())];
    const commit = await this.#options.store.commit({ changes, events: [] });
    return commit.outcome === 'committed';
  }

  #renewed(me: ProcessRow, mine: ReadonlySet<number>, began: number, kept = false): void {
    const lapsed = kept || !this.#isLeased();
    this.#leaseBegan = began;
    this.#become(me, mine, lapsed && mine.size > 0);
  }

  /** @param lapsed some are the same as before, but nothing could begin in them for a while */
  #become(me: ProcessRow | undefined, mine: ReadonlySet<number>, lapsed = false): void {
    const before = this.#mine;
    this.#me = me;
    this.#mine = mine;
    const same = before.size === mine.size && [...mine].every((lane) => before.has(lane));
    if (same && !lapsed) return;
    if (!same) this.#options.observe({ kind: 'lanes-held', lanes: mine.size, of: laneCount });
    for (const listener of this.#listeners) listener();
  }
}

function lanesOf(lanes: LeaseTable['lanes'], me: string): ReadonlySet<number> {
  return new Set(lanes.flatMap((owner, lane) => (owner === me ? [lane] : [])));
}

export type LanesOptions = LeasesOptions & {
  /** What needs lanes from the moment at which there is any: the endpoints. */
  readonly directory: { all(): Iterable<unknown>; onChange(listener: () => void): () => void };
};

/**
 * The lanes of this process. Nothing is leased before there is an endpoint or something else that needs lanes, so a program that sends nothing
 * writes nothing for it.
 *
 * @returns when it has asked for its lanes once, where it needs any; with a store that is away it goes on asking
 * @throws RangeError when the lease is no longer than an attempt
 */
export async function createLanes(options: LanesOptions): Promise<Lanes> {
  if (!options.store.shared) return everyLane;
  const { directory } = options;
  const leases = new Leases(options);
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

/** Those of a process that has the store for itself. */
const everyLane: Lanes = {
  owns: () => true,
  need: () => undefined,
  hold: () => undefined,
  release: () => undefined,
  onChange: () => () => undefined,
  close: async () => undefined,
};
