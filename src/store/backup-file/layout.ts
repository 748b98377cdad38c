/**
 * The tables of the file that holds a whole store: the embedded store's file, and a backup of either engine. Indexes are not part of it:
 * the embedded store creates them when it opens a file (sqlite/reconcile.ts).
 *
 * A row has a rowid besides its id, so that long documents do not enlarge the tree of ids. `doc` is last but for the search text, so that
 * reading the small columns never touches overflow pages.
 */
import { quoteName } from '../quote-name.ts';
import { eventsTable } from '../store.ts';

export type FileTable = {
  readonly name: string;
  /** True if rows carry search text. */
  readonly searched: boolean;
  /** True if events carry the id of their resource and its former representation; absent: no. Older files lack them. */
  readonly traced?: boolean;
};

type Column = readonly [name: string, declaration: string];

const firstColumns: readonly Column[] = [
  ['id', 'TEXT PRIMARY KEY NOT NULL'],
  ['rev', 'INTEGER NOT NULL'],
  ['owner', 'TEXT'],
  ['created_at', 'INTEGER NOT NULL'],
  ['updated_at', 'INTEGER NOT NULL'],
  ['deleted_at', 'INTEGER'],
];

const eventColumns: readonly Column[] = [
  ['type', 'TEXT NOT NULL'],
  ['collection', 'TEXT NOT NULL'],
];

/** Null in events of earlier versions, and in events about no resource; `former` is set by updates only. */
export const tracedColumns: readonly Column[] = [
  ['document', 'TEXT'],
  ['former', 'TEXT'],
];

/** Names of the columns in order; PostgreSQL's tables have the same. */
export function columnNamesOf(table: FileTable): readonly string[] {
  return columnsOf(table).map(([name]) => name);
}

export function createTableSql(table: FileTable): string {
  const columns = columnsOf(table).map((column) => column.join(' '));
  return `CREATE TABLE ${quoteName(table.name)} (\n  ${columns.join(',\n  ')}\n)`;
}

function columnsOf(table: FileTable): readonly Column[] {
  const columns = [...firstColumns];
  if (table.name === eventsTable) columns.push(...eventColumns);
  if (table.traced === true) columns.push(...tracedColumns);
  columns.push(['doc', 'TEXT NOT NULL']);
  if (table.searched) columns.push(['search', 'TEXT']);
  return columns;
}
