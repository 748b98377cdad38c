/**
 * A connection that carries any number of calls at once (pipelining), bounds the time of each and heals itself.
 *
 * Modes: `connecting` (an attempt is under way; calls wait for it), `ready` (calls go out at once), `waiting` (the last attempt
 * failed and the next has not begun; calls are refused at once, so that callers answer instead of piling up), `closed`.
 * connecting -> ready | waiting;  ready -> connecting | waiting (lost);  waiting -> connecting;  any -> closed.
 * After a session that lasted the next is made at once, otherwise after a pause that doubles. Nothing is ever sent again by
 * itself but one lone call whose prepared statement the server no longer had, which therefore was not carried out.
 */
import type { Client } from 'pg';
import { StoreUnavailable } from '../../store.ts';
import type { Address } from './address.ts';
import { describe } from './address.ts';
import type { Call, Reply } from './call.ts';
import { openClient } from './client.ts';
import { messageOf, unavailable } from './failure.ts';
import { Flight } from './flight.ts';
import { Session } from './session.ts';

export type { Bindable, Call, Cell, Reply, Rows } from './call.ts';

export type Connection = {
  /**
   * Sends all calls at once, in order, without waiting in between. Rejects with the first failure, once everything sent was answered
   * or the connection was given up. A failed call does not undo earlier ones unless the caller began a transaction.
   * @param timeoutMs in place of the connection's own
   * @throws ConnectionLost, StoreUnavailable when too many calls are on their way, or the DatabaseError of the server
   */
  send(calls: readonly Call[], timeoutMs?: number): Promise<readonly Reply[]>;
  /** Calls asked for and not settled. */
  readonly inFlight: number;
  readonly connected: boolean;
  /** Waits for what is on its way, which has its bounds, then ends the session. */
  close(): Promise<void>;
  /** Cuts the session: what is on its way fails, and the server ends it when its time is over. */
  cut(error: unknown): void;
};

export type ConnectionOptions = {
  readonly address: Address;
  /** How the session is named to whoever looks at the server: `comity read`. */
  readonly name: string;
  readonly connectTimeoutMs: number;
  /** Time for the answer to a call, the wait for a connection included. */
  readonly timeoutMs: number;
  readonly callsWaitingMax?: number;
  readonly statementsKeptMax?: number;
  /** A session that stood has ended; not called for attempts that fail. */
  readonly onLost?: (error: unknown) => void;
  /** A session stands: called before any call that waited for it is sent. */
  readonly onConnected?: () => void;
  readonly onNotification?: (channel: string, payload: string) => void;
};

/** The connection broke, was given up or could not be had. */
export class ConnectionLost extends StoreUnavailable {
  /** Whether the server may have carried out the calls. */
  readonly sent: boolean;

  constructor(message: string, options: { readonly sent: boolean; readonly cause?: unknown }) {
    super(message, { retryAfterSeconds: 1, cause: options.cause });
    this.sent = options.sent;
  }
}

const callsWaitingMax = 10_000;
const statementsKeptMax = 256;
const pauseLeastMs = 50;
const pauseMostMs = 2_000;
/** A session that lasted so long was a good one: the next is made without a pause. */
const steadyAfterMs = 1_000;

/** Connects in the background, and again whenever the connection is lost. */
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
  /** What was sent, and what waits for a session, each in order. */
  readonly #sent = new Set<Flight>();
  readonly #unsent = new Set<Flight>();
  /** Why there is no session. */
  #reason: unknown;
  #pauses = 0;
  #pause: NodeJS.Timeout | undefined;
  /** One timer for all flights, at the earliest of their ends or before. */
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
    if (this.#closing) return Promise.reject(unavailable('the connection to the database is closed'));
    if (calls.length === 0) return Promise.resolve([]);
    if (this.#inFlight + calls.length > this.#callsWaitingMax) {
      return Promise.reject(unavailable(`${this.#inFlight} calls wait for ${this.#where}`));
    }
    if (this.#mode === 'waiting') return Promise.reject(this.#notHad());
    return new Promise((resolve, reject) => {
      const endsAt = performance.now() + timeoutMs;
      const flight = new Flight({ calls, endsAt, resolve, reject, onSettled: this.#onSettled });
      this.#inFlight += calls.length;
      if (endsAt < this.#timerAt) this.#arm(endsAt);
      if (this.#session === undefined) this.#unsent.add(flight);
      else this.#dispatch(this.#session, flight);
    });
  }

  /** Begins an attempt. */
  connect(): void {
    const { address, name, connectTimeoutMs } = this.#options;
    this.#mode = 'connecting';
    openClient(address, name, connectTimeoutMs).then(
      (client) => this.#adopt(client),
      (error: unknown) => this.#notConnected(error),
    );
  }

  /** Takes a client that is connected. */
  #adopt(client: Client): void {
    const session = new Session({
      client,
      statementsKeptMax: this.#options.statementsKeptMax ?? statementsKeptMax,
      onEnded: (error) => this.#lost(session, error),
      onNotification: this.#options.onNotification,
    });
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
    this.#session?.giveUp(error);
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
    for (const flight of this.#unsent) flight.abandon(this.#notHad());
  }

  /** The session broke: what was sent over it may have been carried out or not. */
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
    // Jitter: many processes that lost the same server must not come back in step.
    this.#pause = setTimeout(() => this.connect(), most / 2 + (Math.random() * most) / 2);
  }

  #notHad(): ConnectionLost {
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
    // Answers that already lie in the socket are read first: it may be this process that was late.
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
    if (isLate) this.#session?.giveUp(new Error('no answer in time'));
    let next = Number.POSITIVE_INFINITY;
    for (const flight of this.#sent) next = Math.min(next, flight.endsAt);
    for (const flight of this.#unsent) next = Math.min(next, flight.endsAt);
    if (next < Number.POSITIVE_INFINITY) this.#arm(next);
  }
}
