/**
 * Plans of list queries. What depends only on the shape of a query (table, filter shape, sort) is compiled once and cached by shape; a plan
 * adds the values. If an index serves the query, pages are read on the calling thread; everything else, and far offsets, goes to a reader
 * thread, so that no scan blocks the event loop.
 */
import type { Party } from '../../model/fair-queue.ts';
import type { Filter } from '../../model/filter.ts';
import {
  type Aggregate,
  type AggregateQuery,
  type AggregateSql,
  aggregateOf,
  aggregateStatement,
} from '../aggregate.ts';
import type { SqlValue } from '../field-value.ts';
import {
  compiledShape,
  conjuncts,
  isRanked,
  type Shape,
  type ShapedFilter,
  shapeFilter,
  type ValueSlot,
} from '../filter-shape.ts';
import { docBytesMax, omittedDocument, pageOf, rowsInOrder, rowsLimit, unbounded } from '../page-of-rows.ts';
import { versionText } from '../revision.ts';
import { driveOf, serve, settle, wayOf } from '../serve.ts';
import type { Keyset, ListQuery, MaybePromise, Page, Plan, Position, Row } from '../store.ts';
import type { Way } from '../store-report.ts';
import { compileFilter, encoding, tickSql } from './compile/filter.ts';
import {
  bind,
  compileFewPage,
  compileFirstOnCaller,
  compileFirstRows,
  compilePage,
  firstOnCallerMax,
  isFound,
  listSlot,
  namedSql,
  type PageStatement,
  referringSql,
  type Selection,
  source,
} from './compile/select.ts';
import { valueSql } from './compile/value.ts';
import {
  areSomeThousands,
  beingBuilt,
  type CompiledShape,
  candidatesMax,
  findFew,
  foundMax,
  listedMax,
  type PlanSources,
  probe,
  type RelatedSearch,
  type Run,
  relatedSearchOf,
  type Search,
  searchOf,
  singleWords,
  statementsOf,
  withoutSearch,
  wordSearchOf,
} from './compiled-shape.ts';
import type { Cells } from './connection.ts';
import type { Listing, Probe, Statement } from './reader/pool.ts';
import type { Layout } from './sqlite-schema.ts';

/** Rows that a page may skip on the calling thread: about 50 µs. */
const offsetOnCallerMax = 1000;

/** Documents that the calling thread looks into, for the ids of the rows that they name: 128 of them take a millisecond. */
const shortDocBytesMax = 4096;

export function makePlan(sources: PlanSources, query: ListQuery): Plan {
  const filter = shapeFilter(query.filter, encoding);
  const shape = compiledShape(sources.shapes, query, `${filter.key} ${sources.tableNumber}`, (key) =>
    compile(sources, query, { ...filter, key }),
  );
  const run: Run = { sources, query, shape, values: filter.values };
  const way = () => wayTo(run, filter.shape);
  if (shape.empty) return { bounded: true, way, page: () => emptyPage(run), rows: () => [] };
  const { scan, walk, search, related } = shape;
  if (walk === undefined) {
    return {
      bounded: false,
      way,
      page(position, party) {
        if (search !== undefined) return readFound(run, search, position, party);
        if (related !== undefined) return readReferring(run, related, position, party);
        return readOnReader(run, scan, position, party);
      },
      rows() {
        throw unbounded();
      },
    };
  }
  const whole: Selection = { ...walk, whole: true };
  const first: Selection = query.bytesMax === undefined ? walk : { ...walk, capped: true };
  return {
    bounded: true,
    way,
    page(position, party): MaybePromise<Page> {
      if (position.from === 'offset' && position.offset > offsetOnCallerMax) {
        return readOnReader(run, scan, position, party);
      }
      return readOnCaller(run, { first, scan }, position, party);
    },
    rows: (position, limit) => readRows(run, whole, position, rowsLimit(query, limit)),
  };
}

function wayTo({ sources: { layout }, query: { sort }, shape }: Run, filter: Shape): Way {
  const service = shape.empty ? 'never' : shape.walk?.service;
  return wayOf({ layout, filter, sort, service, drive: shape.related?.drive });
}

