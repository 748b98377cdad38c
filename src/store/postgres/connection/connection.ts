/**
 * A connection that carries any number of calls at once (pipelining), bounds the time of each, and reconnects.
 * Modes: `connecting` (an attempt is under way; calls wait for it), `ready` (calls are sent immediately), `waiting` (the last attempt
 * failed and the next has not begun; calls are rejected immediately, so that callers respond instead of queueing), `closed`. connecting ->
 * ready | waiting;  ready -> connecting | waiting (lost);  waiting -> connecting;  any -> closed.
 * After a session that lasted, it reconnects immediately, otherwise after a pause that doubles. It resends nothing but a single call whose
 * prepared statement the server no longer had, and which was therefore not executed.
 */
import type { Client } from 'pg';
import { StoreUnavailable } from '../../store.ts';
import { messageOf } from '../postgres-failure.ts';
import { describe } from './address.ts';
import { openClient } from './client.ts';
import { type Call, Flight, type Reply, Session, type SessionUse } from './session.ts';

export type { Bindable, Call, Cell, Reply, Rows } from './session.ts';

export type Connection = {
  /**
   * Sends all calls at once, in order. Rejects with the first failure, once every call has a reply or the connection is given up. A failed
   * call does not undo earlier ones unless the caller began a transaction.
   * @param timeoutMs in place of the connection's own
   * @throws ConnectionLost, StoreUnavailable if too many calls are under way, or the server's DatabaseError
   */
  send(calls: readonly Call[], timeoutMs?: number): Promise<readonly Reply[]>;
  readonly inFlight: number;
  readonly connected: boolean;
  /** Waits for calls under way, within their timeouts, then ends the session. */
  close(): Promise<void>;
  /** Cuts the session: calls under way fail, and the server ends them at their timeout. */
  cut(error: unknown): void;
};

export type ConnectionOptions = SessionUse & {
  /** The session's name in the server's views: `comity read`. */
  readonly name: string;
  readonly connectTimeoutMs: number;
  /** Timeout of a call, including the wait for a connection. */
  readonly timeoutMs: number;
  readonly callsWaitingMax?: number;
  /** Called when an established session ended, not for failed attempts. */
  readonly onLost?: (error: unknown) => void;
  /** Called when a session is established, before any waiting call is sent. */
  readonly onConnected?: () => void;
};

/** The connection broke, was given up or could not be made. */
export class ConnectionLost extends StoreUnavailable {
  /** True if the server may have executed the calls. */
  readonly sent: boolean;

  constructor(message: string, options: { readonly sent: boolean; readonly cause?: unknown }) {
    super(message, { cause: options.cause });
    this.sent = options.sent;
  }
}

const callsWaitingMax = 10_000;
const pauseLeastMs = 50;
const pauseMostMs = 2_000;
/** After a session that lasted this long, it reconnects without a pause. */
const steadyAfterMs = 1_000;

export function createConnection(options: ConnectionOptions): Connection {
  const connection = new LastingConnection(options);
  connection.connect();
  return connection;
}

