/** Prepared statements by their text, bounded by SQLite's memory for them. Queries of the same shape share a statement. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { OctetCache } from '../../memory/octet-cache.ts';

/**
 * SQLite's memory for a statement: 4,700 octets for a text of 157 characters, 7,000 for 442, 38,700 for 2,952; rounded up. The text is held
 * twice, by SQLite and as the key.
 */
const statementOctets = 4096;
const octetsPerCharacter = 13;

export class StatementCache {
  readonly #database: DatabaseSync;
  readonly #statements: OctetCache<StatementSync>;

  constructor(database: DatabaseSync, octetsMax: number) {
    this.#database = database;
    this.#statements = new OctetCache({
      octetsMax,
      octetsOf: (_, sql) => statementOctets + octetsPerCharacter * sql.length,
    });
  }

  /** Returns rows as arrays. A dropped statement is not closed: a caller may be about to run it. */
  prepare(sql: string): StatementSync {
    const kept = this.#statements.get(sql);
    if (kept !== undefined) return kept;
    const statement = this.#database.prepare(sql);
    statement.setReturnArrays(true);
    this.#statements.set(sql, statement);
    return statement;
  }

  /** Drops a statement that failed during iteration, because its next `iterate` would throw the same error again. */
  drop(sql: string): void {
    this.#statements.delete(sql);
  }
}
