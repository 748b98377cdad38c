/**
 * The event log (§6): entries in (rev, id) order. Revisions are given out inside the one transaction that commits them,
 * so the order of revisions is the order of becoming visible and a tail can skip nothing.
 */
import type { SQLOutputValue } from 'node:sqlite';
import type { Filter } from '../../model/filter.ts';
import type { SqlValue } from '../field-value.ts';
import type { LogPosition, MaybePromise, TailEntry } from '../store.ts';
import { eventsTable } from '../store.ts';
import type { Cells } from './cells.ts';
import { compileFilter } from './compile/filter.ts';
import { tickSql } from './compile/select.ts';
import type { ReaderPool } from './reader/pool.ts';
import type { Snapshot } from './snapshot.ts';

/** Revisions behind the head up to which a filtered tail is read on the calling thread. */
const revisionsOnCallerMax = 256;

const log = `"${eventsTable}" INDEXED BY "${eventsTable}.index[""rev""]"`;
const headSql = `SELECT rev, id FROM ${log} WHERE deleted_at IS NULL ORDER BY rev DESC, id DESC LIMIT 1`;

export function readHead(snapshot: Snapshot): LogPosition {
  return snapshot.run(() => {
    const row = snapshot.prepare(headSql).get() as unknown as readonly [number, string] | undefined;
    return row === undefined ? { rev: 0, id: '' } : { rev: row[0], id: row[1] };
  });
}

export function readTail(
  snapshot: Snapshot,
  readers: ReaderPool,
  tableNumber: number,
  query: { readonly after: LogPosition; readonly filter: Filter; readonly limit: number },
): MaybePromise<readonly TailEntry[]> {
  const { after, filter, limit } = query;
  if (filter.op === 'never') return [];
  const near = filter.op === 'always' || readHead(snapshot).rev - after.rev <= revisionsOnCallerMax;
  const parameters: SqlValue[] = [after.rev, after.id];
  const condition = filter.op === 'always' ? '' : ` AND ${compileFilter(filter, parameters)}`;
  const timed = near ? '' : ` AND ${tickSql}`;
  parameters.push(limit);
  const sql = `SELECT id, rev, type, collection, owner, doc FROM ${log}
    WHERE deleted_at IS NULL AND (rev, id) > (?, ?)${condition}${timed} ORDER BY rev, id LIMIT ?`;
  if (near) {
    return snapshot.run(() =>
      snapshot
        .prepare(sql)
        .all(...parameters)
        .map((row) => entryOf(row as unknown as Cells)),
    );
  }
  return readers.read(sql, parameters, tableNumber).then(({ rows }) => rows.map(entryOf));
}

function entryOf(cells: readonly SQLOutputValue[]): TailEntry {
  return {
    id: cells[0] as string,
    rev: cells[1] as number,
    type: cells[2] as string,
    collection: cells[3] as string,
    owner: cells[4] as string | null,
    doc: cells[5] as string,
  };
}
