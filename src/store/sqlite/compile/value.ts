/**
 * The SQL value of a field: the value at its path if it has the field's type, otherwise null. The `CASE` prevents `true` from passing for 1
 * and an array for its JSON text. Numbers are doubles as in JSON.parse: SQLite would keep 2^60 exact as an integer, unequal to what
 * JavaScript writes. Filters, sorts and indexes use the same text, by which SQLite recognises an expression index.
 * The writer's thread imports this file, and must not load the stemmers, which filters of words need.
 */
import type { Field } from '../../../model/field.ts';
import { columnNames, kindOf } from '../../field-value.ts';

/** The column with the text in which the field's path begins. */
export function textColumn({ within }: Field): string {
  return within ?? 'doc';
}

/** The JSON path as an SQL literal. SQLite accepts JSON escapes in a quoted label, so no name can end the literal. */
export function pathLiteral(field: Field): string {
  let path = '$';
  for (const label of field.path) path += `.${JSON.stringify(label)}`;
  return quoteText(path);
}

/** @param of the table, with a dot, where a statement reads several */
export function valueSql({ folded, period, ...field }: Field, of = ''): string {
  if (period !== undefined)
    return `comity_period(${valueSql(field, of)},${quoteText(period.unit)},${quoteText(period.timeZone)})`;
  if (folded === true) return `comity_fold(${valueSql(field, of)})`;
  if (field.column !== undefined) return `${of}${columnNames[field.column]}`;
  const at = `${of}${textColumn(field)},${pathLiteral(field)}`;
  switch (kindOf(field)) {
    case 'boolean':
      return `CASE json_type(${at}) WHEN 'true' THEN 1 WHEN 'false' THEN 0 END`;
    case 'number':
      return `CASE WHEN json_type(${at}) IN ('integer','real') THEN CAST(json_extract(${at}) AS REAL) END`;
    case 'text':
    case 'time':
      return `CASE json_type(${at}) WHEN 'text' THEN json_extract(${at}) END`;
    case 'instant':
      return `CASE json_type(${at}) WHEN 'text' THEN rtrim(json_extract(${at}),'0Z') END`;
    case 'none':
      return `nullif(json_type(${at}),'null')`;
  }
}

/** Quotes what must be a literal: paths and marks in indexes. Values from clients are always bound as parameters. */
function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** True for texts made by the declaration of the mark. */
export function isMarked(column: string, mark: string): string {
  return `substr(${column},1,${mark.length})=${quoteText(mark)}`;
}
