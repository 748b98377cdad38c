/**
 * The calls on their way over one session of the server, and the statements that it knows by name. It ends once and for all:
 * what makes another is connection.ts.
 */
import type { Client, QueryArrayConfig, QueryArrayResult } from 'pg';
import { endsSession, isForeignStatement, isStaleStatement, isUnknownStatement } from './failure.ts';
import type { Flight } from './flight.ts';
import type { Statement } from './statement-names.ts';
import { StatementNames } from './statement-names.ts';

export type SessionOptions = {
  readonly client: Client;
  readonly statementsKeptMax: number;
  /** Called once, when the session broke or was given up; not after `close`. */
  readonly onEnded: (error: unknown) => void;
  readonly onNotification: ((channel: string, payload: string) => void) | undefined;
};

/** Time for the server to take leave. */
const farewellMs = 1_000;

export class Session {
  /** When it was made, on the clock of `performance.now()`. */
  readonly since = performance.now();
  readonly #client: Client;
  readonly #names: StatementNames;
  readonly #onEnded: (error: unknown) => void;
  #ended = false;
  #corked = false;

  constructor({ client, statementsKeptMax, onEnded, onNotification }: SessionOptions) {
    this.#client = client;
    this.#names = new StatementNames(client, statementsKeptMax);
    this.#onEnded = onEnded;
    client.on('error', (error) => this.giveUp(error));
    client.on('end', () => this.giveUp(new Error('the server closed the connection')));
    if (onNotification !== undefined) {
      client.on('notification', ({ channel, payload }) => onNotification(channel, payload ?? ''));
    }
  }

  dispatch(flight: Flight): void {
    this.#cork();
    for (let at = 0; at < flight.calls.length; at += 1) this.#submit(flight, at);
  }

  /** Cuts the connection: the server learns of it when it next reads or writes. */
  giveUp(error: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#client.connection.stream.destroy();
    this.#onEnded(error);
  }

  /** Takes leave of the server, when nothing is on its way. */
  async close(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    const impatience = setTimeout(() => this.#client.connection.stream.destroy(), farewellMs);
    await this.#client.end();
    clearTimeout(impatience);
  }

  /** What is sent in one turn of the event loop leaves in one write. */
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
    // Sent again it goes without a name, and so cannot meet the same trouble.
    const isNamed = call.prepared !== false && !flight.repeated;
    const statement = isNamed ? this.#names.use(call.sql) : undefined;
    const query: QueryArrayConfig = { text: call.sql, values: call.values as unknown[], rowMode: 'array' };
    if (statement !== undefined) query.name = statement.name;
    // Given a callback, it answers there and makes no promise.
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
      // Where its Parse has failed, calls right behind it find nothing either: that is no sign of a pooler.
      if (isUnknownStatement(error) && !this.#names.isParsed(statement)) this.#names.forget(statement);
      else this.#names.stop();
    } else if (isStaleStatement(error)) this.#names.forget(statement);
    else return false;
    return true;
  }
}

/** The call failed before anything of it was carried out; of a transaction, the rest has failed with it. */
function mayRepeat(flight: Flight): boolean {
  return flight.calls.length === 1 && !flight.repeated;
}

/** A simple query of several statements has several results, which the types of `pg` do not tell. */
function lastOf(result: QueryArrayResult): QueryArrayResult {
  const results: QueryArrayResult | readonly QueryArrayResult[] = result;
  return Array.isArray(results) ? (results.at(-1) ?? result) : result;
}
