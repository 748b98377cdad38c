/**
 * A compiled list query. Where an index serves it, pages are read on the calling thread; everything else, and far
 * offsets, goes to a reader thread, so that no scan stalls the event loop.
 */
import type { StatementSync } from 'node:sqlite';
import type { Scalar } from '../../model/field.ts';
import type { ListQuery, MaybePromise, Page, Plan, Position } from '../store.ts';
import { bind, compilePage, type PageStatement, type Selection, shapeOf } from './compile/select.ts';
import { serve } from './compile/serve.ts';
import type { Layout } from './layout.ts';
import type { ReaderPool } from './reader/pool.ts';
import type { Cells } from './row.ts';
import { type Snapshot, versionText } from './snapshot.ts';

/** Rows that a page may skip on the calling thread: about 50 µs. */
const offsetOnCallerMax = 1000;

export type PlanSources = {
  readonly snapshot: Snapshot;
  readonly readers: ReaderPool;
  readonly layout: Layout;
  readonly tableNumber: number;
};

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
    };
  }
  const scan: Selection = { layout, ...query, service: undefined, timed: true };
  const walk: Selection = { layout, ...query, service, timed: false };
  if (service === undefined || (!service.oneRow && sorts(snapshot, walk))) {
    return { bounded: false, page: (position) => readThere(sources, query, scan, position) };
  }
  const pages = new Map<string, PreparedPage>();
  return {
    bounded: true,
    page(position): MaybePromise<Page> {
      if (position.from === 'offset' && position.offset > offsetOnCallerMax) {
        return readThere(sources, query, { ...walk, timed: true }, position);
      }
      return readHere(sources, walk, pages, position);
    },
  };
}

type PreparedPage = PageStatement & { readonly statement: StatementSync };

/** Whether SQLite would sort rows instead of walking the index in the order asked for. */
function sorts(snapshot: Snapshot, selection: Selection): boolean {
  const compiled = compilePage(selection, { from: 'start' });
  const explain = snapshot.prepare(`EXPLAIN QUERY PLAN ${compiled.sql}`);
  const steps = explain.all(...bind(compiled, selection.sort, { from: 'start' }));
  return steps.some((step) => String((step as unknown as Cells)[3]).includes('TEMP B-TREE'));
}

function readHere(
  { snapshot, tableNumber }: PlanSources,
  selection: Selection,
  pages: Map<string, PreparedPage>,
  position: Position,
): Page {
  return snapshot.run(() => {
    const shape = shapeOf(selection.sort, position);
    let page = pages.get(shape);
    if (page === undefined) {
      const compiled = compilePage(selection, position);
      page = { ...compiled, statement: snapshot.prepare(compiled.sql) };
      pages.set(shape, page);
    }
    const parameters = bind(page, selection.sort, position);
    const rows = page.statement.all(...parameters) as unknown as readonly Cells[];
    return pageOf(rows, selection, position.from === 'before', snapshot.version(tableNumber));
  });
}

async function readThere(
  { readers, tableNumber }: PlanSources,
  query: ListQuery,
  selection: Selection,
  position: Position,
): Promise<Page> {
  shapeOf(query.sort, position);
  const compiled = compilePage(selection, position);
  const parameters = bind(compiled, query.sort, position);
  const { rows, version } = await readers.read(compiled.sql, parameters, tableNumber);
  return pageOf(rows, query, position.from === 'before', versionText(version));
}

function pageOf(
  rows: readonly Cells[],
  { limit }: { readonly limit: number },
  backwards: boolean,
  version: string,
): Page {
  const more = rows.length > limit;
  const count = more ? limit : rows.length;
  const docs: string[] = new Array(count);
  for (let index = 0; index < count; index += 1) {
    docs[backwards ? count - 1 - index : index] = rows[index]?.[0] as string;
  }
  const nearest = keyOf(count === 0 ? undefined : rows[0]);
  const farthest = keyOf(count === 0 ? undefined : rows[count - 1]);
  return { docs, first: backwards ? farthest : nearest, last: backwards ? nearest : farthest, more, version };
}

function keyOf(row: Cells | undefined): readonly Scalar[] | null {
  return row === undefined ? null : (row.slice(1) as readonly Scalar[]);
}
