/**
 * The lanes of reads. The read lane has those of bounded cost, on a few connections that each carry any number at once: a read uses the
 * connection with the fewest calls, so that a stalled connection soon gets no more, and is retried once if its connection broke, since reads
 * change nothing. The scan lane, below, has those that may take long.
 */
import { FairQueue, hasLeft, nameOfParty, type Party } from '../../../model/fair-queue.ts';
import { placesOf } from '../../filter-shape.ts';
import { StoreUnavailable } from '../../store.ts';
import { asStoreError, isForeignStatement, isStaleStatement, sqlState } from '../postgres-failure.ts';
import {
  type Call,
  type Connection,
  ConnectionLost,
  type ConnectionOptions,
  createConnection,
  type Reply,
  type Rows,
} from './connection.ts';

export type ReadLane = {
  /** @throws StoreUnavailable, or the server's DatabaseError if the call itself is invalid */
  send(call: Call): Promise<Rows>;
  /** @throws StoreUnavailable if a trivial statement fails */
  ping(): Promise<void>;
  close(): Promise<void>;
};

const pingCall: Call = { sql: 'SELECT 1', values: [], prepared: false };

type Connecting = Omit<ConnectionOptions, 'name' | 'onNotification'>;

export function createReadLane(connecting: Connecting, connectionsMax: number): ReadLane {
  const connections = Array.from({ length: connectionsMax }, () =>
    createConnection({ ...connecting, name: 'comity read' }),
  );

  async function send(call: Call): Promise<Rows> {
    const startedAt = performance.now();
    const calls = [call];
    const first = leastBusy(connections);
    try {
      return (await first.send(calls))[0]?.rows ?? [];
    } catch (error) {
      const leftMs = connecting.timeoutMs - (performance.now() - startedAt);
      if (!(error instanceof ConnectionLost) || leftMs <= 0) throw asStoreError(error);
      try {
        return (await leastBusy(connections, first).send(calls, leftMs))[0]?.rows ?? [];
      } catch (again) {
        throw asStoreError(again);
      }
    }
  }

  return {
    send,
    async ping() {
      await send(pingCall);
    },
    async close() {
      await Promise.all(connections.map((connection) => connection.close()));
    },
  };
}

/** Prefers established connections, then the fewest calls; uses `spared` only if there is no other. */
function leastBusy(connections: readonly Connection[], spared?: Connection): Connection {
  let best: Connection | undefined;
  for (const connection of connections) {
    if (best === undefined || isBetter(connection, best, spared)) best = connection;
  }
  if (best === undefined) throw new RangeError('a read lane requires at least one connection');
  return best;
}

function isBetter(one: Connection, other: Connection, spared: Connection | undefined): boolean {
  if (one.connected !== other.connected) return one.connected;
  if ((one === spared) !== (other === spared)) return other === spared;
  return one.inFlight < other.inFlight;
}

/*
 * Reads whose cost grows with the table, on connections of their own, one at a time on each, so that no read by id waits behind one. The
 * server ends a statement at its timeout (`SET LOCAL` lasts as long as the transaction, and so works behind a pooler); begin, timeout,
 * statement and end are sent in one write.
 */

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

export class ScanLane {
  readonly #connecting: Connecting;
  readonly #connectionsMax: number;
  readonly #queueMax: number;
  readonly #begin: Call;
  readonly #slots: Slot[] = [];
  readonly #waiting: FairQueue<Waiting>;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  /**
   * @param connecting `timeoutMs`: of a statement, and the same again for its wait
   * @param connectionsMax they are made on demand
   * @param queueMax reads that may wait for a connection
   */
  constructor(connecting: Connecting, connectionsMax: number, queueMax: number) {
    this.#connecting = connecting;
    this.#connectionsMax = connectionsMax;
    this.#queueMax = queueMax;
    this.#waiting = new FairQueue(queueMax, ({ places }) => places);
    const sql = `BEGIN READ ONLY; SET LOCAL jit = off; SET LOCAL statement_timeout = ${Math.ceil(connecting.timeoutMs)}`;
    this.#begin = { sql, values: [], prepared: false };
  }

  /**
   * @param party for whom the read is: parties take turns, and with several connections none holds all
   * @throws StoreUnavailable if too many reads wait, the read times out or storage fails; DatabaseError for an invalid call
   */
  read(call: Call, party: Party = ''): Promise<Rows> {
    if (this.#closed) return Promise.reject(new StoreUnavailable('the store is closed'));
    return new Promise((resolve, reject) => {
      const endsAt = performance.now() + this.#connecting.timeoutMs;
      const places = placesOf(call.values, this.#queueMax);
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

  /** Ends the reads under way and rejects the waiting ones. */
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
    if (free !== undefined || this.#slots.length >= this.#connectionsMax) return free;
    const timeoutMs = this.#connecting.timeoutMs + endingMs;
    const connection = createConnection({ ...this.#connecting, name: 'comity scan', timeoutMs });
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
    return reading < Math.max(1, this.#connectionsMax - 1);
  }

  #meaningOf(error: unknown): unknown {
    if (sqlState(error) === queryCanceled) {
      return new StoreUnavailable(
        `the read took longer than ${this.#connecting.timeoutMs} ms (COMITY_SCAN_TIMEOUT_MS)`,
        { cause: error },
      );
    }
    return error instanceof ConnectionLost ? error : asStoreError(error);
  }

  /** Checks periodically while reads wait, so that a read waits at most 1.5 times its timeout. */
  #arm(): void {
    this.#timer = setTimeout(() => this.#refuseLate(), Math.max(1, this.#connecting.timeoutMs / 2));
  }

  #refuseLate(): void {
    this.#timer = undefined;
    const now = performance.now();
    for (const late of this.#waiting.drop(({ endsAt }) => endsAt <= now)) {
      late.reject(
        new StoreUnavailable(
          `no connection was free for a long read within ${this.#connecting.timeoutMs} ms (COMITY_SCAN_TIMEOUT_MS)`,
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
