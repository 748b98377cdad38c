/**
 * A compiled list query. Where an index serves it, pages are read on the calling thread; everything else, and far
 * offsets, goes to a reader thread, so that no scan stalls the event loop.
 */
import type { StatementSync } from 'node:sqlite';
import { pageOf, shapeOf } from '../page-of-rows.ts';
import { rowsInOrder, rowsLimit, unbounded } from '../rows-of-plan.ts';
import { serve } from '../serve.ts';
import type { Keyset, ListQuery, MaybePromise, Page, Plan, Position, Row } from '../store.ts';
import { versionText } from '../version-text.ts';
import type { Cells } from './cells.ts';
import { bind, compilePage, type PageStatement, type Selection } from './compile/select.ts';
import type { Layout } from './layout.ts';
import type { ReaderPool } from './reader/pool.ts';
import type { Snapshot } from './snapshot.ts';

/** Rows that a page may skip on the calling thread: about 50 µs. */
const offsetOnCallerMax = 1000;

export type PlanSources = {
  readonly snapshot: Snapshot;
  readonly readers: ReaderPool;
  readonly layout: Layout;
  readonly tableNumber: number;
  /** Whether the statement of this text sorts: the same for any values, so each text is explained once. */
  readonly explained: Map<string, boolean>;
};

/** Texts of statements, of which a program has as many as kinds of lists; beyond it some are explained again. */
const explainedMax = 2048;

export function makePlan(sources: PlanSources, query: ListQuery): Plan {
  const { snapshot, layout, tableNumber } = sources;
  if (query.sort.length === 0) throw new RangeError('a list needs a sort that ends with the id');
  const service = serve(layout, query.filter, query.sort);
  if (service === 'never') {
    return {
      bounded: true,
      page: () =>
        pageOf(
          [],
          query,
          false,
          snapshot.run(() => snapshot.version(tableNumber)),
        ),
      rows: () => [],
    };
  }
  const { filter, sort } = query;
  const scan: Selection = { layout, filter, sort, service: undefined, whole: false, timed: true };
  const walk: Selection = { layout, filter, sort, service, whole: false, timed: false };
  const start = service === undefined ? [] : compilePage(walk, { from: 'start' });
  if (service === undefined || (!service.oneRow && sorts(sources, sort, start))) {
    return {
      bounded: false,
      page: (position) => readThere(sources, query, scan, position),
      rows() {
        throw unbounded();
      },
    };
  }
  const pages = new Map<string, readonly Prepared[]>([['start', prepare(snapshot, start)]]);
  const wholes = new Map<string, readonly Prepared[]>();
  return {
    bounded: true,
    page(position): MaybePromise<Page> {
      if (position.from === 'offset' && position.offset > offsetOnCallerMax) {
        return readThere(sources, query, { ...walk, timed: true }, position);
      }
      return readHere(sources, query, walk, pages, position);
    },
    rows(position, limit) {
      return readRows(sources, query, { ...walk, whole: true }, wholes, position, rowsLimit(query, limit));
    },
  };
}

type Prepared = PageStatement & { readonly statement: StatementSync };

function prepare(snapshot: Snapshot, pages: readonly PageStatement[]): readonly Prepared[] {
  return pages.map((page) => ({ ...page, statement: snapshot.prepare(page.sql) }));
}

/** Whether SQLite would sort rows instead of walking the index in the order asked for. */
function sorts(
  { snapshot, explained }: PlanSources,
  sort: ListQuery['sort'],
  pages: readonly PageStatement[],
): boolean {
  return pages.some((page) => {
    const known = explained.get(page.sql);
    if (known !== undefined) return known;
    const explain = snapshot.prepare(`EXPLAIN QUERY PLAN ${page.sql}`);
    const steps = explain.all(...bind(page, sort, { from: 'start' }, 1));
    const found = steps.some((step) => String((step as unknown as Cells)[3]).includes('TEMP B-TREE'));
    if (explained.size >= explainedMax) explained.clear();
    explained.set(page.sql, found);
    return found;
  });
}

function readHere(
  { snapshot, tableNumber }: PlanSources,
  query: ListQuery,
  selection: Selection,
  pages: Map<string, readonly Prepared[]>,
  position: Position,
): Page {
  return snapshot.run(() => {
    // One row more than the page holds tells whether rows remain.
    const rows = walked(snapshot, query, selection, pages, position, query.limit + 1);
    return pageOf(rows, query, position.from === 'before', snapshot.version(tableNumber));
  });
}

function readRows(
  { snapshot }: PlanSources,
  query: ListQuery,
  selection: Selection,
  statements: Map<string, readonly Prepared[]>,
  position: Keyset,
  limit: number,
): readonly Row[] {
  return snapshot.run(() =>
    rowsInOrder(walked(snapshot, query, selection, statements, position, limit), position.from === 'before'),
  );
}

/** At most `limit` rows from the position on, in the order read; only within `run`. */
function walked(
  snapshot: Snapshot,
  { sort }: ListQuery,
  selection: Selection,
  kept: Map<string, readonly Prepared[]>,
  position: Position,
  limit: number,
): readonly Cells[] {
  const shape = shapeOf(sort, position);
  let statements = kept.get(shape);
  if (statements === undefined) {
    statements = prepare(snapshot, compilePage(selection, position));
    kept.set(shape, statements);
  }
  let rows: readonly Cells[] = [];
  for (const page of statements) {
    const wanted = limit - rows.length;
    if (wanted === 0) break;
    const values = bind(page, sort, position, wanted);
    const found = page.statement.all(...values) as unknown as readonly Cells[];
    rows = rows.length === 0 ? found : [...rows, ...found];
  }
  return rows;
}

async function readThere(
  { readers, tableNumber, snapshot }: PlanSources,
  query: ListQuery,
  selection: Selection,
  position: Position,
): Promise<Page> {
  shapeOf(query.sort, position);
  const [page] = compilePage(selection, position);
  const backwards = position.from === 'before';
  if (page === undefined) {
    return pageOf(
      [],
      query,
      backwards,
      snapshot.run(() => snapshot.version(tableNumber)),
    );
  }
  const values = bind(page, query.sort, position, query.limit + 1);
  const { rows, version } = await readers.read(page.sql, values, tableNumber);
  return pageOf(rows, query, backwards, versionText(version));
}
