/**
 * Reads on the calling thread. The first read of a turn of the event loop opens a read transaction, which ends with the turn: taking and
 * releasing WAL's read lock by two system calls was two thirds of a point read (6.1 µs against 2.2 µs). A commit in the same turn, by
 * whichever thread, ends it too, so a read sees every unit that was acknowledged before.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { memoryBounds } from '../../memory/bounds.ts';
import { StoreUnavailable } from '../store.ts';
import { laterVersion, versionText } from '../version-text.ts';
import { commitsAt, type HomeState } from './home-state.ts';
import type { Damage } from './integrity.ts';
import { asStoreError, faultOf, messageOf } from './sqlite-failure.ts';
import { StatementCache } from './statement-cache.ts';

export class Snapshot {
  readonly #database: DatabaseSync;
  readonly #damage: Damage;
  readonly #state: HomeState;
  readonly #statements: StatementCache;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #version: StatementSync;
  /** By number of the table. No map: each `clear` of one leaves a table of 150 octets to the full collection, whose entries it keeps alive. */
  #versions: (string | undefined)[] = [];
  readonly #end = (): void => {
    this.#scheduled = false;
    this.end();
  };
  #revision: number | undefined;
  #open = false;
  /** The count of commits when it began. */
  #commits = 0;
  #scheduled = false;
  #closed = false;

  constructor(database: DatabaseSync, damage: Damage, state: HomeState) {
    this.#database = database;
    this.#damage = damage;
    this.#state = state;
    this.#statements = new StatementCache(database, memoryBounds.sqliteStatements.octets);
    this.#begin = database.prepare('BEGIN');
    this.#commit = database.prepare('COMMIT');
    this.#version = this.#statements.prepare('SELECT rev FROM comity_counters WHERE n = ?');
  }

  prepare(sql: string): StatementSync {
    this.#refuseClosed();
    return this.#statements.prepare(sql);
  }

  /** Runs reads in the snapshot of this turn. @throws StoreUnavailable if storage fails */
  run<T>(read: () => T): T {
    this.#refuseClosed();
    try {
      const commits = Atomics.load(this.#state, commitsAt);
      if (commits !== this.#commits) this.end();
      if (!this.#open) {
        this.#damage.refuse();
        this.#commits = commits;
        this.#begin.run();
        this.#open = true;
        if (!this.#scheduled) {
          this.#scheduled = true;
          setImmediate(this.#end);
        }
      }
      return read();
    } catch (error) {
      this.#damage.note(faultOf(error), messageOf(error));
      throw asStoreError(error);
    }
  }

  /** The version of a table; only within `run`. */
  version(tableNumber: number): string {
    const kept = this.#versions[tableNumber];
    if (kept !== undefined) return kept;
    const version = versionText(this.revisionOf(tableNumber));
    this.#versions[tableNumber] = version;
    return version;
  }

  /** The revision of a counter; only within `run`. */
  revisionOf(counter: number): number {
    return (this.#version.get(counter) as unknown as readonly number[] | undefined)?.[0] ?? 0;
  }

  /** The latest of the versions of the tables; only within `run`. */
  latestVersion(tableNumber: number, others: readonly number[]): string {
    return others.reduce(
      (latest, other) => laterVersion(latest, this.version(other)),
      this.version(tableNumber),
    );
  }

  /** The number of the last unit that the snapshot contains; only within `run`. */
  revision(): number {
    this.#revision ??= this.revisionOf(0);
    return this.#revision;
  }

  /** Ends the snapshot, so that the next read sees later commits. */
  end(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#versions = [];
    this.#revision = undefined;
    try {
      this.#commit.run();
    } catch (error) {
      // The end of a read fails too if a page is damaged. It has no caller to tell; the next read is refused.
      this.#damage.note(faultOf(error), messageOf(error));
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
    }
  }

  close(): void {
    this.end();
    this.#closed = true;
    this.#database.close();
  }

  #refuseClosed(): void {
    if (this.#closed) throw new StoreUnavailable('the store is closed');
  }
}
