/**
 * The SQL value of a field. A field's value is what stands at its path when it is of the field's type, and null otherwise: the
 * `CASE` keeps `true` from passing for 1 and an array for its JSON text, and numbers are doubles as in
 * JSON.parse: SQLite would keep 2^60 exact as an integer, unequal to itself as JavaScript writes it. Filters, sorts and
 * indexes use the very same text, which is how SQLite recognises an expression index.
 */
import type { Field } from '../../../model/field.ts';
import { columnNames, kindOf } from '../../field-value.ts';
import { quoteText } from '../identifier.ts';

/** The JSON path as an SQL literal. SQLite takes JSON escapes within a quoted label, so no name breaks out. */
export function pathLiteral(field: Field): string {
  let path = '$';
  for (const label of field.path) path += `.${JSON.stringify(label)}`;
  return quoteText(path);
}

export function valueSql(field: Field): string {
  if (field.column !== undefined) return columnNames[field.column];
  const path = pathLiteral(field);
  switch (kindOf(field)) {
    case 'boolean':
      return `CASE json_type(doc,${path}) WHEN 'true' THEN 1 WHEN 'false' THEN 0 END`;
    case 'number':
      return `CASE WHEN json_type(doc,${path}) IN ('integer','real') THEN CAST(json_extract(doc,${path}) AS REAL) END`;
    case 'text':
    case 'time':
      return `CASE json_type(doc,${path}) WHEN 'text' THEN json_extract(doc,${path}) END`;
    case 'none':
      return `nullif(json_type(doc,${path}),'null')`;
  }
}
