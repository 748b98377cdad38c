/**
 * The statement of a page along the index that serves it. The ranges beyond a key (keyset.ts) are the arms of a UNION ALL, each with its
 * order and limit, so that each is one stretch of the index; the server runs them in turn until the page is full. The text is prepared, and
 * steered to walk the index whatever the statistics say (steering.ts).
 * An arm is ordered by all keys of the index but those that equal a value, which the planner knows to be constant: each key in an ORDER BY
 * costs a parse of every document on the page (some 4 µs for 400 bytes), even if nothing is sorted.
 */
import type { Field } from '../../../model/field.ts';
import { fieldKey } from '../../field-value.ts';
import { conjuncts, isRanked, type Shape } from '../../filter-shape.ts';
import {
  anyRangeSql,
  type Bound,
  boundSql,
  type OrderKey,
  pageOrder,
  rangesBeyond,
  reversed,
} from '../../keyset.ts';
import type { Service } from '../../serve.ts';
import type { Position } from '../../store.ts';
import { compileFilter, type Level, typeOf } from './filter.ts';
import {
  columnsSql,
  limitSlot,
  offsetSlot,
  orderSql,
  type PageStatement,
  pageStatement,
  type Selection,
} from './page-statement.ts';
import { Parameters } from './parameters.ts';
import { compileRanked } from './ranked.ts';
import { hiddenLimit, inOne, liveInIndex, liveInTable } from './steering.ts';
import { valueSql } from './value.ts';

export function compileWalk(selection: Selection, service: Service, position: Position): PageStatement {
  const parameters = new Parameters(true);
  const page = walkSql(selection, service, position, { parameters });
  return pageStatement(selection, page, parameters, true);
}

/** The place of a value that is the id of the row of another table that the walk is for. */
export const namedAt = -1;

type Walking = {
  readonly parameters: Parameters;
  /** Default: those of a page. */
  readonly columns?: string;
  /** The table of the row at `namedAt`. */
  readonly named?: string;
};

/** The rows of the page. @returns undefined if no row is beyond the position */
export function walkSql(
  selection: Selection,
  service: Service,
  position: Position,
  { parameters, columns = columnsSql(selection), named }: Walking,
): string | undefined {
  const order = position.from === 'before' ? reversed(service.order) : service.order;
  return pageSql({ selection, service, parameters, order, columns, named }, position);
}

type Walk = {
  readonly selection: Selection;
  readonly service: Service;
  readonly parameters: Parameters;
  /** In the direction of reading. */
  readonly order: readonly OrderKey[];
  readonly columns: string;
  readonly named: string | undefined;
};

function pageSql(walk: Walk, position: Position): string | undefined {
  const { parameters } = walk;
  if (position.from === 'start') return stretchSql(walk, []);
  if (position.from === 'offset') {
    return `${stretchSql(walk, [])} OFFSET ${parameters.addSlot(offsetSlot, 'bigint')}`;
  }
  const ranges = rangesBeyond(walk.order, position) ?? [];
  if (ranges.length === 0) return undefined;
  if (walk.service.oneRow) return stretchSql(walk, [], anyRangeSql(ranges, boundBy(parameters)));
  const arms = ranges.map(({ bounds }) => stretchSql(walk, bounds));
  if (arms.length === 1) return arms[0];
  const union = arms.map((arm) => `(${arm})`).join(' UNION ALL ');
  return `SELECT * FROM (${union}) r ${limitSql(walk)}`;
}

/** The SQL of one stretch of the index, within the bounds. */
function stretchSql(walk: Walk, bounds: readonly Bound[], besides?: string): string {
  const { selection, service, parameters, columns } = walk;
  const { layout, schema, filter } = selection;
  const { alone, order } = service.oneRow ? { alone: undefined, order: [] } : stretchOf(walk, bounds);
  const conditions = [service.index === layout.primaryKey ? liveInTable(schema) : liveInIndex(schema)];
  const level = { name: layout.name, schema, steered: true };
  for (const part of conjuncts(filter)) conditions.push(partSql(walk, part, alone, level));
  conditions.push(...bounds.map(boundBy(parameters, alone)));
  if (besides !== undefined) conditions.push(besides);
  return `SELECT ${columns} FROM ${layout.name} WHERE ${conditions.join(' AND ')}${orderSql(order)} ${limitSql(walk)}`;
}

