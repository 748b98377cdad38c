/**
 * The statement of a page along the index that serves it. The ranges beyond a key (keyset.ts) are the arms of a UNION ALL, each with
 * its order and its limit, so that each is one stretch of the index; the server runs them in turn, and none once the page
 * is full. The text is prepared, and steered so that the index is walked whatever the statistics say (steering.ts).
 *
 * An arm is ordered by all keys of the index but those that equal a value, which the planner knows to be constant: each key in an
 * ORDER BY costs a parse of every document on the page (some 4 µs for 400 bytes), though nothing is sorted.
 */
import type { Field } from '../../../model/field.ts';
import { fieldKey } from '../../field-value.ts';
import { conjuncts, type Shape } from '../../filter-shape.ts';
import { type Bound, type OrderKey, rangesBeyond, reversed } from '../../keyset.ts';
import type { Service } from '../../serve.ts';
import type { Position } from '../../store.ts';
import { anyRangeSql, boundSql } from './bound.ts';
import { compileFilter, typeOf } from './filter.ts';
import {
  columnsSql,
  limitSlot,
  nullsOf,
  offsetSlot,
  orderSql,
  type PageStatement,
  pageStatement,
  type Selection,
} from './page-statement.ts';
import { Parameters } from './parameters.ts';
import { hiddenLimit, inOne, liveInIndex, liveInTable } from './steering.ts';
import { valueSql } from './value.ts';

/** The statement for every position of the same shape as this one. */
export function compileWalk(selection: Selection, service: Service, position: Position): PageStatement {
  const parameters = new Parameters(true);
  const order = position.from === 'before' ? reversed(service.order) : service.order;
  const walk: Walk = { selection, service, parameters, order };
  return pageStatement(selection, pageSql(walk, position), parameters, true);
}

type Walk = {
  readonly selection: Selection;
  readonly service: Service;
  readonly parameters: Parameters;
  /** In the direction of reading. */
  readonly order: readonly OrderKey[];
};

function pageSql(walk: Walk, position: Position): string | undefined {
  const { parameters } = walk;
  if (position.from === 'start') return stretchSql(walk, []);
  if (position.from === 'offset') {
    return `${stretchSql(walk, [])} OFFSET ${parameters.addSlot(offsetSlot, 'bigint')}`;
  }
  const ranges = rangesBeyond(walk.order, nullsOf(position));
  if (ranges.length === 0) return undefined;
  if (walk.service.oneRow) return stretchSql(walk, [], anyRangeSql(ranges, parameters));
  const arms = ranges.map(({ bounds }) => stretchSql(walk, bounds));
  if (arms.length === 1) return arms[0];
  const union = arms.map((arm) => `(${arm})`).join(' UNION ALL ');
  return `SELECT * FROM (${union}) r ${limitSql(walk)}`;
}

/** One stretch of the index, from where the bounds say. */
function stretchSql(walk: Walk, bounds: readonly Bound[], besides?: string): string {
  const { selection, service, parameters } = walk;
  const { layout, schema, filter } = selection;
  const { alone, order } = service.oneRow ? { alone: undefined, order: [] } : stretchOf(walk, bounds);
  const conditions = [service.index === layout.primaryKey ? liveInTable(schema) : liveInIndex(schema)];
  for (const part of conjuncts(filter)) conditions.push(partSql(part, parameters, alone));
  for (const bound of bounds) conditions.push(boundSql(bound, parameters, fieldKey(bound.field) === alone));
  if (besides !== undefined) conditions.push(besides);
  return `SELECT ${columnsSql(selection)} FROM ${layout.name} WHERE ${conditions.join(' AND ')}${orderSql(order)} ${limitSql(walk)}`;
}

/** Pages have one text for each limit, of which there are few; a reader of whole rows asks for any number. */
function limitSql({ selection: { rows, whole }, parameters }: Walk): string {
  return whole ? `LIMIT ${parameters.addSlot(limitSlot, 'bigint')}` : hiddenLimit(rows);
}

function partSql(part: Shape, parameters: Parameters, alone: string | undefined): string {
  if (part.op === 'eq' && fieldKey(part.field) === alone) {
    return inOne(valueSql(part.field), parameters.addValue(part.at, typeOf(part.field, part.whole)));
  }
  return compileFilter(part, parameters);
}

type Stretch = {
  /** The key that is compared by `inOne`. */
  readonly alone: string | undefined;
  readonly order: readonly OrderKey[];
};

/** A key that is null stays in the order: of `IS NULL` the planner does not conclude that it is constant. */
function stretchOf({ selection, service, order }: Walk, bounds: readonly Bound[]): Stretch {
  const { layout, filter } = selection;
  const direction = order[0]?.direction ?? 'asc';
  const fields = new Map<string, Field>(order.map(({ field }) => [fieldKey(field), field]));
  const equal = new Set<string>();
  for (const part of conjuncts(filter)) {
    if (part.op !== 'eq' && part.op !== 'absent') continue;
    fields.set(fieldKey(part.field), part.field);
    if (part.op === 'eq') equal.add(fieldKey(part.field));
  }
  for (const { is, field } of bounds) if (is === 'equal') equal.add(fieldKey(field));
  const keys = layout.indexes.find(({ name }) => name === service.index)?.keys ?? ['id'];
  const [first] = keys;
  const alone = first !== undefined && isSeen(first) && isContested() ? first : undefined;
  if (alone !== undefined) equal.delete(alone);
  return {
    alone,
    order: walked(keys, equal).flatMap((key) => {
      const field = fields.get(key);
      return field === undefined ? [] : [{ field, direction, slot: -1 }];
    }),
  };

  /** Whether the statistics say of the key how many values it has: of columns, never of what stands in partial indexes alone. */
  function isSeen(key: string): boolean {
    return equal.has(key) && fields.get(key)?.column !== undefined;
  }

  /** Whether another index has the same order where these keys are equal. */
  function isContested(): boolean {
    const wanted = walked(keys, equal).join();
    return layout.indexes.some(
      (other) => !other.unique && other.name !== service.index && walked(other.keys, equal).join() === wanted,
    );
  }
}

/** The keys of an index that order rows in which others are equal. */
function walked(keys: readonly string[], equal: ReadonlySet<string>): readonly string[] {
  return keys.filter((key) => !equal.has(key));
}
