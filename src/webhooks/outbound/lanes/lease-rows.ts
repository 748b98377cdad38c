/** The rows of leases, as values and back: one for each process, and one that says whose each lane is. */
import { always, byId } from '../../../model/filter.ts';
import type { Change, NextRow, Plan, Row, Store } from '../../../store/store.ts';
import { lanesTable } from '../tables.ts';
import { laneCount } from './lane-of.ts';

/** Far more processes than there are lanes. */
const rowsMax = 1024;
const assignmentId = 'assignment';
const processPrefix = 'process/';

/** Which process: `pid` and `startedAt` tell lives of one host apart. `startedAt` is in milliseconds since the epoch. */
export type Holder = { readonly host: string; readonly pid: number; readonly startedAt: number };

export type ProcessRow = {
  readonly id: string;
  readonly rev: number;
  readonly holder: Holder;
  /** When it took up sending, on its clock. */
  readonly joinedAt: number;
};

export type LeaseTable = {
  readonly processes: ReadonlyMap<string, ProcessRow>;
  /** For each lane the id of the row of its process; null: nobody's. */
  readonly lanes: readonly (string | null)[];
  /** Undefined: nobody has written it yet. */
  readonly lanesRev: number | undefined;
};

/** Each is a process of its own, also where one process takes up sending again after it was given up. */
export function processId({ host, pid, startedAt }: Holder, life: number): string {
  return `${processPrefix}${host}:${pid}:${startedAt}:${life}`;
}

export function leasePlan(store: Pick<Store, 'plan'>): Plan {
  return store.plan({ table: lanesTable, filter: always, sort: byId, limit: rowsMax });
}

export function leaseTableOf(rows: readonly Row[]): LeaseTable {
  const processes = new Map<string, ProcessRow>();
  let lanes: readonly (string | null)[] = new Array<null>(laneCount).fill(null);
  let lanesRev: number | undefined;
  for (const { id, rev, doc } of rows) {
    if (id === assignmentId) {
      lanes = (JSON.parse(doc) as { readonly lanes: readonly (string | null)[] }).lanes;
      lanesRev = rev;
    } else {
      const { holder, joinedAt } = JSON.parse(doc) as Pick<ProcessRow, 'holder' | 'joinedAt'>;
      processes.set(id, { id, rev, holder, joinedAt });
    }
  }
  return { processes, lanes, lanesRev };
}

/** @param rev undefined for a row that is made */
export function processChange(
  { id, rev, holder, joinedAt }: Omit<ProcessRow, 'rev'> & { readonly rev: number | undefined },
  at: number,
): Change {
  return changeTo(id, rev, nextRow(JSON.stringify({ holder, joinedAt }), joinedAt, at));
}

export function processEnd({ id, rev }: Pick<ProcessRow, 'id' | 'rev'>): Change {
  return changeTo(id, rev, null);
}

export function lanesChange(
  { lanesRev }: Pick<LeaseTable, 'lanesRev'>,
  lanes: LeaseTable['lanes'],
  at: number,
): Change {
  return changeTo(assignmentId, lanesRev, nextRow(JSON.stringify({ lanes }), at, at));
}

function changeTo(id: string, rev: number | undefined, next: NextRow | null): Change {
  return { table: lanesTable, id, expect: rev === undefined ? { absent: true } : { rev }, next };
}

function nextRow(doc: string, createdAt: number, updatedAt: number): NextRow {
  return { doc, owner: null, createdAt, updatedAt, deletedAt: null, search: null, references: [] };
}
