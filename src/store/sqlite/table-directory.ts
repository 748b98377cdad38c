/**
 * What each operation needs of a table, by its name. Made once when the store opens, so that a read builds no SQL and looks
 * up one name.
 */
import { rowColumns } from '../row-cells.ts';
import type { Layout } from './layout.ts';
import type { TableNumbers } from './reconcile.ts';

export type TableEntry = {
  readonly layout: Layout;
  /** The table's number in the counters, under which its version is kept. */
  readonly tableNumber: number;
  /** Reads one row by its id. */
  readonly readSql: string;
};

/** Looks a table up. @throws TypeError when no table has the name */
export type TableDirectory = (name: string) => TableEntry;

export function tableDirectory(layouts: readonly Layout[], numbers: TableNumbers): TableDirectory {
  const tables = new Map<string, TableEntry>(
    layouts.map((layout) => {
      const { name } = layout.table;
      const readSql = `SELECT ${rowColumns} FROM ${layout.name} WHERE id = ?`;
      return [name, { layout, tableNumber: numbers.get(name) ?? 0, readSql }];
    }),
  );
  return (name) => {
    const table = tables.get(name);
    if (table === undefined) throw new TypeError(`no table is named ${name}`);
    return table;
  };
}
