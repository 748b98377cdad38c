/**
 * One line to an origin: an undici client whose connections the dialler opens. It has one connection at a time, and records for each request
 * whether the connection was kept, its address, and how long each stage of opening it took.
 */
import { Client } from 'undici';
import { type Dial, type Dialled, type DialProgress, newProgress } from './dial.ts';

import { hostnameOf, portOf } from './policy.ts';

export type LineConnection = Dialled & {
  isUsed: boolean;
  readonly openedMs: number;
};

export type LineState = {
  connection: LineConnection | undefined;
  progress: DialProgress | undefined;
};

/** A request over a line, which learns the line's state. */
export type LineHandler = { line: LineState | undefined };

export type LineTerms = {
  readonly dial: Dial;
  /** Counts the connections of the origin, so that one without any can be forgotten. */
  readonly onConnections: (change: 1 | -1) => void;
  readonly signal: AbortSignal;
  readonly ca: string | undefined;
  readonly monotonic: () => number;
};

type Connect = Extract<Client.Options['connect'], (...given: never[]) => unknown>;
type Dispatched = Parameters<Client['dispatch']>;

/** Age at which an HTTP/1.1 connection takes its last request, so that a receiver that moved to another address is found there. */
const connectionAgeMsMax = 5 * 60_000;

export class OriginLine extends Client {
  readonly #state: LineState;
  readonly #servername: string;
  readonly #isSecure: boolean;
  readonly #monotonic: () => number;

  constructor(origin: URL, options: Client.Options, terms: LineTerms) {
    const state: LineState = { connection: undefined, progress: undefined };
    super(origin, { ...options, connect: connectorOf(origin, state, terms) });
    this.#state = state;
    this.#servername = hostnameOf(origin);
    this.#isSecure = origin.protocol === 'https:';
    this.#monotonic = terms.monotonic;
  }

  override dispatch(
    options: Dispatched[0] & { servername?: string },
    handler: Dispatched[1] & Partial<LineHandler>,
  ): boolean {
    handler.line = this.#state;
    const { connection } = this.#state;
    // Otherwise undici takes a Host field for the name of the server, and opens a new connection when it changes.
    if (this.#isSecure) options.servername = this.#servername;
    if (connection !== undefined && connection.alpnProtocol !== 'h2') {
      if (this.#monotonic() - connection.openedMs > connectionAgeMsMax) options.reset = true;
    }
    return super.dispatch(options, handler);
  }
}

/** The hostname is the URL's and never that of a Host field. */
function connectorOf(origin: URL, state: LineState, terms: LineTerms): Connect {
  const hostname = hostnameOf(origin);
  const port = portOf(origin);
  const tls =
    origin.protocol === 'https:'
      ? { tls: { alpn: ['h2', 'http/1.1'], ...(terms.ca === undefined ? {} : { ca: terms.ca }) } }
      : {};
  return (_options, callback) => {
    const progress = newProgress();
    state.progress = progress;
    terms.onConnections(1);
    terms.dial({ hostname, port, ...tls, signal: terms.signal, progress }).then(
      (dialled) => {
        const connection = { ...dialled, isUsed: false, openedMs: terms.monotonic() };
        state.connection = connection;
        dialled.socket.once('close', () => {
          if (state.connection === connection) state.connection = undefined;
          terms.onConnections(-1);
        });
        callback(null, dialled.socket);
      },
      (error: unknown) => {
        terms.onConnections(-1);
        callback(
          error instanceof Error
            ? error
            : new Error('The connection attempt was abandoned', { cause: error }),
          null,
        );
      },
    );
  };
}
