/**
 * The statement of a page along the index that serves it. The ranges beyond a key (page-of-rows.ts) are the arms of a UNION ALL, each with its
 * order and limit, so that each is one stretch of the index; the server runs them in turn until the page is full. The text is prepared, and
 * steered to walk the index whatever the statistics say (expressions.ts).
 * An arm is ordered by all keys of the index but those that equal a value, which the planner knows to be constant: each key in an ORDER BY
 * costs a parse of every document on the page (some 4 µs for 400 bytes), even if nothing is sorted.
 */
import type { Field } from '../../../model/field.ts';
import { fieldKey } from '../../field-value.ts';
import { always, conjuncts, isRanked, levelWithin, type Shape, type ValueSlot } from '../../filter-shape.ts';
import {
  anyRangeSql,
  type Bound,
  boundSql,
  type OrderKey,
  omittedDocument,
  pageOrder,
  rangesBeyond,
  reversed,
} from '../../page-of-rows.ts';
import { type Drive, driveOf, type Service, type Source, serve } from '../../serve.ts';
import { headColumns, type ListQuery, type Position } from '../../store.ts';
import type { Layout } from '../schema/schema-layout.ts';
import { hiddenLimit, inOne, liveInIndex, liveInTable, Parameters, valueSql } from './expressions.ts';
import { compileFilter, type Level, typeOf } from './filter.ts';
import {
  columnsSql,
  compileRanked,
  keyColumnsSql,
  keyOrderSql,
  limitSlot,
  offsetSlot,
  orderSql,
  type PageStatement,
  pageStatement,
  type Selection,
} from './page-statement.ts';

export function compileWalk(selection: Selection, service: Service, position: Position): PageStatement {
  const parameters = new Parameters(true);
  const page = walkSql(selection, service, position, { parameters });
  return pageStatement(selection, page, parameters, true);
}

/** The place of a value that is the id of the row of another table that the walk is for. */
const namedAt = -1;

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

/*
 * The page of a list under a condition on rows that references name (store/serve.ts), as one bounded statement: it finds the named
 * rows, up to a bound and one more, and walks for each of them the index of the reference in the order of the page, until it has a page's
 * rows. Beyond the bound it asks the first rows of the list which of them name such a row. Each row says how many rows were named: beyond
 * the bound the page may lack rows, and then another statement reads it.
 */

/** Named rows of each table on the path, for each of which a page's rows are read: some 2 ms in all. */
export const namedMax = 64;

export type NamedWalk = {
  /** The reference. */
  readonly field: Field;
  readonly source: Source<Layout>;
  /** The conditions on rows of the list, of which the first is that the reference names the row of the turn. */
  readonly filter: Shape;
  /** The index that serves one turn. */
  readonly service: Service;
};

/** @returns undefined if no indexes lead to the rows of the list, or none has them in the order of the page */
export function namedWalkOf(
  layout: Layout,
  layoutOf: (table: string) => Layout,
  filter: Shape,
  sort: ListQuery['sort'],
): NamedWalk | undefined {
  const drive = driveOf(layout, layoutOf, filter);
  if (drive === undefined || !isPlain(drive.source)) return undefined;
  const turn = turnOf(drive);
  const service = serve(layout, turn, sort);
  if (service === undefined || service === 'never') return undefined;
  return { field: drive.field, source: drive.source, filter: turn, service };
}

function isPlain({ by, rest }: Source<Layout>): boolean {
  return rest.length === 0 && (!('source' in by) || isPlain(by.source));
}

function turnOf({ field, rest }: Drive<Layout>): Shape {
  return { op: 'and', parts: [{ op: 'eq', field, whole: true, at: namedAt }, ...rest.flatMap(conjuncts)] };
}

export function compileNamedWalk(
  selection: Selection,
  { source, filter, service }: NamedWalk,
  position: Position,
): PageStatement {
  const { schema, sort, rows } = selection;
  const parameters = new Parameters(true);
  const tables: string[] = [];
  const named = addNamed(source, { schema, parameters, tables });
  const counts = tables.map((_, at) => `(SELECT count(*) FROM ${tableName(at)})`);
  const count = counts.length === 1 ? counts.join() : `greatest(${counts.join(', ')})`;
  const columns = `doc${keyColumnsSql(sort)}${headColumns(selection.heads)}`;
  const turn = walkSql({ ...selection, filter }, service, position, { parameters, columns, named });
  const order = pageOrderSql(selection, position);
  if (turn === undefined)
    return pageStatement(selection, undefined, parameters, true, { tables: tables.join(', '), count });
  const few = `SELECT t.* FROM ${named} CROSS JOIN LATERAL (${turn}) t WHERE ${count} <= ${namedMax}${order} LIMIT ${rows}`;
  const first = firstNaming(selection, { source, filter }, position, parameters);
  // Each arm is in order, and one of them has no rows.
  const page =
    first === undefined ? few : `(${few}) UNION ALL (${first.rows} AND ${count} > ${namedMax}${first.end})`;
  return pageStatement(selection, page, parameters, true, { tables: tables.join(', '), count });
}

/** Documents that a bounded read looks into, for the ids of the rows that they name. Longer ones are omitted. */
const shortDocBytesMax = 4096;

/**
 * The rows that match among the first ones beyond the position, in two parts of a SELECT. The index that ends with the id shows whether a
 * row is named, and long documents are omitted.
 * @returns undefined if they cannot fill a page, or documents of the named table would have to be read
 */
