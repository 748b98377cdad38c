/** The event log (§6) in (rev, id) order. Revisions are assigned within the committing transaction, so a tail skips nothing. */

import type { SQLOutputValue } from 'node:sqlite';
import type { Party } from '../../model/fair-queue.ts';
import type { Filter } from '../../model/filter.ts';
import type { SqlValue } from '../field-value.ts';
import { shapeFilter } from '../filter-shape.ts';
import { OctetTaking } from '../page-of-rows.ts';
import { eventsTable, type LogPosition, type MaybePromise, type TailEntry } from '../store.ts';

import type { Cells } from './cells.ts';
import { conditionOf, encoding, tickSql } from './compile/filter.ts';
import { plannedLimit } from './compile/select.ts';
import type { ReaderPool } from './reader/pool.ts';
import type { Snapshot } from './snapshot.ts';

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
  const sql = `SELECT id, rev, type, collection, owner, doc, document, former FROM ${log}
    WHERE ${timed}deleted_at IS NULL AND (rev, id) > (?, ?)${condition}${upTo} ORDER BY rev, id ${plannedLimit}`;
  const octets = { column: docColumn, rowsMax: limit, bytesMax, looksBeyond: false };
  if (near) {
    return snapshot.run(() => {
      const taking = new OctetTaking(octets);
      taking.takeFrom(snapshot.prepare(sql).iterate(...parameters) as unknown as Iterable<Cells>);
      return (taking.rows as readonly Cells[]).map(entryOf);
    });
  }
  const options = { octets, party: query.party };
  return readers.read(sql, parameters, tableNumber, options).then(({ rows }) => rows.map(entryOf));
}

/** True if the filter parses no document: parsing one of 1 MB takes 5 ms, and each stream filters each event. */
function hasColumnsOnly(filter: Filter): boolean {
  if (filter.op === 'related') return false;
  if ('field' in filter) return filter.field.column !== undefined;
  if ('filters' in filter) return filter.filters.every(hasColumnsOnly);
  return filter.op === 'not' ? hasColumnsOnly(filter.filter) : filter.op !== 'search';
}

const docColumn = 5;

function entryOf(cells: readonly SQLOutputValue[]): TailEntry {
  return {
    id: cells[0] as string,
    rev: cells[1] as number,
    type: cells[2] as string,
    collection: cells[3] as string,
    owner: cells[4] as string | null,
    doc: cells[docColumn] as string,
    document: cells[6] as string | null,
    former: cells[7] as string | null,
  };
}
