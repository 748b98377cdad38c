/**
 * Who carries out an accepted request. The row of the request names its holder and when the lease was last renewed;
 * every change of that row gives it a new revision, and whoever ends the operation names the revision that it knows. So of
 * several processes that believe they hold it, one ends it.
 *
 *   held        renewed from time to time; ended by its holder, together with the change
 *   given back  by a holder that stops or failed: anyone may take it at once
 *   run out     `leaseMs` after the last renewal, for instance because the holder died: anyone may take it
 *
 * Times are those of each machine's own clock. Where clocks differ by more than the lease, a lease may be taken from a holder that is
 * alive: its work was for nothing, the operation still ends once.
 */
import { keptRow } from '../../store/kept-row.ts';
import type { Change, NextRow, Row, Store } from '../../store/store.ts';
import { operationRequestsTable, type StoredRequest } from './stored-request.ts';

/**
 * Three renewals fit into a lease, so one may fail, and each may wait as long as the store lets it. An operation of a
 * process that died stands still this long.
 */
export const leaseMs = 30_000;

/** Time after which a lease is renewed. */
const renewalMs = leaseMs / 3;

/** What the row holds besides the request. `updatedAt` stands in it as in every row that is listed by it. */
type Held = { readonly holder: string | null; readonly updatedAt: string };

/** The row of a request that `holder` carries out from now on. @param at milliseconds since the epoch */
export function heldRow(
  stored: StoredRequest,
  holder: string | null,
  asker: string | null,
  createdAt: number,
  at: number,
): NextRow {
  const held: StoredRequest & Held = { ...stored, holder, updatedAt: new Date(at).toISOString() };
  return keptRow(JSON.stringify(held), asker, createdAt, at);
}

export class Lease {
  readonly #store: Store;
  readonly #stored: StoredRequest;
  readonly #holder: string;
  readonly #row: Pick<Row, 'owner' | 'createdAt'>;
  #rev: number;
  #renewedAt: number;
  #lost = false;
  #writing: Promise<void> = Promise.resolve();

  constructor(
    store: Store,
    stored: StoredRequest,
    holder: string,
    row: Pick<Row, 'owner' | 'createdAt' | 'updatedAt' | 'rev'>,
  ) {
    this.#store = store;
    this.#stored = stored;
    this.#holder = holder;
    this.#row = row;
    this.#rev = row.rev;
    this.#renewedAt = row.updatedAt;
  }

  /** Takes what was given back or has run out. Undefined where somebody else was faster. */
  static async take(
    store: Store,
    stored: StoredRequest,
    holder: string,
    row: Row,
    now: number,
  ): Promise<Lease | undefined> {
    const next = heldRow(stored, holder, row.owner, row.createdAt, now);
    const change: Change = { table: operationRequestsTable, id: row.id, expect: { rev: row.rev }, next };
    const commit = await store.commit({ changes: [change], events: [] });
    if (commit.outcome !== 'committed') return undefined;
    return new Lease(store, stored, holder, { ...row, updatedAt: now, rev: commit.rev });
  }

  /** Of the row, as this process knows it. */
  get rev(): number {
    return this.#rev;
  }

  /** True once it was given back, or somebody else has taken it. */
  get lost(): boolean {
    return this.#lost;
  }

  /** Waits for a renewal under way, which gives the row another revision. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  /** Part of the unit that ends the operation. */
  end(): Change {
    return { table: operationRequestsTable, id: this.#stored.id, expect: { rev: this.#rev }, next: null };
  }

  /** Renews where it is time to. A failure is none yet: the next renewal, or whoever takes the lease over, makes up for it. */
  renew(now: number): Promise<void> {
    if (!this.#lost && now - this.#renewedAt >= renewalMs) this.#write(this.#holder, now);
    return this.#writing;
  }

  /** Lets anyone take it at once. */
  giveBack(): Promise<void> {
    // A lease that was last renewed at the epoch has run out on every clock, and stands first in the list.
    if (!this.#lost) this.#write(null, 0);
    return this.#writing;
  }

  #write(holder: string | null, at: number): void {
    this.#writing = this.#writing.then(async () => {
      if (this.#lost) return;
      const next = heldRow(this.#stored, holder, this.#row.owner, this.#row.createdAt, at);
      const { id } = this.#stored;
      const change: Change = { table: operationRequestsTable, id, expect: { rev: this.#rev }, next };
      const commit = await this.#store.commit({ changes: [change], events: [] }).catch(() => undefined);
      if (commit?.outcome === 'committed') {
        this.#rev = commit.rev;
        this.#renewedAt = at;
      } else if (commit?.outcome === 'superseded') this.#recognise(commit.current);
      if (holder === null) this.#lost = true;
    });
  }

  /** An earlier renewal whose answer never came may have been made all the same. */
  #recognise(current: Row | undefined): void {
    if (current !== undefined && (JSON.parse(current.doc) as Held).holder === this.#holder) {
      this.#rev = current.rev;
      this.#renewedAt = current.updatedAt;
    } else this.#lost = true;
  }
}
