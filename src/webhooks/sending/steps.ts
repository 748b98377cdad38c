/**
 * Deliveries that are made in steps: those that a large write owes (fan-out/owed-deliveries.ts), and recoveries. A row
 * says how far the work is. A step is one unit of the row and some deliveries, and expects the row as it was read: each
 * step is made once, by any process, whenever processes are killed, and other writes are committed in between.
 *
 * Each process looks for rows at its start, after signals, and after a failure, and works on those that are its own.
 */
import type { Services } from '../../store/capabilities.ts';
import { createFollower, type Follower, type Signal } from '../../store/follower.ts';
import { rowBatches } from '../../store/in-batches.ts';
import type { Change, ListQuery, MaybePromise, NextRow, Row } from '../../store/store.ts';
import type { Wakes } from './wakes.ts';

export type Step = {
  /** The row after the step; null: nothing is left to do. */
  readonly next: NextRow | null;
  /** New deliveries, and others that are due again. */
  readonly deliveries: readonly Change[];
  readonly endpointIds: ReadonlySet<string>;
};

/** A kind of work. */
type Stepping = {
  /** Its name, for the log. */
  readonly what: string;
  /** Its rows, or those with work left, by id. */
  readonly query: ListQuery;
  /** Works on one row after the other, the oldest first; otherwise on all at once. */
  readonly isInOrder: boolean;
  /** Interval of looks for rows that became its own without a signal. */
  readonly everyMs?: number;
  /** Returns true if this process makes the next step. */
  isOurs(row: Row): MaybePromise<boolean>;
  /** Returns the next step; undefined: it cannot be made yet. @throws StoreUnavailable */
  step(row: Row): Promise<Step | undefined>;
};

/** Steps in a row that were superseded or could not be made, after which there is a pause. */
const lostStepsMax = 16;
const againMs = 1000;

export class Steps {
  readonly #services: Services;
  readonly #wakes: Pick<Wakes, 'changesForAll' | 'announce'>;
  readonly #stepping: Stepping;
  readonly #follower: Follower;
  /** By row. */
  readonly #runs = new Map<string, Promise<void>>();
  #isClosed = false;

  constructor(services: Services, wakes: Pick<Wakes, 'changesForAll' | 'announce'>, stepping: Stepping) {
    this.#services = services;
    this.#wakes = wakes;
    this.#stepping = stepping;
    this.#follower = createFollower(
      () => this.#look(),
      (error) => this.#failed(error),
      stepping.everyMs,
    );
  }

  /** Continues what others or an earlier process left, and follows signals of new rows. */
  start(...signals: readonly Signal[]): void {
    this.#follower.follow(...signals);
    this.look();
  }

  look(): void {
    this.#follower.soon();
  }

  /** Waits for the units under way. Another process, or the next start, makes the rest. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#follower.close();
    await Promise.allSettled(this.#runs.values());
  }

  async #look(): Promise<void> {
    const { query, isInOrder } = this.#stepping;
    for await (const rows of rowBatches(this.#services.store.plan(query), query.limit)) {
      for (const row of rows) {
        if (this.#isClosed) return;
        if (this.#runs.has(row.id)) continue;
        const run = this.#work(row).finally(() => this.#runs.delete(row.id));
        this.#runs.set(row.id, run);
        if (isInOrder) await run;
        else run.catch((error: unknown) => this.#failed(error));
      }
    }
  }

  async #work(row: Row): Promise<void> {
    let lost = 0;
    let current: Row | undefined = row;
    while (current !== undefined && !this.#isClosed && (await this.#stepping.isOurs(current))) {
      const after: Row | undefined | 'lost' = await this.#makeStep(current);
      lost = after === 'lost' ? lost + 1 : 0;
      if (lost === lostStepsMax) return this.#follower.later(againMs);
      current =
        after === 'lost' ? await this.#services.store.read(this.#stepping.query.table, row.id) : after;
    }
  }

  /** @returns the row after the step; undefined: nothing is left to do; `lost`: nothing was done */
  async #makeStep(row: Row): Promise<Row | undefined | 'lost'> {
    const step = await this.#stepping.step(row);
    if (step === undefined) return 'lost';
    const { next, deliveries, endpointIds } = step;
    const { id, rev } = row;
    const own = { table: this.#stepping.query.table, id, expect: { rev }, next };
    const changes = [own, ...deliveries, ...this.#wakes.changesForAll(endpointIds)];
    const commit = await this.#services.store.commit({ changes, events: [] });
    if (commit.outcome !== 'committed') return 'lost';
    this.#wakes.announce(endpointIds);
    return next === null ? undefined : { id, rev: commit.rev, ...next };
  }

  #failed(error: unknown): void {
    this.#services.observe({ kind: 'sending-failed', what: this.#stepping.what, error });
    this.#follower.later(againMs);
  }
}