/** Pages have one text per limit, of which there are few; readers of whole rows use any number. */
function limitSql({ selection: { rows, whole }, parameters }: Walk): string {
  return whole ? `LIMIT ${parameters.addSlot(limitSlot, 'bigint')}` : hiddenLimit(rows);
}

function partSql({ parameters, named }: Walk, part: Shape, alone: string | undefined, level: Level): string {
  if (part.op === 'eq' && part.at === namedAt) return `${valueSql(part.field)} = ${named}.id`;
  if (part.op === 'eq' && fieldKey(part.field) === alone) {
    return inOne(valueSql(part.field), parameters.addValue(part.at, typeOf(part.field, part.whole)));
  }
  return compileFilter(part, parameters, level);
}

type Stretch = {
  /** The key that is compared by `inOne`. */
  readonly alone: string | undefined;
  readonly order: readonly OrderKey[];
};

/** Keeps a key that is null in the order: from `IS NULL` the planner does not conclude that it is constant. */
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
    order: orderingKeys(keys, equal).flatMap((key) => {
      const field = fields.get(key);
      return field === undefined ? [] : [{ field, direction, slot: -1 }];
    }),
  };

  /** True if statistics tell the key's number of values: for columns, never for expressions that only partial indexes hold. */
  function isSeen(key: string): boolean {
    return equal.has(key) && fields.get(key)?.column !== undefined;
  }

  /** True if another index has the same order where these keys are equal. */
  function isContested(): boolean {
    const wanted = orderingKeys(keys, equal).join();
    return layout.indexes.some(
      (other) =>
        !other.unique && other.name !== service.index && orderingKeys(other.keys, equal).join() === wanted,
    );
  }
}

/** The keys that order the rows of an index in which others are equal. */
function orderingKeys(keys: readonly string[], equal: ReadonlySet<string>): readonly string[] {
  return keys.filter((key) => !equal.has(key));
}

/** Makes the SQL of bounds, with the values of the position's slots. @param alone the key that is compared by `inOne` */
export function boundBy(parameters: Parameters, alone?: string): (bound: Bound) => string {
  return (bound) => {
    const { field, is, slot } = bound;
    const mark = (): string => parameters.addSlot(slot, typeOf(field, true));
    const isAlone = is === 'equal' && fieldKey(field) === alone;
    return isAlone ? inOne(valueSql(field), mark()) : boundSql(bound, valueSql(field), mark);
  };
}

/** Compiles a page without an index, or far away. It shows its values to the server, which plans it for them. */
export function compileScan(selection: Selection, position: Position): PageStatement {
  const { layout, schema, filter, sort, rows } = selection;
  if (isRanked(sort)) return compileRanked(selection, position);
  const parameters = new Parameters(false);
  const order = pageOrder(sort, position);
  const conditions = ['deleted_at IS NULL'];
  const level = { name: layout.name, schema, steered: false };
  if (filter.op !== 'always') conditions.push(compileFilter(filter, parameters, level));
  const ranges = rangesBeyond(order, position);
  if (ranges?.length === 0) return pageStatement(selection, undefined, new Parameters(false), false);
  if (ranges !== undefined) conditions.push(anyRangeSql(ranges, boundBy(parameters)));
  let page = `SELECT ${columnsSql(selection)} FROM ${layout.name} WHERE ${conditions.join(' AND ')}${orderSql(order)} LIMIT ${rows}`;
  if (position.from === 'offset') page += ` OFFSET ${parameters.addSlot(offsetSlot, 'bigint')}`;
  return pageStatement(selection, page, parameters, false);
}
