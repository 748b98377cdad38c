/** One session with the server: its calls under way, and its prepared statements. It ends once; connection.ts makes the next. */
import { hash } from 'node:crypto';
import type { Client, QueryArrayConfig, QueryArrayResult } from 'pg';
import { memoryBounds } from '../../../memory/bounds.ts';
import { octetsOfText } from '../../../memory/octet-cache.ts';
import {
  endsSession,
  isForeignStatement,
  isStaleStatement,
  isUnknownStatement,
} from '../postgres-failure.ts';
import type { Address } from './address.ts';
import { cancelWork } from './client.ts';

export type Cell = string | number | boolean | null;
export type Rows = readonly (readonly Cell[])[];
/** Arrays are sent as array literals; a cast such as `$1::text[]` in the statement gives their type. */
export type Bindable = Cell | readonly Cell[];

export type Call = {
  readonly sql: string;
  readonly values: readonly Bindable[];
  /**
   * Prepare the statement and keep it in the session (default true). Without it, a text without values is sent as a simple query: it may
   * hold several statements, and the reply is the last one's.
   */
  readonly prepared?: boolean;
};

/** Columns in order; `affected` is the command's row count, 0 if it has none. */
export type Reply = { readonly rows: Rows; readonly affected: number };

/**
 * A row to join in a statement whose transaction waits for no disk and no replica: what it writes may be lost. Housekeeping has it, because a
 * synchronous standby that is gone stops every other transaction for good.
 */
export const unawaited = "(SELECT set_config('synchronous_commit', 'off', true)) AS unawaited";

/** The part of a connection's options (connection.ts) that each of its sessions uses. */
export type SessionUse = {
  readonly address: Address;
  /** Default 256. */
  readonly statementsKeptMax?: number;
  readonly onNotification?: (channel: string, payload: string) => void;
  /** Returns the turn to wait for before the next part of a long answer is read (event-loop.ts); undefined: none. */
  readonly nextRead?: (() => Promise<void> | undefined) | undefined;
};

const closeTimeoutMs = 1_000;
const statementsKeptMaxDefault = 256;

export class Session {
  /** Time of its creation, on the clock of `performance.now()`. */
  readonly since = performance.now();
  readonly #client: Client;
  readonly #address: Address;
  readonly #names: StatementNames;
  readonly #onEnded: (error: unknown) => void;
  #ended = false;
  #corked = false;

