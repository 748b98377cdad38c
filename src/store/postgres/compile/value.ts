/**
 * The SQL value of a field: the value at its path if it has the field's type, otherwise null. A strict JSON path with its errors silenced
 * (no value, a member of an array) selects it, so that each value costs one parse of the document. Numbers are doubles as in JSON.parse,
 * texts compare by code point (`COLLATE "C"` in a UTF-8 database). Filters, sorts and indexes use the same text, by which PostgreSQL
 * recognises an expression index.
 */
import type { Field } from '../../../model/field.ts';
import { columnNames, kindOf } from '../../field-value.ts';
import { quoteText } from '../quote-text.ts';

/** @param of the table, with a dot, where a statement reads several */
export function valueSql(field: Field, of = ''): string {
  if (field.column !== undefined) return `${of}${columnNames[field.column]}`;
  switch (kindOf(field)) {
    case 'boolean':
      return `(${selected(field, ' ? (@.type() == "boolean")', of)}::boolean::int)`;
    case 'number':
      return `(${selected(field, ' ? (@.type() == "number")', of)}::float8)`;
    case 'text':
    case 'time':
      return `((${selected(field, ' ? (@.type() == "string")', of)} #>> '{}') COLLATE "C")`;
    case 'instant':
      return `(rtrim(${selected(field, ' ? (@.type() == "string")', of)} #>> '{}', '0Z') COLLATE "C")`;
    case 'none':
      return selected(field, ' ? (@ != null)', of);
  }
}

/** The number of a field as the decimal that the document shows. */
export function decimalSql(field: Field): string {
  if (field.column !== undefined) return `${columnNames[field.column]}::numeric`;
  return `(${selected(field, ' ? (@.type() == "number")')}::numeric)`;
}

/** The value at the field's path, of any type, as `jsonb`; SQL's null if there is none. */
export function memberSql(field: Field): string {
  return selected(field, '');
}

function selected(field: Field, condition: string, of = ''): string {
  let path = 'strict $';
  for (const label of field.path) path += `.${JSON.stringify(label)}`;
  return `jsonb_path_query_first(${of}${field.within ?? 'doc'}::jsonb, ${quoteText(path + condition)}, '{}', true)`;
}
