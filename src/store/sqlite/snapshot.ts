/**
 * Reads on the calling thread. The first read of a turn of the event loop opens a read transaction, which ends with the turn: taking and
 * releasing WAL's read lock by two system calls was two thirds of a point read (6.1 µs against 2.2 µs). A commit in the same turn, by
 * whichever thread, ends it too, so a read sees every unit that was acknowledged before.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { memoryBounds } from '../../memory/bounds.ts';
import { OctetCache, octetsOfText } from '../../memory/octet-cache.ts';
import type { Party } from '../../model/fair-queue.ts';
import type { Filter } from '../../model/filter.ts';
import type { SqlValue } from '../field-value.ts';
import { shapeFilter } from '../filter-shape.ts';
import { OctetTaking } from '../page-of-rows.ts';
import { laterVersion, versionText } from '../revision.ts';
import {
  type Change,
  eventsTable,
  type LogPosition,
  type MaybePromise,
  type Row,
  StoreUnavailable,
  type TailEntry,
  tailColumns,
  tailEntryOf,
  type Unit,
} from '../store.ts';
import { conditionOf, encoding, tickSql } from './compile/filter.ts';
import { plannedLimit } from './compile/select.ts';
import { asStoreError, type Cells, faultOf, messageOf, StatementCache } from './connection.ts';
import { commitsAt, type Damage, type HomeState } from './home-state.ts';
import type { ReaderPool } from './reader/pool.ts';

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

/*
 * Rows that were read by id, as they are at one revision of the file: within a snapshot of that revision a read needs no
 * statement (0.2 µs instead of 1.6). Every transaction raises the revision in the file, so a snapshot of another one shows
 * that something was committed:
 * - units of this store: once their commit is known, `committed` drops the rows that they name and follows the revision;
 * - while a commit of this store is under way: the snapshot may contain it, and reads past the kept rows;
 * - anything else, such as a purge or the units of another worker: all rows are dropped.
 * Absent rows are not kept.
 */

type Kept = { readonly tableNumber: number; readonly row: Row };

/** The objects of one row. */
const keptOctets = 256;

