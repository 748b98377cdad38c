/**
 * Plans of list queries. What depends only on the shape of a query (table, filter shape, sort, limit) is compiled once and cached by shape;
 * a plan adds the values. What an index serves is read on the read lane, each page in one round trip; everything else, and far offsets, on
 * the scan lane.
 */
import type { OctetCache } from '../../../memory/octet-cache.ts';
import type { Party } from '../../../model/fair-queue.ts';
import { type Filter, tablesOf } from '../../../model/filter.ts';
import {
  type Aggregate,
  type AggregateQuery,
  type AggregateSql,
  aggregateOf,
  aggregateStatement,
  type Zones,
  zoneInTurns,
} from '../../aggregate.ts';
import { compiledShape, compiledStatement, isRanked, type Shape, searchIn } from '../../filter-shape.ts';
import {
  docBytesMax,
  omittedDocument,
  pageOf,
  rowsInOrder,
  rowsLimit,
  shapeOf,
  unbounded,
} from '../../page-of-rows.ts';
import { versionText } from '../../revision.ts';
import { type Service, serve, settle, wayOf } from '../../serve.ts';
import type { ListQuery, Page, Plan, Position } from '../../store.ts';
import { bindValues, decimalSql, Parameters, periodSql, valueSql } from '../compile/expressions.ts';
import { compileFilter, shapeOfFilter, withoutFrequent } from '../compile/filter.ts';
import { compileFound, foundMostFor, type Searched, searchedBy, wordsIn } from '../compile/found-page.ts';
import {
  bind,
  type OctetBound,
  ofReadyTexts,
  type PageStatement,
  type Selection,
  unreadySql,
  versionSql,
} from '../compile/page-statement.ts';
import {
  asksFirst,
  compileFirstRows,
  compileNamedWalk,
  compileScan,
  compileWalk,
  type NamedWalk,
  namedMax,
  namedWalkOf,
} from '../compile/walk.ts';
import type { Bindable, Rows } from '../connection/connection.ts';
import type { ReadLane, ScanLane } from '../connection/lanes.ts';
import type { Layout } from '../schema/schema-layout.ts';
import type { Versions } from './point-reads.ts';

/** Rows that a page may skip on the read lane: about 0.2 ms. */
const offsetOnReadLaneMax = 1000;

export type PlanSources = {
  readonly read: Pick<ReadLane, 'send'>;
  readonly scan: Pick<ScanLane, 'read'>;
  readonly versions: Versions;
  readonly layout: Layout;
  readonly layoutOf: (table: string) => Layout;
  /** Not quoted. */
  readonly schema: string;
  readonly tableNumber: number;
  /** Those of the other tables that the filter looks at. */
  readonly relatedNumbers: readonly number[];
  readonly shapes: OctetCache<CompiledShape>;
  /** Words that most documents of the table have. */
  readonly frequentWords: ReadonlySet<string>;
  /** Called when a search finds that its texts are not those of this process's declaration. */
  readonly onUnready: () => void;
};

/** Shared by queries that differ only in values. */
export type CompiledShape = {
  readonly key: string;
  readonly selection: Selection;
  /** Undefined if no index serves the shape. */
  readonly service: Service | 'never' | undefined;
  /** The filter of a walk: a condition on what a reference names is decided once, where it is the same for all rows. */
  readonly walked: Shape;
  /** Set if no index serves the shape, and indexes lead to its rows from those that references name. */
  readonly named: NamedWalk | undefined;
  /** Set if no index serves the shape, and one of words finds its rows. */
  readonly searched: Searched | undefined;
  readonly statements: Map<string, PageStatement>;
};