class LastingConnection implements Connection {
  readonly #options: ConnectionOptions;
  readonly #where: string;
  readonly #callsWaitingMax: number;
  #mode: 'connecting' | 'ready' | 'waiting' | 'closed' = 'waiting';
  #closing = false;
  #session: Session | undefined;
  #inFlight = 0;
  /** Flights sent, and flights waiting for a session, each in order. */
  readonly #sent = new Set<Flight>();
  readonly #unsent = new Set<Flight>();
  #reason: unknown;
  #pauses = 0;
  #pause: NodeJS.Timeout | undefined;
  /** One timer for all flights, at the earliest deadline or before. */
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #whenIdle: (() => void) | undefined;
  readonly #onSettled = (flight: Flight): void => this.#settled(flight);

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#where = describe(options.address);
    this.#callsWaitingMax = options.callsWaitingMax ?? callsWaitingMax;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get connected(): boolean {
    return this.#mode === 'ready';
  }

  send(calls: readonly Call[], timeoutMs = this.#options.timeoutMs): Promise<readonly Reply[]> {
    if (this.#closing)
      return Promise.reject(new StoreUnavailable('the connection to the database is closed'));
    if (calls.length === 0) return Promise.resolve([]);
    if (this.#inFlight + calls.length > this.#callsWaitingMax) {
      return Promise.reject(new StoreUnavailable(`${this.#inFlight} calls wait for ${this.#where}`));
    }
    if (this.#mode === 'waiting') return Promise.reject(this.#unreachable());
    const flight = new Flight(calls, performance.now() + timeoutMs, this.#onSettled);
    this.#inFlight += calls.length;
    if (flight.endsAt < this.#timerAt) this.#arm(flight.endsAt);
    if (this.#session === undefined) this.#unsent.add(flight);
    else this.#dispatch(this.#session, flight);
    return flight.settling.promise;
  }

  connect(): void {
    const { address, name, connectTimeoutMs } = this.#options;
    this.#mode = 'connecting';
    openClient(address, name, connectTimeoutMs).then(
      (client) => this.#adopt(client),
      (error: unknown) => this.#notConnected(error),
    );
  }

  #adopt(client: Client): void {
    const session = new Session(client, this.#options, (error) => this.#lost(session, error));
    this.#session = session;
    if (this.#mode === 'closed') {
      session.giveUp(undefined);
      return;
    }
    this.#mode = 'ready';
    this.#options.onConnected?.();
    for (const flight of this.#unsent) {
      this.#unsent.delete(flight);
      this.#dispatch(session, flight);
    }
  }

  async close(): Promise<void> {
    this.#closing = true;
    if (this.#inFlight > 0) {
      await new Promise<void>((resolve) => {
        this.#whenIdle = resolve;
      });
    }
    this.#mode = 'closed';
    clearTimeout(this.#pause);
    clearTimeout(this.#timer);
    await this.#session?.close();
  }

  cut(error: unknown): void {
    this.#closing = true;
    for (const flight of this.#unsent) flight.abandon(error);
    this.#session?.abort(error);
  }

  #dispatch(session: Session, flight: Flight): void {
    this.#sent.add(flight);
    session.dispatch(flight);
  }

  #notConnected(error: unknown): void {
    if (this.#mode === 'closed') return;
    this.#reason = error;
    this.#mode = 'waiting';
    this.#connectLater();
    for (const flight of this.#unsent) flight.abandon(this.#unreachable());
  }

  /** Handles a broken session, whose calls may have been executed or not. */
  #lost(session: Session, reason: unknown): void {
    this.#session = undefined;
    if (this.#mode === 'closed') return;
    this.#reason = reason;
    this.#mode = 'waiting';
    if (performance.now() - session.since >= steadyAfterMs) this.#pauses = 0;
    if (this.#pauses > 0) this.#connectLater();
    else if (!this.#closing) {
      this.#pauses = 1;
      this.connect();
    }
    const message = `the connection to ${this.#where} was lost: ${messageOf(reason)}`;
    const failure = new ConnectionLost(message, { sent: true, cause: reason });
    for (const flight of this.#sent) flight.abandon(failure);
    this.#options.onLost?.(failure);
  }

  #connectLater(): void {
    if (this.#closing) return;
    const most = Math.min(pauseMostMs, pauseLeastMs * 2 ** this.#pauses);
    this.#pauses += 1;
    // Jitter, so that many processes that lost the same server do not reconnect in step.
    this.#pause = setTimeout(() => this.connect(), most / 2 + (Math.random() * most) / 2);
  }

  #unreachable(): ConnectionLost {
    const message = `no connection to ${this.#where}: ${messageOf(this.#reason)}`;
    return new ConnectionLost(message, { sent: false, cause: this.#reason });
  }

  #settled(flight: Flight): void {
    this.#sent.delete(flight);
    this.#unsent.delete(flight);
    this.#inFlight -= flight.calls.length;
    if (this.#inFlight === 0) this.#whenIdle?.();
  }

  #arm(at: number): void {
    clearTimeout(this.#timer);
    this.#timerAt = at;
    // Reads replies that already arrived first: this process itself may be late.
    const afterReading = (): void => void setImmediate(() => this.#endLateFlights());
    this.#timer = setTimeout(afterReading, Math.max(1, at - performance.now()));
  }

  #endLateFlights(): void {
    this.#timerAt = Number.POSITIVE_INFINITY;
    const now = performance.now();
    for (const flight of this.#unsent) {
      if (flight.endsAt > now) continue;
      const message = `no connection to ${this.#where} in time`;
      flight.abandon(new ConnectionLost(message, { sent: false, cause: this.#reason }));
    }
    const isLate = this.#sent.values().some((flight) => flight.endsAt <= now);
    if (isLate) this.#session?.abort(new Error('no reply in time'));
    let next = Number.POSITIVE_INFINITY;
    for (const flight of this.#sent) next = Math.min(next, flight.endsAt);
    for (const flight of this.#unsent) next = Math.min(next, flight.endsAt);
    if (next < Number.POSITIVE_INFINITY) this.#arm(next);
  }
}
