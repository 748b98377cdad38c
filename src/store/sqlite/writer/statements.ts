/**
 * The writer's prepared statements; all return arrays. Those of a table are prepared when it is first written: to prepare them all took a
 * fifth of the start of the thread, and most tables of most programs are never written.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { rowColumns } from '../../kept-row.ts';
import { quoteName } from '../../quote-name.ts';
import { eventsTable } from '../../store.ts';
import { purgedCounter, purgedCounterName } from '../../version-text.ts';
import { valueSql } from '../compile/value.ts';
import type { Layout } from '../table-layout.ts';

/** A reference from another table to this one, which blocks the removal of a row. */
export type Dependant = { readonly table: string; readonly field: string; readonly count: StatementSync };

export type TableStatements = {
  readonly layout: Layout;
  /** Row of comity_counters. */
  readonly number: number;
  readonly searched: boolean;
  readonly insert: StatementSync;
  readonly update: StatementSync;
  readonly remove: StatementSync;
  readonly current: StatementSync;
  /** Finds an undeleted row. */
  readonly live: StatementSync;
  /** Returns the revision of the row if it was removed. */
  readonly removeOld: StatementSync;
  readonly dependants: readonly Dependant[];
  /** Index of the target table by reference field. */
  readonly references: ReadonlyMap<string, number>;
};

export type Statements = {
  /** By the position of the table's layout. */
  at(position: number): TableStatements | undefined;
  /** By the table's name. */
  of(table: string): TableStatements | undefined;
  readonly insertEvent: StatementSync;
  readonly events: TableStatements;
  readonly setCounter: StatementSync;
  /** Raises the revision of the purged events. */
  readonly raisePurged: StatementSync;
};

export function prepareStatements(
  database: DatabaseSync,
  layouts: readonly Layout[],
  numbers: ReadonlyMap<string, number>,
): Statements {
  const prepare = (sql: string): StatementSync => {
    const statement = database.prepare(sql);
    statement.setReturnArrays(true);
    return statement;
  };
  const prepared = new Map<number, TableStatements>();
  const at = (position: number): TableStatements | undefined => {
    const layout = layouts[position];
    if (layout === undefined) return undefined;
    let found = prepared.get(position);
    if (found === undefined) {
      found = prepareTable(prepare, layout, layouts, numbers);
      prepared.set(position, found);
    }
    return found;
  };
  const of = (table: string): TableStatements | undefined => at(positionOf(layouts, table));
  const events = of(eventsTable);
  if (events === undefined) throw new TypeError('the layouts lack the table of events');
  return {
    at,
    of,
    events,
    insertEvent: prepare(
      `INSERT INTO ${quoteName(eventsTable)} (id, type, collection, owner, document, former, doc, created_at, updated_at, rev)
       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9) ON CONFLICT (id) DO NOTHING`,
    ),
    setCounter: prepare('UPDATE comity_counters SET rev = ? WHERE n = ?'),
    raisePurged: prepare(
      `INSERT INTO comity_counters (n, name, rev) VALUES (${purgedCounter}, '${purgedCounterName}', ?)
       ON CONFLICT (n) DO UPDATE SET rev = max(rev, excluded.rev)`,
    ),
  };
}

function positionOf(layouts: readonly Layout[], table: string): number {
  return layouts.findIndex((layout) => layout.table.name === table);
}

function prepareTable(
  prepare: (sql: string) => StatementSync,
  layout: Layout,
  layouts: readonly Layout[],
  numbers: ReadonlyMap<string, number>,
): TableStatements {
  const { name, table } = layout;
  const columns = ['doc', 'owner', 'created_at', 'updated_at', 'deleted_at', 'rev'];
  if (table.searched) columns.push('search');
  const marks = columns.map(() => '?').join(', ');
  // Units append and remove events, but never insert them like rows: these statements lack the columns type and collection.
  const insertable = table.name !== eventsTable;
  return {
    layout,
    number: numbers.get(table.name) ?? 0,
    searched: table.searched,
    insert: insertable
      ? prepare(
          `INSERT INTO ${name} (${columns.join(', ')}, id) VALUES (${marks}, ?) ON CONFLICT (id) DO NOTHING`,
        )
      : prepare('SELECT 1'),
    update: prepare(
      `UPDATE ${name} SET ${columns.map((column) => `${column} = ?`).join(', ')} WHERE id = ? AND rev = ?`,
    ),
    remove: prepare(`DELETE FROM ${name} WHERE id = ? AND rev = ?`),
    current: prepare(`SELECT ${rowColumns} FROM ${name} WHERE id = ?`),
    live: prepare(`SELECT 1 FROM ${name} WHERE id = ? AND deleted_at IS NULL`),
    removeOld: prepare(`DELETE FROM ${name} WHERE id = ? AND updated_at < ? RETURNING rev`),
    dependants: dependantsOf(prepare, layout, layouts),
    references: new Map(
      table.references.map((reference) => [reference.field.name, positionOf(layouts, reference.table)]),
    ),
  };
}

function dependantsOf(
  prepare: (sql: string) => StatementSync,
  layout: Layout,
  layouts: readonly Layout[],
): readonly Dependant[] {
  const dependants: Dependant[] = [];
  for (const other of layouts) {
    for (const { field, table } of other.table.references) {
      if (table !== layout.table.name) continue;
      // A reference to itself does not block the removal of a row.
      const others = other === layout ? ' AND id <> ?1' : '';
      dependants.push({
        table: other.table.name,
        field: field.name,
        count: prepare(
          `SELECT count(*) FROM ${other.name} WHERE ${valueSql(field)} = ?1 AND deleted_at IS NULL${others}`,
        ),
      });
    }
  }
  return dependants;
}
