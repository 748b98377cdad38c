/**
 * The page of a list under a condition on rows that references name (store/related-drive.ts), as one bounded statement: it finds the named
 * rows, up to a bound and one more, and walks for each of them the index of the reference in the order of the page, until it has a page's
 * rows. Beyond the bound it asks the first rows of the list which of them name such a row. Each row says how many rows were named: beyond
 * the bound the page may lack rows, and then another statement reads it.
 */
import type { Field } from '../../../model/field.ts';
import { always, conjuncts, levelWithin, type Shape, type ValueSlot } from '../../filter-shape.ts';
import { headColumns } from '../../kept-row.ts';
import { pageOrder } from '../../keyset.ts';
import { omittedDocument } from '../../page-of-rows.ts';
import { type Drive, driveOf, type Source } from '../../related-drive.ts';
import { type Service, serve } from '../../serve.ts';
import type { ListQuery, Position } from '../../store.ts';
import type { Layout } from '../schema/schema-layout.ts';
import { compileFilter, typeOf } from './filter.ts';
import {
  keyColumnsSql,
  keyOrderSql,
  type PageStatement,
  pageStatement,
  type Selection,
} from './page-statement.ts';
import { Parameters } from './parameters.ts';
import { hiddenLimit, liveInIndex, liveInTable } from './steering.ts';
import { valueSql } from './value.ts';
import { namedAt, walkSql } from './walk.ts';

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