/** @throws RangeError for a query without a sort */
export function makePlan(sources: PlanSources, query: ListQuery): Plan {
  const { layout, read, scan, versions, shapes, frequentWords, onUnready } = sources;
  const { sort } = query;
  const { shape: filter, key: filterKey, values } = shapeOfFilter(query.filter);
  const of = `${filterKey} ${sources.tableNumber} ${query.limit} ${query.bytesMax}`;
  const shape = compiledShape(shapes, query, of, (key) => ({ ...compileShape(sources, query, filter), key }));
  const { selection, service, walked, named, searched } = shape;
  const way = () => wayOf({ layout, filter, sort, service, drive: named });
  if (service === 'never') {
    const page = async (): Promise<Page> =>
      pageOf([], query, {
        backwards: false,
        version: await versions.latest([layout.table.name, ...tablesOf(query.filter)]),
        isCut: false,
      });
    return { bounded: true, way, page, rows: async () => [] };
  }
  const { bytesMax } = query;
  const capped =
    bytesMax === undefined ? undefined : ({ kind: 'capped', docBytesMax: docBytesMax(query) } as const);
  const cut = bytesMax === undefined ? undefined : ({ kind: 'cut', bytesMax } as const);
  const compiled = (kind: string, compile: () => PageStatement) =>
    compiledStatement(shapes, shape, kind, compile);
  return {
    bounded: service !== undefined,
    way,
    async page(position, party) {
      const kind = shapeOf(sort, position);
      const reading = {
        ...{ read, scan, compiled, selection, capped, query, values },
        frequentWords,
        onUnready,
      };
      const page =
        named !== undefined
          ? await readNamed(reading, named, position, party)
          : searched && (await readFound(reading, searched, position, party));
      if (page !== undefined) return page;
      const far = position.from === 'offset' && position.offset > offsetOnReadLaneMax;
      if (service === undefined || far) {
        const scanned = compiled(`scan ${kind}`, () => compileScan({ ...selection, octets: cut }, position));
        const call = bind(scanned, sort, { values, position });
        return pageFrom(await scan.read(call, party), reading, position, cut !== undefined);
      }
      const walk = (octets: OctetBound | undefined) => {
        const statement = compiled(`${octets?.kind ?? 'walk'} ${kind}`, () =>
          compileWalk({ ...selection, filter: walked, octets }, service, position),
        );
        return read.send(bind(statement, sort, { values, position }));
      };
      const rows = await walk(capped);
      if (!rows.some((cells) => cells[0] === omittedDocument))
        return pageFrom(rows, reading, position, false);
      return pageFrom(await walk(cut), reading, position, true);
    },
    async rows(position, asked) {
      if (service === undefined) throw unbounded();
      const limit = rowsLimit(query, asked);
      const walk = compiled(`whole ${shapeOf(sort, position)}`, () =>
        compileWalk({ ...selection, filter: walked, rows: query.limit, whole: true }, service, position),
      );
      const rows = await read.send(bind(walk, sort, { values, position, limit }));
      return rowsInOrder(rows, position.from === 'before');
    },
  };
}

function compileShape(
  { layout, layoutOf, schema, tableNumber, relatedNumbers }: PlanSources,
  { sort, limit, heads = false }: ListQuery,
  filter: Shape,
): Omit<CompiledShape, 'key'> {
  const common = { layout, schema, tableNumber, relatedNumbers, filter, sort, heads };
  const selection = { ...common, whole: false, octets: undefined, rows: limit + 1 };
  const { rest, gate } = settle(filter);
  const service = serve(layout, rest, sort);
  return {
    selection,
    service,
    walked: gate.op === 'always' ? rest : { op: 'and', parts: [rest, gate] },
    named: service === undefined ? namedWalkOf(layout, layoutOf, filter, sort) : undefined,
    searched: service === undefined ? searchedBy(filter) : undefined,
    statements: new Map(),
  };
}

type BoundedReading = {
  readonly read: PlanSources['read'];
  readonly scan: PlanSources['scan'];
  readonly compiled: (kind: string, compile: () => PageStatement) => PageStatement;
  readonly selection: Selection;
  readonly capped: OctetBound | undefined;
  readonly query: ListQuery;
  readonly values: readonly Bindable[];
  readonly frequentWords: ReadonlySet<string>;
  readonly onUnready: () => void;
};

/**
 * Reads a page by the rows that references name, if they are few, or else from the first rows of the list, if these fill it.
 * @returns undefined if neither is so, or a long document was omitted
 */
async function readNamed(
  reading: BoundedReading,
  named: NamedWalk,
  asked: Position,
  party: Party | undefined,
): Promise<Page | undefined> {
  const { read, scan, compiled, selection, capped, query, values } = reading;
  const position = withoutOffset(asked);
  if (position.from === 'offset') return undefined;
  const { sort } = query;
  const kind = shapeOf(sort, position);
  const capping = { ...selection, octets: capped };
  const walk = compiled(`named ${kind}`, () => compileNamedWalk(capping, named, position));
  const found = await read.send(bind(walk, sort, { values, position }));
  const isWhole = !found.some((cells) => cells[0] === omittedDocument);
  const areFew = Number(found[0]?.at(-2)) <= namedMax;
  if (areFew && !isWhole) return undefined;
  if (isWhole && (areFew || found.length > query.limit)) return pageFrom(found, reading, asked, false);
  if (isWhole && asksFirst(selection, named.source)) return undefined;
  const first = compiled(`first ${kind}`, () => compileFirstRows(capping, position));
  const rows = await scan.read(bind(first, sort, { values, position }), party);
  const isFull = rows.length > query.limit && !rows.some((cells) => cells[0] === omittedDocument);
  return isFull ? pageFrom(rows, reading, asked, false) : undefined;
}

/**
 * Reads a page by what the index of words finds, or from the first rows of the list.
 * @returns undefined if it finds too many and these do not fill the page, or a long document was omitted
 */
