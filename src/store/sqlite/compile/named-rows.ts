/** The parts of statements that begin with the rows that references name (store/related-drive.ts). */
import { levelWithin, type ValueSlot } from '../../filter-shape.ts';
import { quoteName } from '../../quote-name.ts';
import type { Drive, Source } from '../../related-drive.ts';
import type { Layout } from '../table-layout.ts';
import { compileFilter, tickSql } from './filter.ts';
import { valueSql } from './value.ts';

/** The ids of a parameter. */
export const namedBy = '(SELECT value FROM json_each(?))';

/** The rows of the list that refer to the named ones, from FROM on. @param named a list in parentheses */
export function referringSql(layout: Layout, { index, field }: Drive<Layout>, named: string): string {
  return `FROM ${layout.name} INDEXED BY ${quoteName(index)} WHERE deleted_at IS NULL AND ${valueSql(field)} IN ${named}`;
}

/** Selects the ids of the named rows. @param outer the quoted name of the table whose rows refer to them */
export function namedSql(
  { layout, index, field, by, rest }: Source<Layout>,
  parameters: { push(slot: ValueSlot): unknown },
  outer: string,
): string {
  const level = levelWithin(outer);
  const value = valueSql(field, `${level}.`);
  // An index has the id: a row is read for further conditions alone.
  const tick = rest.length === 0 ? '((rowid & 15) OR comity_tick())' : tickSql;
  const conditions = [tick, `${level}.deleted_at IS NULL`];
  if ('source' in by) conditions.push(`${value} IN (${namedSql(by.source, parameters, level)})`);
  else {
    parameters.push(by);
    conditions.push(`${value} = ?`);
  }
  for (const part of rest) conditions.push(compileFilter(part, parameters, level));
  return `SELECT ${level}.id FROM ${layout.name} AS ${level} INDEXED BY ${quoteName(index)} WHERE ${conditions.join(' AND ')}`;
}

/** True in SQL if the reference of a row names one of these rows; their index alone shows it, because it ends with the id. */
export function namesSql(
  { field: reference, source: { layout, index, field } }: Drive<Layout>,
  by: ValueSlot,
  parameters: { push(slot: ValueSlot): unknown },
  outer: string,
): string {
  const level = levelWithin(outer);
  parameters.push(by);
  return `EXISTS (SELECT 1 FROM ${layout.name} AS ${level} INDEXED BY ${quoteName(index)} WHERE ${level}.deleted_at IS NULL AND ${valueSql(field, `${level}.`)} = ? AND ${level}.id = ${valueSql(reference, `${outer}.`)})`;
}
