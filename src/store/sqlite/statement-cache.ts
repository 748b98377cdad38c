/**
 * Prepared statements by their text, the least recently used dropped above a bound. Plans of the same shape share a
 * statement, because values are always parameters.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';

export class StatementCache {
  readonly #database: DatabaseSync;
  readonly #statementsMax: number;
  readonly #statements = new Map<string, StatementSync>();

  constructor(database: DatabaseSync, statementsMax: number) {
    this.#database = database;
    this.#statementsMax = statementsMax;
  }

  /** The statement, which returns rows as arrays. */
  prepare(sql: string): StatementSync {
    const kept = this.#statements.get(sql);
    if (kept !== undefined) {
      this.#statements.delete(sql);
      this.#statements.set(sql, kept);
      return kept;
    }
    const statement = this.#database.prepare(sql);
    statement.setReturnArrays(true);
    this.#statements.set(sql, statement);
    if (this.#statements.size > this.#statementsMax) {
      for (const oldest of this.#statements.keys()) {
        // Left to the garbage collector, not closed: a caller may be about to run it.
        this.#statements.delete(oldest);
        break;
      }
    }
    return statement;
  }
}