function compile(
  sources: PlanSources,
  { sort, heads = false }: ListQuery,
  { shape: filter, key, values }: ReturnType<typeof shapeFilter<SqlValue>>,
): CompiledShape {
  const { layout } = sources;
  const statements = new Map<string, readonly PageStatement[]>();
  const { rest, gate } = settle(filter);
  const service = serve(layout, rest, sort);
  const common = { layout, filter, sort, heads, whole: false, capped: false };
  const unserved: Selection = { ...common, service: undefined, timed: true };
  const unsearched = { walk: undefined, search: undefined, statements };
  if (service === 'never') return { key, scan: unserved, empty: true, ...unsearched };
  const words = wordSearchOf(layout, filter);
  if (words !== undefined) {
    // Walks an index over the sort, if there is one, and asks each row for the words.
    const sorted = serve(layout, withoutSearch(filter), sort);
    const scan = typeof sorted === 'object' ? { ...unserved, service: sorted } : unserved;
    return { key, scan, empty: false, ...unsearched, search: searchOf(scan, words) };
  }
  if (isRanked(sort)) throw new RangeError('a sort by rank needs a search by an index of words');
  if (service !== undefined) {
    const walk: Selection = { ...unserved, filter: rest, service, timed: false };
    const start = compilePage(walk, { from: 'start' });
    if (service.oneRow || !start.some((page) => sorts(sources, page, sort, values))) {
      statements.set('start', start);
      const scan = { ...walk, filter, timed: true };
      return { key, scan, empty: false, ...unsearched, walk, gate: gateOf(gate, layout) };
    }
  }
  const related = relatedSearchOf(layout, sources.layoutOf, filter, sort);
  return { key, scan: unserved, empty: false, ...unsearched, related };
}

function gateOf(gate: Shape, { name }: Layout): CompiledShape['gate'] {
  if (gate.op === 'always') return undefined;
  const parameters: ValueSlot[] = [];
  return { sql: `SELECT ${compileFilter(gate, parameters, name)}`, parameters };
}

/** Only within `run`. */
function isOpen({ sources: { snapshot }, shape: { gate }, values }: Run): boolean {
  if (gate === undefined) return true;
  const bound = gate.parameters.map(({ value }) => values[value] ?? null);
  const [holds] = snapshot.prepare(gate.sql).get(...bound) as unknown as Cells;
  return holds === 1;
}

/** Counts what the index finds, and reads the page by it, in one trip to a reader thread. */
async function readFound(
  run: Run,
  search: Search,
  position: Position,
  party: Party | undefined,
): Promise<Page> {
  const { sources, values } = run;
  const { words, few, many } = search;
  const statements = statementsOf(run, few, position);
  if (statements.length === 0) {
    await probe(words, values, sources, party);
    return emptyPage(run);
  }
  const query = values[words.found.at] ?? null;
  return readOnReader(run, few, position, party, {
    statements,
    probe: {
      listings: listingsOf(run, search, position),
      count: { sql: words.probeSql, parameters: [query] },
      countMax: foundMax,
      beyond: boundTo(run, statementsOf(run, many, position), position),
    },
  });
}

/** By a word of several that few rows have, or else by all words. */
function listingsOf(run: Run, { words, candidates, listed }: Search, position: Position): readonly Listing[] {
  const listing = (query: SqlValue, selection: Selection, listMax: number): Listing => {
    const pages = statementsOf(run, selection, position);
    const statements = boundTo(run, pages, position).map((each, at) => ({
      ...each,
      listAt: pages[at]?.parameters.indexOf(listSlot) ?? 0,
    }));
    return { sql: words.listSql, parameters: [query, listMax + 1], listMax, statements };
  };
  return [
    ...singleWords(words, run.values).map((query) => listing(query, candidates, candidatesMax)),
    listing(run.values[words.found.at] ?? null, listed, listedMax),
  ];
}

/** Reads a page by the rows that references name: on this thread, if they and the rows that refer to them are few. */
function readReferring(
  run: Run,
  related: RelatedSearch,
  position: Position,
  party: Party | undefined,
): MaybePromise<Page> {
  const { sources, query, values } = run;
  const { snapshot, tableNumber, relatedNumbers } = sources;
  const page = snapshot.run(() => {
    const named = findFew(related, values, snapshot);
    const version = snapshot.latestVersion(tableNumber, relatedNumbers);
    const rows =
      named === undefined ? readFirst(run, related, position) : readFew(run, related, position, named);
    if (rows === undefined || rows.some((cells) => cells[0] === omittedDocument)) return undefined;
    return pageOf(rows, query, { backwards: position.from === 'before', version, isCut: false });
  });
  return page ?? readManyReferring(run, related, position, party);
}

