/**
 * The prepared statements of one session by their texts, bounded in number and length; the least recently used is closed first.
 * A name depends only on the text. Behind a pooler without support for prepared statements two of Comity's connections may use the same
 * session: under a name they find nothing or the same text, never another statement. Both cases are noticed (26000, 42P05), and the
 * connection continues without names.
 */
import { hash } from 'node:crypto';
import type { Client } from 'pg';
import { memoryBounds } from '../../../memory/bounds.ts';
import { octetsOfText } from '../../../memory/octet-cache.ts';

export type Statement = {
  readonly name: string;
  readonly sql: string;
  /** Calls under way that use it; above 0, the statement is not closed. */
  callsInFlight: number;
  lastUse: number;
};

/** What `pg` records of names, and never forgets by itself. */
type Bookkeeping = {
  readonly parsedStatements: Record<string, string>;
  readonly submittedNamedStatements: Record<string, string>;
};

const octetsMax = memoryBounds.postgresStatements.octets;

/** Counts the text as the key here, and as kept by `pg`. */
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
