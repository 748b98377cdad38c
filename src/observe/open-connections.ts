/**
 * The open event streams, WebSockets and tunnels of this process, with the octets that each has carried (§4.21.8). Admission bounds their
 * numbers, so the list needs no bound of its own.
 */

export type OpenConnection = {
  readonly kind: 'stream' | 'websocket' | 'tunnel';
  /** Id of the principal; null: it came without a credential. */
  readonly principal: string | null;
  /** Address of the peer. */
  readonly peer: string;
  /** The query of a stream, the patterns of a WebSocket, or the destination of a tunnel. Called for each request of the list. */
  readonly about: () => string;
  /** Octets that it has carried: to the client, or for a tunnel in both directions. */
  readonly octets: () => number;
};

export type ShownConnection = Omit<OpenConnection, 'about' | 'octets'> & {
  readonly id: string;
  readonly openedAt: string;
  readonly about: string;
  readonly octets: number;
};

export type OpenConnections = {
  /** @returns a function that takes the connection out again; further calls do nothing */
  enter(connection: OpenConnection): () => void;
  /** At most `countMax`, the newest first. */
  newest(countMax: number): readonly ShownConnection[];
  readonly size: number;
};

/** Characters of what a connection is about. */
const aboutMax = 256;

/** @param clock milliseconds since the epoch */
export function createOpenConnections(clock: () => number): OpenConnections {
  type Entered = { readonly openedMs: number; readonly connection: OpenConnection };
  const open = new Map<number, Entered>();
  let last = 0;
  return {
    enter(connection) {
      last += 1;
      const id = last;
      open.set(id, { openedMs: clock(), connection });
      return () => void open.delete(id);
    },
    newest: (countMax) => [...open].slice(-countMax).reverse().map(shown),
    get size() {
      return open.size;
    },
  };

  function shown([id, { openedMs, connection }]: [number, Entered]): ShownConnection {
    const { kind, principal, peer } = connection;
    return {
      ...{ id: String(id), kind, principal, peer, openedAt: new Date(openedMs).toISOString() },
      about: connection.about().slice(0, aboutMax),
      octets: connection.octets(),
    };
  }
}