/** The page, if some of the first rows of the list fill it; only within `Snapshot.run`. */
function readFirst(
  run: Run,
  { drive, walked, named }: RelatedSearch,
  position: Position,
): readonly Cells[] | undefined {
  const { sources, query, shape, values } = run;
  const limit = query.limit + 1;
  if (walked === undefined || named === undefined || limit > firstOnCallerMax / 2) return undefined;
  const [page] = statementsOf(run, shape.scan, position, 'first on caller ', () => {
    const compiled = compileFirstOnCaller(shape.scan, { drive, by: named, index: walked }, position);
    return compiled === undefined ? [] : [compiled];
  });
  if (page === undefined) return undefined;
  const asked = { values, position, limit, docBytesMax: Math.min(docBytesMax(query), shortDocBytesMax) };
  const bound = bind(page, query.sort, asked);
  const rows = sources.snapshot.prepare(page.sql).all(...bound) as unknown as readonly Cells[];
  return rows.length < limit ? undefined : rows;
}

async function readManyReferring(
  run: Run,
  related: RelatedSearch,
  position: Position,
  party: Party | undefined,
): Promise<Page> {
  const { sources, shape, values } = run;
  const { walked, drive } = related;
  if (walked !== undefined) {
    const first = statementsOf(run, shape.scan, position, 'first ', () => {
      const compiled = compileFirstRows(shape.scan, walked, position);
      return compiled === undefined ? [] : [compiled];
    });
    if (first.length > 0) {
      const page = await readOnReader(run, shape.scan, position, party, { statements: first });
      // Otherwise further rows may match.
      if (page.more) return page;
    }
  }
  const areSome = await areSomeThousands(related, values, sources, party);
  return readOnReader(run, areSome ? { ...shape.scan, drive } : shape.scan, position, party);
}

function readFew(run: Run, { drive }: RelatedSearch, position: Position, named: string): readonly Cells[] {
  const { sources, query, shape, values } = run;
  const selection: Selection = { ...shape.scan, capped: query.bytesMax !== undefined };
  const [page] = statementsOf(run, selection, position, selection.capped ? 'few capped ' : 'few ', () => {
    const compiled = compileFewPage(selection, drive, position);
    return compiled === undefined ? [] : [compiled];
  });
  if (page === undefined) return [];
  const asked = { values, position, named, limit: query.limit + 1, docBytesMax: docBytesMax(query) };
  const bound = bind(page, query.sort, asked);
  return sources.snapshot.prepare(page.sql).all(...bound) as unknown as readonly Cells[];
}

/** True if SQLite would sort rows instead of walking the index, which does not depend on the values. */
function sorts(
  { snapshot }: PlanSources,
  page: PageStatement,
  sort: ListQuery['sort'],
  values: readonly SqlValue[],
): boolean {
  const explain = snapshot.prepare(`EXPLAIN QUERY PLAN ${page.sql}`);
  const steps = explain.all(...bind(page, sort, { values, position: { from: 'start' }, limit: 1 }));
  return steps.some((step) => String((step as unknown as Cells)[3]).includes('TEMP B-TREE'));
}

function emptyPage({ sources: { snapshot, tableNumber, relatedNumbers }, query }: Run): Page {
  const version = snapshot.run(() => snapshot.latestVersion(tableNumber, relatedNumbers));
  return pageOf([], query, { backwards: false, version, isCut: false });
}

/** Reads the page on this thread, unless it omits long documents: a reader thread then reads it, because copying them takes time. */
function readOnCaller(
  run: Run,
  { first, scan }: { readonly first: Selection; readonly scan: Selection },
  position: Position,
  party: Party | undefined,
): MaybePromise<Page> {
  const { snapshot, tableNumber, relatedNumbers } = run.sources;
  const page = snapshot.run(() => {
    const version = snapshot.latestVersion(tableNumber, relatedNumbers);
    // One row beyond the page shows whether rows remain.
    const rows = isOpen(run) ? walkIndex(run, first, position, run.query.limit + 1) : [];
    if (first.capped && rows.some((cells) => cells[0] === omittedDocument)) return undefined;
    return pageOf(rows, run.query, { backwards: position.from === 'before', version, isCut: false });
  });
  return page ?? readOnReader(run, scan, position, party);
}

function readRows(run: Run, selection: Selection, position: Keyset, limit: number): readonly Row[] {
  return run.sources.snapshot.run(() =>
    rowsInOrder(isOpen(run) ? walkIndex(run, selection, position, limit) : [], position.from === 'before'),
  );
}

/** Reads at most `limit` rows from the position on, in the order read; only within `run`. */
function walkIndex(run: Run, selection: Selection, position: Position, limit: number): readonly Cells[] {
  const { sources, query, values } = run;
  let rows: readonly Cells[] = [];
  for (const page of statementsOf(run, selection, position)) {
    const wanted = limit - rows.length;
    if (wanted === 0) break;
    const asked = { values, position, limit: wanted, docBytesMax: docBytesMax(query) };
    const bound = bind(page, query.sort, asked);
    const found = sources.snapshot.prepare(page.sql).all(...bound) as unknown as readonly Cells[];
    rows = rows.length === 0 ? found : [...rows, ...found];
  }
  return rows;
}

