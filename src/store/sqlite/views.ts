/**
 * The views of collections in SQLite. A value that does not have the type of its field, as in documents of an earlier schema, is null. SQLite
 * finds what a view names when it is read, so a view that someone built upon one of these never stands in the way.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Field } from '../../model/field.ts';
import { kindOf } from '../field-value.ts';
import { quoteName } from '../quote-name.ts';
import type { Table } from '../store.ts';
import { viewColumns, viewName } from '../view-columns.ts';
import { pathLiteral, valueSql } from './compile/value.ts';
import { inTransaction } from './in-transaction.ts';

/** Replaces views that differ from the declaration, and leaves others of the same name that are not its own. */
export function reconcileViews(database: DatabaseSync, tables: readonly Table[]): void {
  const find = database.prepare('SELECT sql FROM sqlite_schema WHERE name = ?');
  for (const table of tables) {
    if (table.view !== true) continue;
    const name = viewName(table);
    const sql = createViewSql(table);
    const found = find.get(name)?.sql;
    if (found === sql || (found !== undefined && !String(found).includes(ownMark))) continue;
    inTransaction(database, () => database.exec(`DROP VIEW IF EXISTS ${quoteName(name)}; ${sql}`));
  }
}

/** SQLite keeps the comment with the view, by which it is known. */
const ownMark = '/* kept by comity */';

function createViewSql(table: Table): string {
  const columns = [
    'id',
    'owner',
    `json_extract(doc,'$.createdAt') AS created_at`,
    `json_extract(doc,'$.updatedAt') AS updated_at`,
    ...viewColumns(table).map(({ name, field }) => `${columnSql(field)} AS ${quoteName(name)}`),
  ];
  return `CREATE VIEW ${quoteName(viewName(table))} AS ${ownMark} SELECT ${columns.join(', ')} FROM ${quoteName(table.name)} WHERE deleted_at IS NULL`;
}

function columnSql(field: Field): string {
  const path = pathLiteral(field);
  if (kindOf(field) === 'none') return `nullif(doc -> ${path},'null')`;
  if (kindOf(field) === 'instant') return instantSql(valueSql(field));
  if (field.type === 'integer') {
    return `CASE json_type(doc,${path}) WHEN 'integer' THEN json_extract(doc,${path}) END`;
  }
  return valueSql(field);
}

/** The shortest kept spelling, which equal instants share. Text that is not kept so, as in documents of an earlier version, is null. */
function instantSql(key: string): string {
  const seconds = '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].';
  const isKept = `${key} GLOB '${seconds}*' AND substr(${key},21) NOT GLOB '*[^0-9]*'`;
  return `CASE WHEN ${isKept} THEN substr(${key}||'000',1,max(23,length(${key})))||'Z' END`;
}
