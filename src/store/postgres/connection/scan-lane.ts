/**
 * Reads whose cost grows with the table, on connections of their own, one at a time on each, so that no read by id waits behind
 * one. The server ends a statement whose time is over (`SET LOCAL`, which lasts as long as the transaction and so
 * holds behind a pooler); begin, bound, statement and end leave in one write.
 */
import { FairQueue } from '../../../model/fair-queue.ts';
import { placesOf } from '../../filter-shape.ts';
import type { Call, Connection, ConnectionOptions, Reply, Rows } from './connection.ts';
import { ConnectionLost, createConnection } from './connection.ts';
import { asStoreError, isForeignStatement, isStaleStatement, sqlState, unavailable } from './failure.ts';

export type ScanLaneOptions = Omit<ConnectionOptions, 'name' | 'onNotification' | 'timeoutMs'> & {
  /** Made when first needed, at most so many. */
  readonly connections: number;
  /** Reads that may wait for a connection. */
  readonly queueMax: number;
  /** Time for a statement, and as much again for its wait in front of it. */
  readonly timeoutMs: number;
};

export type ScanLane = {
  /**
   * @param party whom the read is for: parties take turns, and none holds all connections where there are several
   * @throws StoreUnavailable when too many reads wait, the time is over or storage fails; the DatabaseError of a faulty call
   */
  read(call: Call, party?: string): Promise<Rows>;
  /** Ends the reads under way; those that wait are refused. */
  close(): Promise<void>;
};

/** What the server may take to end a statement after its time before the connection is cut. */
const endingMs = 1_000;

type Waiting = {
  readonly call: Call;
  readonly party: string;
  /** In the queue. */
  readonly places: number;
  readonly endsAt: number;
  readonly resolve: (rows: Rows) => void;
  readonly reject: (error: unknown) => void;
};

/** `party` of the read under way; undefined while it is free. */
type Slot = { readonly connection: Connection; party: string | undefined };

export function createScanLane(options: ScanLaneOptions): ScanLane {
  return new BoundedScanLane(options);
}

class BoundedScanLane implements ScanLane {
  readonly #options: ScanLaneOptions;
  readonly #begin: Call;
  readonly #slots: Slot[] = [];
  readonly #waiting: FairQueue<Waiting>;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: ScanLaneOptions) {
    this.#options = options;
    this.#waiting = new FairQueue(options.queueMax, ({ places }) => places);
    const sql = `BEGIN READ ONLY; SET LOCAL jit = off; SET LOCAL statement_timeout = ${Math.ceil(options.timeoutMs)}`;
    this.#begin = { sql, values: [], prepared: false };
  }

  read(call: Call, party = ''): Promise<Rows> {
    if (this.#closed) return Promise.reject(unavailable('the store is closed'));
    return new Promise((resolve, reject) => {
      const endsAt = performance.now() + this.#options.timeoutMs;
      const places = placesOf(call.values, this.#options.queueMax);
      this.#waiting.push(party, { call, party, places, endsAt, resolve, reject });
      this.#dispatch();
      for (const refused of this.#waiting.overflow()) {
        refused.reject(unavailable(`${this.#waiting.count} long reads wait for a connection`));
      }
      if (this.#timer === undefined && this.#waiting.count > 0) this.#arm();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    for (const { reject } of this.#waiting.drop()) reject(unavailable('the store is closed'));
    for (const { connection, party } of this.#slots) {
      if (party !== undefined) connection.cut(new Error('the store is closed'));
    }
    await Promise.all(this.#slots.map(({ connection }) => connection.close()));
  }

  /** One that stands and is idle, or a new one; one that is disconnected only where there is no other. */
  #freeSlot(): Slot | undefined {
    let free: Slot | undefined;
    for (const slot of this.#slots) {
      if (slot.party !== undefined) continue;
      if (slot.connection.connected) return slot;
      free ??= slot;
    }
    if (free !== undefined || this.#slots.length >= this.#options.connections) return free;
    const timeoutMs = this.#options.timeoutMs + endingMs;
    const connection = createConnection({ ...this.#options, name: 'comity scan', timeoutMs });
    const slot: Slot = { connection, party: undefined };
    this.#slots.push(slot);
    return slot;
  }

  async #run(slot: Slot, { call, party }: Waiting): Promise<Rows> {
    slot.party = party;
    try {
      return await this.#send(slot.connection, call);
    } catch (error) {
      throw this.#meaningOf(error);
    } finally {
      slot.party = undefined;
      this.#dispatch();
    }
  }

  async #send(connection: Connection, call: Call): Promise<Rows> {
    try {
      return rowsOf(await connection.send([this.#begin, call, end]));
    } catch (error) {
      if (!isForeignStatement(error) && !isStaleStatement(error)) throw error;
      return rowsOf(await connection.send([this.#begin, { ...call, prepared: false }, end]));
    }
  }

  #dispatch(): void {
    while (!this.#closed && this.#waiting.count > 0) {
      const slot = this.#freeSlot();
      const next = slot === undefined ? undefined : this.#waiting.take((party) => this.#mayRead(party));
      if (slot === undefined || next === undefined) return;
      this.#run(slot, next.item).then(next.item.resolve, next.item.reject);
    }
  }

  /** One connection is left to others where there are several. */
  #mayRead(party: string): boolean {
    const reading = this.#slots.filter((slot) => slot.party === party).length;
    return reading < Math.max(1, this.#options.connections - 1);
  }

  #meaningOf(error: unknown): unknown {
    if (sqlState(error) === queryCanceled) {
      return unavailable(`the read took longer than ${this.#options.timeoutMs} ms`, error);
    }
    return error instanceof ConnectionLost ? error : asStoreError(error);
  }

  /** Looks again while something waits: each waits at most half as long again as it may. */
  #arm(): void {
    this.#timer = setTimeout(() => this.#refuseLate(), Math.max(1, this.#options.timeoutMs / 2));
  }

  #refuseLate(): void {
    this.#timer = undefined;
    const now = performance.now();
    for (const late of this.#waiting.drop(({ endsAt }) => endsAt <= now)) {
      late.reject(unavailable(`no connection was free for a long read within ${this.#options.timeoutMs} ms`));
    }
    if (this.#waiting.count > 0) this.#arm();
  }
}

const queryCanceled = '57014';
const end: Call = { sql: 'COMMIT', values: [], prepared: false };

function rowsOf(replies: readonly Reply[]): Rows {
  return replies[1]?.rows ?? [];
}