export class KeptRows {
  /** By id alone, which saves a text for each read: of two tables with the same id, the row read last is kept. */
  readonly #rows = new OctetCache<Kept>({
    octetsMax: memoryBounds.sqliteRows.octets,
    octetsOf: ({ row }) => keptOctets + octetsOfText(row.doc) + octetsOfText(row.owner ?? ''),
  });
  #revision = 0;

  /** True if rows of a snapshot of this revision may be taken and kept. */
  areAt(revision: number, isCommitting: boolean): boolean {
    if (revision === this.#revision) return true;
    if (isCommitting) return false;
    this.#rows.clear();
    this.#revision = revision;
    return true;
  }

  take(tableNumber: number, id: string): Row | undefined {
    const kept = this.#rows.get(id);
    return kept?.tableNumber === tableNumber ? kept.row : undefined;
  }

  keep(tableNumber: number, row: Row): void {
    this.#rows.set(row.id, { tableNumber, row });
  }

  /** @param units refused ones too; the others have the revisions from `firstRev` to `lastRev` */
  committed(units: readonly Unit[], firstRev: number, lastRev: number): void {
    if (lastRev <= this.#revision) return;
    if (firstRev !== this.#revision + 1) this.#rows.clear();
    else {
      for (const { changes } of units) {
        for (const change of changes) if (mayBeKept(change)) this.#rows.delete(change.id);
      }
    }
    this.#revision = lastRev;
  }
}

/** False for a new row, which was absent, and for one that stays as it is: a create asks neither map (2 % of the event loop). */
function mayBeKept({ expect, stays }: Change): boolean {
  return 'rev' in expect && stays !== true;
}

/* The event log (§6) in (rev, id) order. Revisions are assigned within the committing transaction, so a tail skips nothing. */

/** Distance from the head, in revisions, up to which a tail with a filter on columns is read on the calling thread. */
const revisionsOnCallerMax = 256;

const log = `"${eventsTable}" INDEXED BY "${eventsTable}.index[""rev""]"`;
const headSql = `SELECT rev, id FROM ${log} WHERE deleted_at IS NULL ORDER BY rev DESC, id DESC LIMIT 1`;

export function readHead(snapshot: Snapshot): LogPosition {
  return snapshot.run(() => {
    const row = snapshot.prepare(headSql).get() as unknown as readonly [number, string] | undefined;
    return row === undefined ? { rev: 0, id: '' } : positionOf(row);
  });
}

const stretchSql = `SELECT rev, id FROM (SELECT rev, id FROM ${log} WHERE deleted_at IS NULL AND (rev, id) > (?, ?) ORDER BY rev, id LIMIT ?)
  ORDER BY rev DESC, id DESC LIMIT 1`;

export function readStretch(snapshot: Snapshot, after: LogPosition, eventsMax: number): LogPosition {
  return snapshot.run(() => {
    const row = snapshot.prepare(stretchSql).get(after.rev, after.id, eventsMax);
    return row === undefined ? after : positionOf(row as unknown as readonly [number, string]);
  });
}

function positionOf([rev, id]: readonly [number, string]): LogPosition {
  return { rev, id };
}

export function readFormer(snapshot: Snapshot, id: string): string | null {
  return snapshot.run(() => {
    const row = snapshot.prepare(`SELECT former FROM "${eventsTable}" WHERE id = ?`).get(id);
    return (row as unknown as readonly [string | null] | undefined)?.[0] ?? null;
  });
}

export function readTail(
  snapshot: Snapshot,
  readers: ReaderPool,
  tableNumber: number,
  query: {
    readonly after: LogPosition;
    readonly filter: Filter;
    readonly limit: number;
    readonly bytesMax: number;
    readonly party: Party | undefined;
    readonly until: LogPosition | undefined;
  },
): MaybePromise<readonly TailEntry[]> {
  const { after, filter, limit, bytesMax, until } = query;
  if (filter.op === 'never') return [];
  const near =
    filter.op === 'always' ||
    (hasColumnsOnly(filter) && readHead(snapshot).rev - after.rev <= revisionsOnCallerMax);
  const parameters: SqlValue[] = [after.rev, after.id];
  const condition =
    filter.op === 'always'
      ? ''
      : ` AND ${conditionOf(shapeFilter(filter, encoding), parameters, `"${eventsTable}"`)}`;
  const timed = near ? '' : `${tickSql} AND `;
  const upTo = until === undefined ? '' : ' AND (rev, id) <= (?, ?)';
  if (until !== undefined) parameters.push(until.rev, until.id);
  parameters.push(limit);
  const sql = `SELECT ${tailColumns} FROM ${log}
    WHERE ${timed}deleted_at IS NULL AND (rev, id) > (?, ?)${condition}${upTo} ORDER BY rev, id ${plannedLimit}`;
  const octets = { column: docColumn, rowsMax: limit, bytesMax, looksBeyond: false };
  if (near) {
    return snapshot.run(() => {
      const taking = new OctetTaking(octets);
      taking.takeFrom(snapshot.prepare(sql).iterate(...parameters) as unknown as Iterable<Cells>);
      return (taking.rows as readonly Cells[]).map(tailEntryOf);
    });
  }
  const options = { octets, party: query.party };
  return readers.read(sql, parameters, tableNumber, options).then(({ rows }) => rows.map(tailEntryOf));
}

/** True if the filter parses no document: parsing one of 1 MB takes 5 ms, and each stream filters each event. */
function hasColumnsOnly(filter: Filter): boolean {
  if (filter.op === 'related') return false;
  if ('field' in filter) return filter.field.column !== undefined;
  if ('filters' in filter) return filter.filters.every(hasColumnsOnly);
  return filter.op === 'not' ? hasColumnsOnly(filter.filter) : filter.op !== 'search';
}

const docColumn = 5;
