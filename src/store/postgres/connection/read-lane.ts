/**
 * Reads of bounded cost, on a few connections that each carry any number at once. A read uses the connection with the fewest calls, so that
 * a stalled connection soon gets no more. A read whose connection broke is retried once, since reads change nothing.
 */
import type { Call, Connection, ConnectionOptions, Rows } from './connection.ts';
import { ConnectionLost, createConnection } from './connection.ts';
import { asStoreError } from './connection-failure.ts';

export type ReadLaneOptions = Omit<ConnectionOptions, 'name' | 'onNotification'> & {
  readonly connections: number;
};

export type ReadLane = {
  /** @throws StoreUnavailable, or the server's DatabaseError if the call itself is invalid */
  send(call: Call): Promise<Rows>;
  /** @throws StoreUnavailable if a trivial statement fails */
  ping(): Promise<void>;
  close(): Promise<void>;
};

const pingCall: Call = { sql: 'SELECT 1', values: [], prepared: false };

export function createReadLane(options: ReadLaneOptions): ReadLane {
  const connections = Array.from({ length: options.connections }, () =>
    createConnection({ ...options, name: 'comity read' }),
  );

  async function send(call: Call): Promise<Rows> {
    const startedAt = performance.now();
    const calls = [call];
    const first = leastBusy(connections);
    try {
      return rowsOf(await first.send(calls));
    } catch (error) {
      const leftMs = options.timeoutMs - (performance.now() - startedAt);
      if (!(error instanceof ConnectionLost) || leftMs <= 0) throw asStoreError(error);
      try {
        return rowsOf(await leastBusy(connections, first).send(calls, leftMs));
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

function rowsOf(replies: readonly { readonly rows: Rows }[]): Rows {
  return replies[0]?.rows ?? [];
}
