/**
 * The values of a row by which it is unique, as the indexes of both engines hold them. They are read where a row is written or an import is
 * tried, never where one is read.
 */
import type { Field, Scalar } from '../model/field.ts';
import { foldCase } from '../model/fold-case.ts';
import { memberAt } from '../model/matches.ts';
import { instantKey } from '../model/timestamp.ts';
import { kindOf } from './field-value.ts';

/** What of a row its values are read from; one of no store has no times and no owner. */
type ValuedRow = {
  readonly id: string;
  readonly doc: string;
  readonly owner?: string | null;
  readonly createdAt?: number;
  readonly updatedAt?: number;
  readonly deletedAt?: number | null;
};

/** The values of each list of unique fields; undefined if one of them is null, which conflicts with none. */
export function uniqueValues(
  unique: readonly (readonly Field[])[],
  row: ValuedRow,
): readonly (readonly Scalar[] | undefined)[] {
  if (unique.length === 0) return [];
  const all = fieldValues(unique.flat(), row);
  let end = 0;
  return unique.map(({ length }) => {
    end += length;
    const values = all.slice(end - length, end);
    return values.includes(null) ? undefined : values;
  });
}

/** The values of fields as the database's indexes hold them: the value in the document if it has the field's type. */
export function fieldValues(fields: readonly Field[], row: ValuedRow): readonly Scalar[] {
  let resource: unknown;
  return fields.map((field) => {
    if (field.column !== undefined) return columnValue(field.column, row);
    resource ??= JSON.parse(row.doc);
    const value = memberAt(resource, field.path);
    const kind = kindOf(field);
    if (kind === 'text' && typeof value === 'string') return field.folded === true ? foldCase(value) : value;
    if (kind === 'instant' && typeof value === 'string') return instantKey(value);
    if (kind === 'number' && typeof value === 'number') return value;
    return kind === 'boolean' && typeof value === 'boolean' ? Number(value) : null;
  });
}

/** Columns of events are not in `Row`, and a rank is no column: none of them is unique or a reference. */
function columnValue(column: NonNullable<Field['column']>, row: ValuedRow): Scalar {
  return row[column as Exclude<keyof ValuedRow, 'doc'>] ?? null;
}
