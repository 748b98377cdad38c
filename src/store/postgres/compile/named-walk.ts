/**
 * The page of a list under a condition on rows that references name (store/related-drive.ts), as one bounded statement: it finds the named
 * rows, up to a bound and one more, and walks for each of them the index of the reference in the order of the page, until it has a page's
 * rows. Each row says how many rows were named: beyond the bound the page is empty, and another statement reads it.
 */
import { always, conjuncts, type Shape } from '../../filter-shape.ts';
import { type OrderKey, reversed } from '../../keyset.ts';
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
  readonly source: Source<Layout>;
  /** The conditions on rows of the list, of which the first is that the reference names the row of the turn. */
  readonly filter: Shape;
  /** Of one turn. */
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
  return { source: drive.source, filter: turn, service };
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
  const columns = `doc${keyColumnsSql(sort)}${selection.owners ? ', owner' : ''}`;
  const turn = walkSql({ ...selection, filter }, service, position, { parameters, columns, named });
  const keys = sort.map((key, slot): OrderKey => ({ ...key, slot }));
  const order = keyOrderSql(position.from === 'before' ? reversed(keys) : keys);
  const page =
    turn === undefined
      ? undefined
      : `SELECT t.* FROM ${named} CROSS JOIN LATERAL (${turn}) t WHERE ${count} <= ${namedMax}${order} LIMIT ${rows}`;
  return pageStatement(selection, page, parameters, true, { tables: tables.join(', '), count });
}

/** Rows that are asked whether they match before the planner chooses how to find those that do. */
const firstMax = 256;

/** The rows that match among the first ones beyond the position, along an index over the sort: a full page if many match. */
export function compileFirstRows(selection: Selection, position: Position): PageStatement {
  const { layout, schema, filter, sort, rows } = selection;
  const parameters = new Parameters(true);
  const walked = { ...selection, filter: always, rows: firstMax };
  const service = serve(layout, always, sort);
  const first =
    typeof service === 'object'
      ? walkSql(walked, service, position, { parameters, columns: `*${keyColumnsSql(sort)}` })
      : undefined;
  if (first === undefined) return pageStatement(selection, undefined, parameters, true);
  const keys = sort.map((key, slot): OrderKey => ({ ...key, slot }));
  const order = keyOrderSql(position.from === 'before' ? reversed(keys) : keys);
  const condition = compileFilter(filter, parameters, { name: 'first', schema, steered: true });
  // The literal limit is for its estimate: otherwise the server compiles the statement, which takes 70 ms.
  const page = `SELECT * FROM (SELECT * FROM (${first}) AS walked LIMIT ${firstMax}) AS first WHERE ${condition}${order} LIMIT ${rows}`;
  return pageStatement(selection, page, parameters, true);
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
