/**
 * A compiled list query. What an index serves is read on the read lane, each page in one round trip; everything else, and far
 * offsets, on the scan lane.
 */
import { pageOf, shapeOf } from '../../page-of-rows.ts';
import { rowsInOrder, rowsLimit, unbounded } from '../../rows-of-plan.ts';
import { serve } from '../../serve.ts';
import type { ListQuery, Page, Plan, Position } from '../../store.ts';
import { versionText } from '../../version-text.ts';
import { bind, type PageStatement, type Selection } from '../compile/page-statement.ts';
import { compileScan } from '../compile/scan.ts';
import { compileWalk } from '../compile/walk.ts';
import type { Rows } from '../connection/connection.ts';
import type { ReadLane } from '../connection/read-lane.ts';
import type { ScanLane } from '../connection/scan-lane.ts';
import type { Layout } from '../schema/layout.ts';
import type { Versions } from './versions.ts';

/** Rows that a page may skip on the read lane: about 0.2 ms. */
const offsetOnReadLaneMax = 1000;

export type PlanSources = {
  readonly read: Pick<ReadLane, 'send'>;
  readonly scan: Pick<ScanLane, 'read'>;
  readonly versions: Versions;
  readonly layout: Layout;
  /** Not quoted. */
  readonly schema: string;
  readonly tableNumber: number;
};

/** @throws RangeError for a query without a sort */
export function makePlan(sources: PlanSources, query: ListQuery): Plan {
  const { layout, schema, tableNumber, read, scan, versions } = sources;
  const { filter, sort, limit } = query;
  if (sort.length === 0) throw new RangeError('a list needs a sort that ends with the id');
  const service = serve(layout, filter, sort);
  if (service === 'never') {
    const page = async (): Promise<Page> =>
      pageOf([], query, false, await versions.version(layout.table.name));
    return { bounded: true, page, rows: async () => [] };
  }
  const selection: Selection = { layout, schema, tableNumber, filter, sort, rows: limit + 1, whole: false };
  const walks = new Map<string, PageStatement>();
  const wholes = new Map<string, PageStatement>();
  return {
    bounded: service !== undefined,
    async page(position) {
      const shape = shapeOf(sort, position);
      const far = position.from === 'offset' && position.offset > offsetOnReadLaneMax;
      if (service === undefined || far) {
        const call = bind(compileScan(selection, position), sort, position);
        return pageFrom(await scan.read(call), query, position);
      }
      const walk = compiled(walks, shape, () => compileWalk(selection, service, position));
      return pageFrom(await read.send(bind(walk, sort, position)), query, position);
    },
    async rows(position, asked) {
      if (service === undefined) throw unbounded();
      const wanted = rowsLimit(query, asked);
      const shape = shapeOf(sort, position);
      const walk = compiled(wholes, shape, () =>
        compileWalk({ ...selection, rows: limit, whole: true }, service, position),
      );
      return rowsInOrder(await read.send(bind(walk, sort, position, wanted)), position.from === 'before');
    },
  };
}

function compiled(
  kept: Map<string, PageStatement>,
  shape: string,
  compile: () => PageStatement,
): PageStatement {
  let statement = kept.get(shape);
  if (statement === undefined) {
    statement = compile();
    kept.set(shape, statement);
  }
  return statement;
}

/** An empty page is one row that has a version and no document. */
function pageFrom(rows: Rows, query: ListQuery, position: Position): Page {
  const first = rows[0];
  const version = versionText(Number(first?.at(-1) ?? 0));
  const found = first === undefined || first[0] === null ? [] : rows;
  return pageOf(found, query, position.from === 'before', version);
}
