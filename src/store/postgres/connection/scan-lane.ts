/**
 * Reads whose cost grows with the table, on connections of their own, one at a time on each, so that no read by id waits behind
 * one. The server ends a statement whose time is over (`SET LOCAL`, which lasts as long as the transaction and so
 * holds behind a pooler); begin, bound, statement and end leave in one write.
 */
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
  /** @throws StoreUnavailable when too many reads wait, the time is over or storage fails; the DatabaseError of a faulty call */
  read(call: Call): Promise<Rows>;
  /** Waits for the reads under way; those that wait are refused. */
  close(): Promise<void>;
};

/** What the server may take to end a statement after its time before the connection is cut. */
const endingMs = 1_000;

type Waiting = {
  readonly call: Call;
  readonly endsAt: number;
  readonly resolve: (rows: Rows) => void;
  readonly reject: (error: unknown) => void;
};

type Slot = { readonly connection: Connection; busy: boolean };

export function createScanLane(options: ScanLaneOptions): ScanLane {
  return new BoundedScanLane(options);
}

class BoundedScanLane implements ScanLane {
  readonly #options: ScanLaneOptions;
  readonly #begin: Call;
  readonly #slots: Slot[] = [];
  /** In the order in which they came, which is also that of their ends. */
  readonly #waiting: Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: ScanLaneOptions) {
    this.#options = options;
    const sql = `BEGIN READ ONLY; SET LOCAL jit = off; SET LOCAL statement_timeout = ${Math.ceil(options.timeoutMs)}`;
    this.#begin = { sql, values: [], prepared: false };
  }

  read(call: Call): Promise<Rows> {
    if (this.#closed) return Promise.reject(unavailable('the store is closed'));
    const slot = this.#freeSlot();
    if (slot !== undefined) return this.#run(slot, call);
    if (this.#waiting.length >= this.#options.queueMax) {
      return Promise.reject(unavailable(`${this.#waiting.length} long reads wait for a connection`));
    }
    return new Promise((resolve, reject) => {
      const endsAt = performance.now() + this.#options.timeoutMs;
      this.#waiting.push({ call, endsAt, resolve, reject });
      if (this.#timer === undefined) this.#arm(endsAt);
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    for (const { reject } of this.#waiting.splice(0)) reject(unavailable('the store is closed'));
    await Promise.all(this.#slots.map(({ connection }) => connection.close()));
  }

  /** One that stands and is idle, or a new one; one that is disconnected only where there is no other. */
  #freeSlot(): Slot | undefined {
    let free: Slot | undefined;
    for (const slot of this.#slots) {
      if (slot.busy) continue;
      if (slot.connection.connected) return slot;
      free ??= slot;
    }
    if (free !== undefined || this.#slots.length >= this.#options.connections) return free;
    const timeoutMs = this.#options.timeoutMs + endingMs;
    const connection = createConnection({ ...this.#options, name: 'comity scan', timeoutMs });
    const slot = { connection, busy: false };
    this.#slots.push(slot);
    return slot;
  }

  async #run(slot: Slot, call: Call): Promise<Rows> {
    slot.busy = true;
    try {
      return await this.#send(slot.connection, call);
    } catch (error) {
      throw this.#meaningOf(error);
    } finally {
      slot.busy = false;
      this.#next();
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

  #next(): void {
    const next = this.#waiting[0];
    if (next === undefined) return;
    const slot = this.#freeSlot();
    if (slot === undefined) return;
    this.#waiting.shift();
    this.#run(slot, next.call).then(next.resolve, next.reject);
  }

  #meaningOf(error: unknown): unknown {
    if (sqlState(error) === queryCanceled) {
      return unavailable(`the read took longer than ${this.#options.timeoutMs} ms`, error);
    }
    return error instanceof ConnectionLost ? error : asStoreError(error);
  }

  #arm(at: number): void {
    this.#timer = setTimeout(() => this.#refuseLate(), Math.max(1, at - performance.now()));
  }

  #refuseLate(): void {
    this.#timer = undefined;
    const now = performance.now();
    while (this.#waiting[0] !== undefined && this.#waiting[0].endsAt <= now) {
      const late = this.#waiting.shift();
      late?.reject(
        unavailable(`no connection was free for a long read within ${this.#options.timeoutMs} ms`),
      );
    }
    const next = this.#waiting[0];
    if (next !== undefined) this.#arm(next.endsAt);
  }
}

const queryCanceled = '57014';
const end: Call = { sql: 'COMMIT', values: [], prepared: false };

function rowsOf(replies: readonly Reply[]): Rows {
  return replies[1]?.rows ?? [];
}
