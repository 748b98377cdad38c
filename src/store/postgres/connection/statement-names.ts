/**
 * The prepared statements of one session: which texts it knows by name, at most so many and so long, the least recently used making room.
 *
 * A name is made from its text alone. Behind a pooler that knows nothing of prepared statements two of this program's
 * connections may come to use one session of the server: they then find under a name nothing, or the same text; never
 * another statement. Either is noticed (26000, 42P05), and the connection goes on without names.
 */
import { hash } from 'node:crypto';
import type { Client } from 'pg';
import { memoryBounds } from '../../../memory/bounds.ts';
import { octetsOfText } from '../../../memory/octet-cache.ts';

export type Statement = {
  readonly name: string;
  readonly sql: string;
  /** Calls on their way that use it: such a statement is not put away. */
  callsInFlight: number;
  lastUse: number;
};

/** What `pg` keeps of names, which it never forgets by itself. */
type Bookkeeping = {
  readonly parsedStatements: Record<string, string>;
  readonly submittedNamedStatements: Record<string, string>;
};

const octetsMax = memoryBounds.postgresStatements.octets;

/** The text is the key here, and kept by `pg` as well. */
function octetsOf(sql: string): number {
  return 512 + 2 * octetsOfText(sql);
}

export class StatementNames {
  readonly #client: Client;
  readonly #kept: Bookkeeping;
  readonly #statementsMax: number;
  readonly #bySql = new Map<string, Statement>();
  readonly #closing: string[] = [];
  #octets = 0;
  #uses = 0;
  /** Told apart in the names, which are still made from nothing else but the text. */
  #generation = 0;
  #given = true;

  constructor(client: Client, statementsMax: number) {
    this.#client = client;
    this.#kept = client.connection as unknown as Bookkeeping;
    this.#statementsMax = statementsMax;
  }

  /** The statement under its name, made known if need be; undefined where it has to go without a name. */
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

  /** Whether the session has it, as far as this side knows: not before its Parse has succeeded. */
  isParsed(statement: Statement): boolean {
    return this.#kept.parsedStatements[statement.name] !== undefined;
  }

  /** Lets go of the statement: the next use of its text prepares it again, after closing this one in the session. */
  forget(statement: Statement): void {
    if (this.#bySql.get(statement.sql) !== statement) return;
    this.#bySql.delete(statement.sql);
    this.#octets -= octetsOf(statement.sql);
    this.#closing.push(statement.name);
    delete this.#kept.parsedStatements[statement.name];
    delete this.#kept.submittedNamedStatements[statement.name];
    // `pg` takes a failure of a call as one of the name: calls still on their way must not spoil the name that comes next.
    if (statement.callsInFlight > 0) this.#generation += 1;
  }

  /** Gives no names any more: who is behind the connection does not keep them. */
  stop(): void {
    this.#given = false;
    this.#bySql.clear();
    this.#octets = 0;
  }

  /**
   * Close is a message of the protocol, which a pooler understands; DEALLOCATE is a text that it passes to any session. It is sent
   * in front of the next Parse only, because a pooler keeps a session for whoever sent a message without its Sync.
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
