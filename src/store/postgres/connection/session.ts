/** One session with the server: its calls under way, and its prepared statements. It ends once; connection.ts makes the next. */
import type { Client, QueryArrayConfig, QueryArrayResult } from 'pg';
import type { Call, Reply } from './call.ts';
import {
  endsSession,
  isForeignStatement,
  isStaleStatement,
  isUnknownStatement,
} from './connection-failure.ts';
import { type Statement, StatementNames } from './statement-names.ts';

export type SessionOptions = {
  readonly client: Client;
  /** Asks the server to cancel the session's work. */
  readonly cancel: () => void;
  readonly statementsKeptMax: number;
  /** Called once, when the session broke or was given up; not after `close`. */
  readonly onEnded: (error: unknown) => void;
  readonly onNotification: ((channel: string, payload: string) => void) | undefined;
  /** Called after each part that was read. A promise: the session reads on after it. */
  readonly nextRead: (() => Promise<void> | undefined) | undefined;
};

const closeTimeoutMs = 1_000;

export class Session {
  /** Time of its creation, on the clock of `performance.now()`. */
  readonly since = performance.now();
  readonly #client: Client;
  readonly #cancel: () => void;
  readonly #names: StatementNames;
  readonly #onEnded: (error: unknown) => void;
  #ended = false;
  #corked = false;

  constructor({ client, cancel, statementsKeptMax, onEnded, onNotification, nextRead }: SessionOptions) {
    this.#client = client;
    this.#cancel = cancel;
    this.#names = new StatementNames(client, statementsKeptMax);
    this.#onEnded = onEnded;
    client.on('error', (error) => this.giveUp(error));
    client.on('end', () => this.giveUp(new Error('the server closed the connection')));
    if (onNotification !== undefined) {
      client.on('notification', ({ channel, payload }) => onNotification(channel, payload ?? ''));
    }
    if (nextRead !== undefined) readInTurns(client.connection.stream, nextRead);
  }

  dispatch(flight: Flight): void {
    this.#cork();
    for (let at = 0; at < flight.calls.length; at += 1) this.#submit(flight, at);
  }

  /** Cuts the connection: the server notices when it next reads or writes. */
  giveUp(error: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#client.connection.stream.destroy();
    this.#onEnded(error);
  }

  /** Gives up a session whose server may still work, or wait for a replica for good, and asks the server to stop that. */
  abort(error: unknown): void {
    if (!this.#ended) this.#cancel();
    this.giveUp(error);
  }

  async close(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    const timer = setTimeout(() => this.#client.connection.stream.destroy(), closeTimeoutMs);
    await this.#client.end();
    clearTimeout(timer);
  }

  /** Sends the calls of one turn of the event loop in one write. */
  #cork(): void {
    if (this.#corked) return;
    this.#corked = true;
    const { stream } = this.#client.connection;
    stream.cork();
    process.nextTick(() => {
      this.#corked = false;
      stream.uncork();
    });
  }

  #submit(flight: Flight, at: number): void {
    const call = flight.calls[at];
    if (call === undefined) return;
    // A repeated call has no name, and so cannot fail the same way.
    const isNamed = call.prepared !== false && !flight.repeated;
    const statement = isNamed ? this.#names.use(call.sql) : undefined;
    const query: QueryArrayConfig = { text: call.sql, values: call.values as unknown[], rowMode: 'array' };
    if (statement !== undefined) query.name = statement.name;
    // With a callback it returns no promise.
    void this.#client.query(query, (error: Error | null, result: QueryArrayResult) => {
      if (statement !== undefined) statement.callsInFlight -= 1;
      if (flight.settled) return;
      if (error !== null) this.#refused(flight, at, statement, error);
      else {
        const { rows, rowCount } = lastOf(result);
        flight.answer(at, { rows, affected: rowCount ?? 0 });
      }
    });
  }

  #refused(flight: Flight, at: number, statement: Statement | undefined, error: unknown): void {
    if (endsSession(error)) this.giveUp(error);
    else if (statement !== undefined && this.#isPreparedNoMore(statement, error) && mayRepeat(flight)) {
      flight.repeated = true;
      this.#cork();
      this.#submit(flight, at);
    } else flight.refuse(error);
  }

  #isPreparedNoMore(statement: Statement, error: unknown): boolean {
    if (isForeignStatement(error)) {
      // After its Parse failed, the calls behind it find no statement either: that is no sign of a pooler.
      if (isUnknownStatement(error) && !this.#names.isParsed(statement)) this.#names.forget(statement);
      else this.#names.stop();
    } else if (isStaleStatement(error)) this.#names.forget(statement);
    else return false;
    return true;
  }
}

/** Comes after the listener of `pg`, which has parsed the part. The event loop reads at most one more part, which the stream holds. */
function readInTurns(
  stream: Client['connection']['stream'],
  nextRead: () => Promise<void> | undefined,
): void {
  stream.on('data', () => {
    const turn = nextRead();
    if (turn === undefined) return;
    stream.pause();
    void turn.then(() => stream.resume());
  });
}

/** True if the call failed before it was executed; in a transaction, the rest failed with it. */
function mayRepeat(flight: Flight): boolean {
  return flight.calls.length === 1 && !flight.repeated;
}

/** A simple query of several statements has several results, which the types of `pg` do not declare. */
function lastOf(result: QueryArrayResult): QueryArrayResult {
  const results: QueryArrayResult | readonly QueryArrayResult[] = result;
  return Array.isArray(results) ? (results.at(-1) ?? result) : result;
}

type FlightOptions = {
  readonly calls: readonly Call[];
  /** On the clock of `performance.now()`. */
  readonly endsAt: number;
  readonly resolve: (replies: readonly Reply[]) => void;
  readonly reject: (error: unknown) => void;
  readonly onSettled: (flight: Flight) => void;
};

/** Calls sent together. It settles once, when all have replies or it is abandoned. */
export class Flight {
  readonly calls: readonly Call[];
  readonly endsAt: number;
  repeated = false;
  readonly #options: FlightOptions;
  readonly #replies: Reply[] = [];
  #answered = 0;
  #failure: { readonly error: unknown } | undefined;
  #settled = false;

  constructor(options: FlightOptions) {
    this.calls = options.calls;
    this.endsAt = options.endsAt;
    this.#options = options;
  }

  get settled(): boolean {
    return this.#settled;
  }

  answer(at: number, reply: Reply): void {
    this.#replies[at] = reply;
    this.#count();
  }

  /** Records that one call failed. Only the first failure is reported: in a transaction the others fail because of it. */
  refuse(error: unknown): void {
    this.#failure ??= { error };
    this.#count();
  }

  /** Rejects a flight that will get no more replies. */
  abandon(error: unknown): void {
    if (this.#settled) return;
    this.#failure ??= { error };
    this.#settle();
  }

  #count(): void {
    this.#answered += 1;
    if (this.#answered === this.calls.length) this.#settle();
  }

  #settle(): void {
    this.#settled = true;
    this.#options.onSettled(this);
    if (this.#failure === undefined) this.#options.resolve(this.#replies);
    else this.#options.reject(this.#failure.error);
  }
}
