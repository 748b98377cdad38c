/**
 * Counts the starts of due work that may end the process (model/starts-max.ts). A unit before every attempt would cost as much as the one that
 * settles it, so only work is counted that a process may have begun that died: what is as old as that. The death itself is its first start.
 *
 *   (no row)   a process died; the work is begun for the second time, and counted before that
 *   counted    a process died again: it is begun when no other work is that was counted before, so that at last the one that ends it is alone
 *   used up    the process died at each of its starts: it is not begun
 *
 * The row goes with the end of the attempt, whatever that is. Each process that does such work has a row as well, by
 * which others learn that it died.
 */
import { idField } from '../model/field.ts';
import { startsMax } from '../model/starts-max.ts';
import type { Services } from '../store/capabilities.ts';
import { keptRow, type Row } from '../store/store.ts';
import type { Lanes } from './lanes.ts';

export const startsTable = 'work_starts';

type Work = { readonly table: string; readonly id: string /** ISO 8601. */; readonly updatedAt: string };

export type Begun = {
  /** True: the work is given up. */
  readonly isUsedUp: boolean;
  /** The attempt has ended, or the program stops in order. Never rejects. */
  end(): Promise<void>;
};

export type Starts = {
  /** Counts the start if a process that died may have begun the work. @throws StoreUnavailable */
  begin(work: Work): Promise<Begun>;
  /** Does the work between its begin and its end. @param make true: the work is given up */
  run<T>(work: Work, make: (isUsedUp: boolean) => Promise<T>): Promise<T>;
  /** After the last attempt. */
  close(): Promise<void>;
};

type StartServices = Pick<Services, 'store' | 'clock' | 'observe'>;

const fresh: Begun = { isUsedUp: false, end: async () => undefined };

/** Processes of one store whose rows are read. */
const processesMax = 1024;
/** Separates the rows of processes from those of work. */
const processPrefix = 'process ';
const behindProcesses = 'process!';

/** @param onLanes calls back when this process may have got the work of another one */
export async function createStarts(services: StartServices, onLanes: Lanes['onChange']): Promise<Starts> {
  const counted = new CountedStarts(services);
  await counted.look();
  const stop = onLanes(() => void counted.look());
  return {
    begin: (work) => counted.begin(work),
    async run(work, make) {
      const begun = await counted.begin(work);
      try {
        return await make(begun.isUsedUp);
      } finally {
        await begun.end();
      }
    },
    async close() {
      stop();
      await counted.leave();
    },
  };
}

class CountedStarts {
  readonly #services: StartServices;
  /** Milliseconds since the epoch: a process that died may have begun what was not changed since. */
  #suspectBefore = 0;
  #looking: Promise<void> = Promise.resolve();
  #own: Row | undefined;
  #joining: Promise<unknown> | undefined;
  /** Ends with the last of those that were counted before. */
  #alone: Promise<void> = Promise.resolve();

  constructor(services: StartServices) {
    this.#services = services;
  }

  /** Never rejects. */
  look(): Promise<void> {
    const { observe } = this.#services;
    this.#looking = this.#looking
      .then(() => this.#findDead())
      .catch((error) => observe({ kind: 'store-failed', what: 'looking for processes that died', error }));
    return this.#looking;
  }

  async #findDead(): Promise<void> {
    const { store, clock } = this.#services;
    const own = processPrefix + store.processId;
    const plan = store.plan({
      ...{ table: startsTable, filter: { op: 'gte', field: idField, value: processPrefix } },
      ...{ sort: [{ field: idField, direction: 'asc' }], limit: processesMax },
    });
    const rows = await plan.rows({ from: 'start' });
    for (const row of rows.filter(({ id }) => id !== own && id < behindProcesses)) {
      const isDead = !store.shared || (await store.hasEnded(row.id.slice(processPrefix.length)));
      if (!isDead) continue;
      this.#suspectBefore = clock();
      await this.#remove(row);
    }
  }

  /** A process that does no such work leaves no row. */
  #join(): Promise<unknown> {
    this.#joining ??= this.#write(processPrefix + this.#services.store.processId, undefined, 0).then(
      (row) => {
        this.#own = row;
      },
      (error) => {
        this.#joining = undefined;
        throw error;
      },
    );
    return this.#joining;
  }

  async begin({ table, id, updatedAt }: Work): Promise<Begun> {
    await this.#looking;
    if (this.#own === undefined) await this.#join();
    if (Date.parse(updatedAt) >= this.#suspectBefore) return fresh;
    const key = `work ${table} ${id}`;
    const before = await this.#services.store.read(startsTable, key);
    if (before === undefined) return this.#count(key, before, 1);
    const { starts } = JSON.parse(before.doc) as { starts: number };
    if (starts >= startsMax) return { isUsedUp: true, end: () => this.#remove(before) };
    const earlier = this.#alone;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#alone = earlier.then(() => promise);
    await earlier;
    try {
      const begun = await this.#count(key, before, starts);
      return { ...begun, end: () => begun.end().finally(resolve) };
    } catch (error) {
      resolve();
      throw error;
    }
  }

  async #count(key: string, before: Row | undefined, starts: number): Promise<Begun> {
    const row = await this.#write(key, before, starts + 1);
    return row === undefined ? fresh : { isUsedUp: false, end: () => this.#remove(row) };
  }

  /** @returns undefined if another process was faster */
  async #write(id: string, before: Row | undefined, starts: number): Promise<Row | undefined> {
    const { store, clock } = this.#services;
    const at = clock();
    const next = keptRow(JSON.stringify({ id, starts }), null, at, at);
    const expect = before === undefined ? ({ absent: true } as const) : { rev: before.rev };
    const commit = await store.commit({ changes: [{ table: startsTable, id, expect, next }], events: [] });
    return commit.outcome === 'committed' ? { id, rev: commit.rev, ...next } : undefined;
  }

  async #remove({ id, rev }: Row): Promise<void> {
    const change = { table: startsTable, id, expect: { rev }, next: null };
    // A row that stays counts one start too many, of work that is as old.
    await this.#services.store.commit({ changes: [change], events: [] }).catch(() => undefined);
  }

  async leave(): Promise<void> {
    await this.#looking;
    if (this.#own !== undefined) await this.#remove(this.#own);
  }
}
