/** What a range of a keyset position says of one key, in SQL. Values are those of the position's slots. */
import type { Bound, Range } from '../../keyset.ts';
import { typeOf } from './filter.ts';
import type { Parameters } from './parameters.ts';
import { inOne } from './steering.ts';
import { valueSql } from './value.ts';

/** @param alone how an equality is written: by `inOne` where true */
export function boundSql({ field, is, slot }: Bound, parameters: Parameters, alone: boolean): string {
  const value = valueSql(field);
  if (is === 'null') return `${value} IS NULL`;
  if (is === 'not-null') return `${value} IS NOT NULL`;
  const mark = parameters.addSlot(slot, typeOf(field, true));
  if (is === 'equal') return alone ? inOne(value, mark) : `${value} = ${mark}`;
  return `${value} ${is === 'above' ? '>' : '<'} ${mark}`;
}

/** All ranges as one condition, where they are not walked one after the other. */
export function anyRangeSql(ranges: readonly Range[], parameters: Parameters): string {
  const alternatives = ranges.map(({ bounds }) =>
    bounds.map((bound) => boundSql(bound, parameters, false)).join(' AND '),
  );
  return `(${alternatives.map((alternative) => `(${alternative})`).join(' OR ')})`;
}