function firstNaming(
  selection: Selection,
  { source, filter }: Pick<NamedWalk, 'source' | 'filter'>,
  position: Position,
  parameters: Parameters,
): { readonly rows: string; readonly end: string } | undefined {
  const { schema, sort, rows, heads, octets } = selection;
  const [turn, ...rest] = conjuncts(filter);
  if ('source' in source.by || !asksFirst(selection, source) || turn?.op !== 'eq') return undefined;
  const first = firstRowsSql(selection, position, parameters);
  if (first === undefined) return undefined;
  const capBytes = Math.min(shortDocBytesMax, octets?.kind === 'capped' ? octets.docBytesMax : Infinity);
  const doc = `CASE WHEN octet_length(first.doc) > ${capBytes} THEN '${omittedDocument}' ELSE first.doc END AS doc`;
  const columns = `${doc}${sort.map((_, at) => `, first.k${at}`).join('')}${headColumns(heads, 'first.')}`;
  const conditions = [
    namesSql(source, source.by, turn.field, { schema, parameters }),
    ...rest.map((part) => compileFilter(part, parameters, { name: 'first', schema, steered: true })),
  ];
  return {
    rows: `SELECT ${columns} FROM ${first} WHERE (octet_length(first.doc) > ${capBytes} OR (${conditions.join(' AND ')}))`,
    end: `${pageOrderSql(selection, position)} LIMIT ${rows}`,
  };
}

/** True if the statement asks the first rows as well, of which one that reads documents would find no more. */
export function asksFirst({ rows }: Pick<Selection, 'rows'>, { by }: Source<Layout>): boolean {
  return !('source' in by) && 2 * rows <= firstMax;
}

/** True in SQL if the reference of a row of `first` names one of the rows. Without its limit the planner would find and hash all of these. */
function namesSql(
  { layout, index, field }: Source<Layout>,
  by: ValueSlot,
  reference: Field,
  { schema, parameters }: Pick<Naming, 'schema' | 'parameters'>,
): string {
  const name = levelWithin('first');
  const live = index === layout.primaryKey ? liveInTable(schema) : liveInIndex(schema);
  const value = parameters.addValue(by.value, typeOf(field, true));
  return `EXISTS (SELECT 1 FROM ${layout.name} AS ${name} WHERE ${live} AND ${valueSql(field)} = ${value} AND ${name}.id = ${valueSql(reference, 'first.')} ${hiddenLimit(1)})`;
}

/** Rows that are asked whether they match before the planner chooses how to find those that do: at most some 2 ms. */
const firstMax = 256;

/** The rows that match among the first ones beyond the position, along an index over the sort: a full page if many match. */
export function compileFirstRows(selection: Selection, position: Position): PageStatement {
  const { schema, filter, rows } = selection;
  const parameters = new Parameters(true);
  const first = firstRowsSql(selection, position, parameters);
  if (first === undefined) return pageStatement(selection, undefined, parameters, true);
  const condition = compileFilter(filter, parameters, { name: 'first', schema, steered: true });
  const page = `SELECT * FROM ${first} WHERE ${condition}${pageOrderSql(selection, position)} LIMIT ${rows}`;
  return pageStatement(selection, page, parameters, true);
}

/** The first rows beyond the position with their keys, as the table `first`. */
function firstRowsSql(selection: Selection, position: Position, parameters: Parameters): string | undefined {
  const { layout, sort } = selection;
  const walked = { ...selection, filter: always, rows: firstMax };
  const service = serve(layout, always, sort);
  if (typeof service !== 'object') return undefined;
  const rows = walkSql(walked, service, position, { parameters, columns: `*${keyColumnsSql(sort)}` });
  if (rows === undefined) return undefined;
  // The literal limit is for its estimate: otherwise the server compiles the statement, which takes 70 ms. Without the order the planner
  // would not know that the rows are in that of the page, and would ask all of them.
  return `(SELECT * FROM (${rows}) AS walked${pageOrderSql(selection, position)} LIMIT ${firstMax}) AS first`;
}

/** The order of the page, or against it, by the columns of the keys. */
function pageOrderSql({ sort }: Pick<Selection, 'sort'>, position: Position): string {
  return keyOrderSql(pageOrder(sort, position));
}

type Naming = { readonly schema: string; readonly parameters: Parameters; readonly tables: string[] };

const tableName = (at: number): string => `comity_named_${at}`;

/** Adds the tables of named rows, from the last one of the path on. @returns the name of the added one */
function addNamed({ layout, index, field, by }: Source<Layout>, naming: Naming): string {
  const { schema, parameters, tables } = naming;
  const live = index === layout.primaryKey ? liveInTable(schema) : liveInIndex(schema);
  const limit = hiddenLimit(namedMax + 1);
  const rows = (value: string) =>
    `SELECT id FROM ${layout.name} WHERE ${live} AND ${valueSql(field)} = ${value} ${limit}`;
  let sql: string;
  if ('source' in by) {
    const before = addNamed(by.source, naming);
    sql = `SELECT n.id FROM ${before} CROSS JOIN LATERAL (${rows(`${before}.id`)}) n ${limit}`;
  } else sql = rows(parameters.addValue(by.value, typeOf(field, true)));
  const name = tableName(tables.length);
  tables.push(`${name} AS MATERIALIZED (${sql})`);
  return name;
}