type OnReader = { readonly statements?: readonly PageStatement[]; readonly probe?: Probe };

async function readOnReader(
  run: Run,
  selection: Selection,
  position: Position,
  party: Party | undefined,
  { statements = statementsOf(run, selection, position), probe: first }: OnReader = {},
): Promise<Page> {
  const { sources, query } = run;
  const { limit, bytesMax = Number.POSITIVE_INFINITY } = query;
  const [read, ...rest] = boundTo(run, statements, position);
  if (read === undefined) return emptyPage(run);
  const { rows, version, isCut, isBarred } = await sources.readers.read(
    read.sql,
    read.parameters,
    sources.tableNumber,
    {
      ...{ party, rest, octets: { column: 0, rowsMax: limit + 1, bytesMax, looksBeyond: true } },
      ...{ relatedNumbers: sources.relatedNumbers, ...(first === undefined ? {} : { probe: first }) },
    },
  );
  if (isBarred) throw beingBuilt(sources.layout);
  return pageOf(rows, query, {
    backwards: position.from === 'before',
    version: versionText(version),
    isCut,
  });
}

/** The statements with their values, each for one row beyond the page. */
function boundTo(
  { query, values }: Run,
  statements: readonly PageStatement[],
  position: Position,
): readonly Statement[] {
  const asked = { values, position, limit: query.limit + 1 };
  return statements.map((page) => ({ sql: page.sql, parameters: bind(page, query.sort, asked) }));
}

/* Counts and aggregates: on reader threads, because each is a walk of all rows that match. */

/** Counts the undeleted rows that match a filter. */
export async function countRows(sources: Rows, filter: Filter, party: Party | undefined): Promise<number> {
  const shaped = shapeFilter(filter, encoding);
  if (shaped.shape.op === 'never') return 0;
  const { from, parameters } = await matching(sources, shaped, party);
  const { readers, tableNumber } = sources;
  const { rows } = await readers.read(`SELECT count(*) ${from}`, parameters, tableNumber, { party });
  return Number(rows[0]?.[0]);
}

const aggregateSql: AggregateSql = {
  value: (field) => valueSql(field),
  sum: (field) => `comity_sum(${valueSql(field)})`,
};

export async function aggregateRows(
  sources: Rows & Pick<PlanSources, 'relatedNumbers'>,
  query: AggregateQuery,
  party: Party | undefined,
): Promise<Aggregate> {
  const { from, parameters } = await matching(sources, shapeFilter(query.filter, encoding), party);
  const { readers, tableNumber, relatedNumbers } = sources;
  const sql = aggregateStatement(query, aggregateSql, { from });
  const { rows, version } = await readers.read(sql, parameters, tableNumber, { party, relatedNumbers });
  return aggregateOf(rows, query, aggregateSql, versionText(version));
}

type Rows = Pick<PlanSources, 'readers' | 'layout' | 'layoutOf' | 'tableNumber'>;

/**
 * All undeleted rows that match, from FROM on. An index of words finds those of a search. Where indexes lead from the rows that references
 * name to those of the table, they are walked, because a count visits all that match anyway.
 */
async function matching(
  sources: Rows,
  { shape, values }: ShapedFilter<SqlValue>,
  party: Party | undefined,
): Promise<{ readonly from: string; readonly parameters: readonly SqlValue[] }> {
  const { layout } = sources;
  const slots: ValueSlot[] = [];
  const words = wordSearchOf(layout, shape);
  const drive = words === undefined ? driveOf(layout, sources.layoutOf, shape) : undefined;
  let from: string;
  let rest: readonly Shape[];
  if (drive !== undefined) {
    from = `${referringSql(layout, drive, `(${namedSql(drive.source, slots, layout.name)})`)} AND ${tickSql}`;
    rest = drive.rest;
  } else {
    if (words !== undefined) {
      await probe(words, values, sources, party);
      slots.push({ value: words.found.at });
    }
    from = `FROM ${source(layout, words?.found)} WHERE ${tickSql} AND deleted_at IS NULL`;
    rest = conjuncts(shape).filter((part) => !isFound(part, words?.found));
  }
  const conditions = rest.map((part) => ` AND ${compileFilter(part, slots, layout.name)}`);
  return {
    from: `${from}${conditions.join('')}`,
    parameters: slots.map(({ value }) => values[value] ?? null),
  };
}
