/**
 * Plans of list queries. What depends on the shape of a query alone (its table, the shape of its filter, its sort, its limit) is compiled
 * once and kept by shape; a plan adds the values. What an index serves is read on the read lane, each page in one round trip;
 * everything else, and far offsets, on the scan lane.
 */
import { memoryBounds } from '../../../memory/bounds.ts';
import { OctetCache, octetsOfText } from '../../../memory/octet-cache.ts';
import { keyOfSort } from '../../filter-shape.ts';
import { docBytesMax, leftOut, pageOf, shapeOf } from '../../page-of-rows.ts';
import { rowsInOrder, rowsLimit, unbounded } from '../../rows-of-plan.ts';
import { type Service, serve } from '../../serve.ts';
import type { ListQuery, Page, Plan, Position } from '../../store.ts';
import { versionText } from '../../version-text.ts';
import { shapeOfFilter } from '../compile/filter.ts';
import { bind, type OctetBound, type PageStatement, type Selection } from '../compile/page-statement.ts';
import { compileScan } from '../compile/scan.ts';
import { compileWalk } from '../compile/walk.ts';
import type { Rows } from '../connection/connection.ts';
import type { ReadLane } from '../connection/read-lane.ts';
import type { ScanLane } from '../connection/scan-lane.ts';
import type { Layout } from '../schema/layout.ts';
import type { Versions } from './versions.ts';

/** Rows that a page may skip on the read lane: about 0.2 ms. */
const offsetOnReadLaneMax = 1000;

/** Kinds of positions (which values of the key are null) whose statements one shape keeps. */
const positionsMax = 64;

export type PlanSources = {
  readonly read: Pick<ReadLane, 'send'>;
  readonly scan: Pick<ScanLane, 'read'>;
  readonly versions: Versions;
  readonly layout: Layout;
  /** Not quoted. */
  readonly schema: string;
  readonly tableNumber: number;
  readonly shapes: CompiledShapes;
};

export type CompiledShapes = OctetCache<CompiledShape>;

/** Queries that differ in their values alone share one. */
type CompiledShape = {
  readonly key: string;
  readonly selection: Selection;
  /** Undefined where no index serves the shape. */
  readonly service: Service | 'never' | undefined;
  /** By kind of statement and of position. */
  readonly statements: Map<string, PageStatement>;
};

export function createCompiledShapes(): CompiledShapes {
  return new OctetCache({ octetsMax: memoryBounds.postgresShapes.octets, octetsOf: octetsOfShape });
}

/** @throws RangeError for a query without a sort */
export function makePlan(sources: PlanSources, query: ListQuery): Plan {
  const { layout, read, scan, versions, shapes } = sources;
  const { sort } = query;
  if (sort.length === 0) throw new RangeError('a list needs a sort that ends with the id');
  const { shape: filter, key: filterKey, values } = shapeOfFilter(query.filter);
  const key = `${sources.tableNumber} ${query.limit} ${query.bytesMax} ${keyOfSort(sort)}${filterKey}`;
  let shape = shapes.get(key);
  if (shape === undefined) {
    const { schema, tableNumber } = sources;
    const common = { layout, schema, tableNumber, filter, sort, whole: false, octets: undefined };
    const selection = { ...common, rows: query.limit + 1 };
    shape = { key, selection, service: serve(layout, filter, sort), statements: new Map() };
    shapes.set(key, shape);
  }
  const { selection, service } = shape;
  if (service === 'never') {
    const page = async (): Promise<Page> =>
      pageOf([], query, {
        backwards: false,
        version: await versions.version(layout.table.name),
        isCut: false,
      });
    return { bounded: true, page, rows: async () => [] };
  }
  const { bytesMax } = query;
  const capped =
    bytesMax === undefined ? undefined : ({ kind: 'capped', docBytesMax: docBytesMax(query) } as const);
  const cut = bytesMax === undefined ? undefined : ({ kind: 'cut', bytesMax } as const);
  const compiled = (kind: string, compile: () => PageStatement) => statementOf(shapes, shape, kind, compile);
  return {
    bounded: service !== undefined,
    async page(position, party) {
      const kind = shapeOf(sort, position);
      const far = position.from === 'offset' && position.offset > offsetOnReadLaneMax;
      if (service === undefined || far) {
        const scanned = compiled(`scan ${kind}`, () => compileScan({ ...selection, octets: cut }, position));
        const call = bind(scanned, sort, { values, position });
        return pageFrom(await scan.read(call, party), query, position, cut !== undefined);
      }
      const walk = (octets: OctetBound | undefined) => {
        const statement = compiled(`${octets?.kind ?? 'walk'} ${kind}`, () =>
          compileWalk({ ...selection, octets }, service, position),
        );
        return read.send(bind(statement, sort, { values, position }));
      };
      const rows = await walk(capped);
      if (!rows.some((cells) => cells[0] === leftOut)) return pageFrom(rows, query, position, false);
      return pageFrom(await walk(cut), query, position, true);
    },
    async rows(position, asked) {
      if (service === undefined) throw unbounded();
      const limit = rowsLimit(query, asked);
      const walk = compiled(`whole ${shapeOf(sort, position)}`, () =>
        compileWalk({ ...selection, rows: query.limit, whole: true }, service, position),
      );
      const rows = await read.send(bind(walk, sort, { values, position, limit }));
      return rowsInOrder(rows, position.from === 'before');
    },
  };
}

/** The statement of a page, compiled at the first position of its kind. */
function statementOf(
  shapes: CompiledShapes,
  shape: CompiledShape,
  kind: string,
  compile: () => PageStatement,
): PageStatement {
  const kept = shape.statements.get(kind);
  if (kept !== undefined) return kept;
  if (shape.statements.size >= positionsMax) shape.statements.clear();
  const statement = compile();
  shape.statements.set(kind, statement);
  // Weighed again, for it has grown.
  shapes.set(shape.key, shape);
  return statement;
}

const statementOctets = 256;

function octetsOfShape({ key, statements }: CompiledShape): number {
  let octets = 1024 + 4 * octetsOfText(key);
  for (const { sql, parameters } of statements.values()) {
    octets += statementOctets + octetsOfText(sql) + 32 * parameters.length;
  }
  return octets;
}

/**
 * An empty page is one row that has a version and no document.
 * @param isCut whether the statement was one that octets end, whose rows say whether more follow
 */
function pageFrom(rows: Rows, query: ListQuery, position: Position, isCut: boolean): Page {
  const first = rows[0];
  const version = versionText(Number(first?.at(-1) ?? 0));
  const found = first === undefined || first[0] === null ? [] : rows;
  return pageOf(found, query, {
    backwards: position.from === 'before',
    version,
    isCut: isCut && found.length > 0 && found.at(-1)?.at(-2) !== null,
  });
}