  /** @param onEnded called once, when the session broke or was given up; not after `close` */
  constructor(client: Client, use: SessionUse, onEnded: (error: unknown) => void) {
    const { address, statementsKeptMax = statementsKeptMaxDefault, onNotification, nextRead } = use;
    this.#client = client;
    this.#address = address;
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
    if (!this.#ended) cancelWork(this.#address, this.#client);
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

/** Calls sent together. It settles once, when all have replies or it is abandoned. */
export class Flight {
  readonly calls: readonly Call[];
  /** On the clock of `performance.now()`. */
  readonly endsAt: number;
  readonly settling = Promise.withResolvers<readonly Reply[]>();
  repeated = false;
  readonly #onSettled: (flight: Flight) => void;
  readonly #replies: Reply[] = [];
  #answered = 0;
  #failure: { readonly error: unknown } | undefined;
  #settled = false;

  constructor(calls: readonly Call[], endsAt: number, onSettled: (flight: Flight) => void) {
    this.calls = calls;
    this.endsAt = endsAt;
    this.#onSettled = onSettled;
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
    this.#onSettled(this);
    if (this.#failure === undefined) this.settling.resolve(this.#replies);
    else this.settling.reject(this.#failure.error);
  }
}

/*
 * The prepared statements of one session by their texts, bounded in number and length; the least recently used is closed first.
 * A name depends only on the text. Behind a pooler without support for prepared statements two of Comity's connections may use the same
 * session: under a name they find nothing or the same text, never another statement. Both cases are noticed (26000, 42P05), and the
 * connection continues without names.
 */

type Statement = {
  readonly name: string;
  readonly sql: string;
  /** Calls under way that use it; above 0, the statement is not closed. */
  callsInFlight: number;
  lastUse: number;
};

/** The record of names that `pg` keeps and never clears by itself. */
type Bookkeeping = {
  readonly parsedStatements: Record<string, string>;
  readonly submittedNamedStatements: Record<string, string>;
};

const octetsMax = memoryBounds.postgresStatements.octets;

/** Counts the text as the key here, and as kept by `pg`. */
function octetsOf(sql: string): number {
  return 512 + 2 * octetsOfText(sql);
}

class StatementNames {
  readonly #client: Client;
  readonly #kept: Bookkeeping;
  readonly #statementsMax: number;
  readonly #bySql = new Map<string, Statement>();
  readonly #closing: string[] = [];
  #octets = 0;
  #uses = 0;
  /** Makes names of later generations differ; otherwise names depend only on the text. */
  #generation = 0;
  #given = true;

  constructor(client: Client, statementsMax: number) {
    this.#client = client;
    this.#kept = client.connection as unknown as Bookkeeping;
    this.#statementsMax = statementsMax;
  }

  /** The statement for a text, prepared if necessary; undefined if the call must be sent without a name. */
  use(sql: string): Statement | undefined {
    let statement = this.#bySql.get(sql);
    if (statement === undefined) {
      if (!this.#given || !this.#makeRoom(sql)) return undefined;
      this.#close();
      const name = `c${hash('sha1', sql)}${this.#generation === 0 ? '' : `_${this.#generation}`}`;
      statement = { name, sql, callsInFlight: 0, lastUse: 0 };
      this.#bySql.set(sql, statement);
      this.#octets += octetsOf(sql);
    }
    statement.callsInFlight += 1;
    this.#uses += 1;
    statement.lastUse = this.#uses;
    return statement;
  }

  /** True once the statement's Parse has succeeded. */
  isParsed(statement: Statement): boolean {
    return this.#kept.parsedStatements[statement.name] !== undefined;
  }

  /** Drops the statement: it is closed in the session before the next use of its text prepares it again. */
  forget(statement: Statement): void {
    if (this.#bySql.get(statement.sql) !== statement) return;
    this.#bySql.delete(statement.sql);
    this.#octets -= octetsOf(statement.sql);
    this.#closing.push(statement.name);
    delete this.#kept.parsedStatements[statement.name];
    delete this.#kept.submittedNamedStatements[statement.name];
    // `pg` attributes a call's failure to its name: calls under way must not affect the next name.
    if (statement.callsInFlight > 0) this.#generation += 1;
  }

  /** Stops preparing statements, because the pooler does not keep them. */
  stop(): void {
    this.#given = false;
    this.#bySql.clear();
    this.#octets = 0;
  }

  /**
   * Sends Close, a protocol message that a pooler understands; DEALLOCATE is a text that it passes to any session. It is sent only in front
   * of the next Parse, because a pooler reserves a session for a client that sent a message without Sync.
   */
  #close(): void {
    for (const name of this.#closing) this.#client.connection.close({ type: 'S', name }, true);
    this.#closing.length = 0;
  }

  #makeRoom(sql: string): boolean {
    while (this.#bySql.size >= this.#statementsMax || this.#octets + octetsOf(sql) > octetsMax) {
      if (!this.#forgetOldest()) return false;
    }
    return true;
  }

  #forgetOldest(): boolean {
    let oldest: Statement | undefined;
    for (const statement of this.#bySql.values()) {
      if (statement.callsInFlight > 0) continue;
      if (oldest === undefined || statement.lastUse < oldest.lastUse) oldest = statement;
    }
    if (oldest !== undefined) this.forget(oldest);
    return oldest !== undefined;
  }
}
