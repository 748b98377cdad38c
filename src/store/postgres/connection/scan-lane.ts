/**
 * Reads whose cost grows with the table, on connections of their own, one at a time on each, so that no read by id waits behind one. The
 * server ends a statement at its timeout (`SET LOCAL` lasts as long as the transaction, and so works behind a pooler); begin, timeout,
 * statement and end are sent in one write.
 */
import { FairQueue, hasLeft, nameOfParty, type Party } from '../../../model/fair-queue.ts';
import { placesOf } from '../../filter-shape.ts';
import { StoreUnavailable } from '../../store.ts';
import {
  type Call,
  type Connection,
  ConnectionLost,
  type ConnectionOptions,
  createConnection,
  type Reply,
  type Rows,
} from './connection.ts';
import { asStoreError, isForeignStatement, isStaleStatement, sqlState } from './connection-failure.ts';

export type ScanLaneOptions = Omit<ConnectionOptions, 'name' | 'onNotification' | 'timeoutMs'> & {
  /** Limit of connections, which are made on demand. */
  readonly connections: number;
  /** Reads that may wait for a connection. */
  readonly queueMax: number;
  /** Timeout of a statement, and the same again for its wait. */
  readonly timeoutMs: number;
};

export type ScanLane = {
  /**
   * @param party for whom the read is: parties take turns, and with several connections none holds all
   * @throws StoreUnavailable if too many reads wait, the read times out or storage fails; DatabaseError for an invalid call
   */
  read(call: Call, party?: Party): Promise<Rows>;
  /** Ends the reads under way and rejects the waiting ones. */
  close(): Promise<void>;
};

/** Time for the server to end a statement after its timeout, before the connection is cut. */
const endingMs = 1_000;

type Waiting = {
  readonly call: Call;
  readonly party: Party;
  readonly places: number;
  readonly endsAt: number;
  readonly resolve: (rows: Rows) => void;
  readonly reject: (error: unknown) => void;
};

/** `party` of the read under way; undefined if the connection is free. */
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
    if (this.#closed) return Promise.reject(new StoreUnavailable('the store is closed'));
    return new Promise((resolve, reject) => {
      const endsAt = performance.now() + this.#options.timeoutMs;
      const places = placesOf(call.values, this.#options.queueMax);
      this.#waiting.push(nameOfParty(party), { call, party, places, endsAt, resolve, reject });
      this.#dispatch();
      for (const refused of this.#waiting.overflow()) {
        refused.reject(
          new StoreUnavailable(`${this.#waiting.count} long reads wait for a connection: the queue is full`),
        );
      }
      if (this.#timer === undefined && this.#waiting.count > 0) this.#arm();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    for (const { reject } of this.#waiting.drop()) reject(new StoreUnavailable('the store is closed'));
    for (const { connection, party } of this.#slots) {
      if (party !== undefined) connection.cut(new Error('the store is closed'));
    }
    await Promise.all(this.#slots.map(({ connection }) => connection.close()));
  }

  /** Prefers an idle established connection, then a new one; uses a disconnected one if there is no other. */
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
    slot.party = nameOfParty(party);
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
      if (hasLeft(next.item.party)) {
        next.item.reject(new StoreUnavailable('the client has left'));
        continue;
      }
      this.#run(slot, next.item).then(next.item.resolve, next.item.reject);
    }
  }

  /** Leaves one of several connections to other parties. */
  #mayRead(party: string): boolean {
    const reading = this.#slots.filter((slot) => slot.party === party).length;
    return reading < Math.max(1, this.#options.connections - 1);
  }

  #meaningOf(error: unknown): unknown {
    if (sqlState(error) === queryCanceled) {
      return new StoreUnavailable(
        `the read took longer than ${this.#options.timeoutMs} ms (COMITY_SCAN_TIMEOUT_MS)`,
        { cause: error },
      );
    }
    return error instanceof ConnectionLost ? error : asStoreError(error);
  }

  /** Checks periodically while reads wait, so that a read waits at most 1.5 times its timeout. */
  #arm(): void {
    this.#timer = setTimeout(() => this.#refuseLate(), Math.max(1, this.#options.timeoutMs / 2));
  }

  #refuseLate(): void {
    this.#timer = undefined;
    const now = performance.now();
    for (const late of this.#waiting.drop(({ endsAt }) => endsAt <= now)) {
      late.reject(
        new StoreUnavailable(
          `no connection was free for a long read within ${this.#options.timeoutMs} ms (COMITY_SCAN_TIMEOUT_MS)`,
        ),
      );
    }
    if (this.#waiting.count > 0) this.#arm();
  }
}

const queryCanceled = '57014';
const end: Call = { sql: 'COMMIT', values: [], prepared: false };

function rowsOf(replies: readonly Reply[]): Rows {
  return replies[1]?.rows ?? [];
}
