/**
 * How a table of the contract stands in the file that holds a whole store: the one that the embedded store serves from, which is
 * also what a backup of either engine is. Indexes are not told here: the embedded store makes them when it
 * opens a file (sqlite/reconcile.ts), so a file needs none to be whole.
 *
 * A row has a rowid besides its id, so that a long document does not swell the tree that ids are found in. `doc` stands
 * last but for the search text, so that reading the small columns never touches overflow pages.
 */
import { quoteName } from '../quote-name.ts';
import { eventsTable } from '../store.ts';

/** What decides the columns of a table. */
export type FileTable = {
  readonly name: string;
  /** Whether rows carry search text. */
  readonly searched: boolean;
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

/** Of the table of the events alone. */
const eventColumns: readonly Column[] = [
  ['type', 'TEXT NOT NULL'],
  ['collection', 'TEXT NOT NULL'],
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
  columns.push(['doc', 'TEXT NOT NULL']);
  if (table.searched) columns.push(['search', 'TEXT']);
  return columns;
}