async function readFound(
  reading: BoundedReading,
  searched: Searched,
  asked: Position,
  party: Party | undefined,
): Promise<Page | undefined> {
  const { scan, compiled, selection, capped, query, values: all, frequentWords } = reading;
  const position = withoutOffset(asked);
  const { sort } = query;
  if (position.from === 'offset' && !isRanked(sort)) return undefined;
  const values = [...all];
  let asksIndex = false;
  for (const at of wordsIn(searched)) {
    const rarer = withoutFrequent(String(all[at]), frequentWords);
    if (rarer === '') continue;
    asksIndex = true;
    values[at] = rarer;
  }
  const statement = compiled(`${asksIndex ? 'found' : 'frequent'} ${shapeOf(sort, position)}`, () =>
    compileFound({ ...selection, octets: capped }, searched, position, asksIndex),
  );
  const rows = await scan.read(bind(statement, sort, { values, position }), party);
  const isWhole = !rows.some((cells) => cells[0] === omittedDocument);
  return isWhole && Number(rows[0]?.at(-2)) <= foundMostFor(sort)
    ? pageFrom(rows, reading, asked, false)
    : undefined;
}

function withoutOffset(position: Position): Position {
  return position.from === 'offset' && position.offset === 0 ? { from: 'start' } : position;
}

/**
 * Builds the page. An empty page is one row with a version and no document.
 * @param isCut true if octets end the statement, whose rows then say whether more follow
 */
function pageFrom(
  rows: Rows,
  { query, onUnready }: Pick<BoundedReading, 'query' | 'onUnready'>,
  position: Position,
  isCut: boolean,
): Page {
  const first = rows[0];
  const version = versionText(ofReadyTexts(Number(first?.at(-1) ?? 0), query.table, onUnready));
  const found = first === undefined || first[0] === null ? [] : rows;
  return pageOf(found, query, {
    backwards: position.from === 'before',
    version,
    isCut: isCut && found.length > 0 && found.at(-1)?.at(-2) !== null,
  });
}

/** The undeleted rows that match, for a statement that runs once. */
function matchingRows({ layout, schema }: Pick<PlanSources, 'layout' | 'schema'>, filter: Filter) {
  const { shape, values } = shapeOfFilter(filter);
  const parameters = new Parameters(false);
  const level = { name: layout.name, schema, steered: false };
  const condition = shape.op === 'always' ? '' : ` AND ${compileFilter(shape, parameters, level)}`;
  const from = `FROM ${layout.name} WHERE deleted_at IS NULL${condition}`;
  return { shape, from, values: bindValues(parameters.list, values) };
}

type Walking = Pick<PlanSources, 'scan' | 'layout' | 'schema' | 'onUnready'>;

/** Counts the undeleted rows that match a filter, on the scan lane, because every count is a walk. @throws StoreUnavailable */
export async function countRows(
  { scan, layout, schema, onUnready }: Walking,
  filter: Filter,
  party?: Party,
): Promise<number> {
  const { shape, from, values } = matchingRows({ layout, schema }, filter);
  if (shape.op === 'never') return 0;
  const unready = searchIn(shape) === undefined ? undefined : unreadySql(layout, schema);
  const count = unready === undefined ? 'count(*)' : `CASE WHEN ${unready} THEN -1 ELSE count(*) END`;
  const rows = await scan.read({ sql: `SELECT ${count} ${from}`, values, prepared: false }, party);
  return ofReadyTexts(Number(rows[0]?.[0]), layout.table.name, onUnready);
}

async function aggregateSqlOf({ groupBy }: AggregateQuery, zones: Zones): Promise<AggregateSql> {
  const tables = await Promise.all(
    groupBy.map(({ period }) => period && zoneInTurns(zones, period.timeZone)),
  );
  return {
    value(field) {
      const { period, ...time } = field;
      const table = tables[groupBy.indexOf(field)];
      return period === undefined || table === undefined ? valueSql(field) : periodSql(time, period, table);
    },
    sum: (field) => `sum(${decimalSql(field)})::text`,
  };
}

/** Computes aggregates on the scan lane, because each is a walk of all rows that match. @throws StoreUnavailable */
export async function aggregateRows(
  sources: Walking & Pick<PlanSources, 'tableNumber' | 'relatedNumbers'> & { readonly zones: Zones },
  query: AggregateQuery,
  party?: Party,
): Promise<Aggregate> {
  const { scan, layout, onUnready, zones } = sources;
  const aggregateSql = await aggregateSqlOf(query, zones);
  const { shape, from, values } = matchingRows(sources, query.filter);
  const version = `(SELECT c.rev FROM ${versionSql({ ...sources, filter: shape })})`;
  const sql = aggregateStatement(query, aggregateSql, { from, version });
  const rows = await scan.read({ sql, values, prepared: false }, party);
  const rev = ofReadyTexts(Number(rows[0]?.[0] ?? 0), layout.table.name, onUnready);
  return aggregateOf(rows, query, aggregateSql, versionText(rev));
}

/**
 * Finds ids of rows to purge, on the scan lane, because there may be no index by time of change.
 * @param updatedBefore milliseconds since the epoch
 * @throws StoreUnavailable
 */
export async function findOld(
  scan: Pick<ScanLane, 'read'>,
  layout: Layout,
  updatedBefore: number,
  limit: number,
): Promise<readonly string[]> {
  const sql = `SELECT id FROM ${layout.name} WHERE updated_at < $1::bigint LIMIT $2::bigint`;
  const rows = await scan.read({ sql, values: [updatedBefore, limit], prepared: false });
  return rows.map(([id]) => String(id));
}
