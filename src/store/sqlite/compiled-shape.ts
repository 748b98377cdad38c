/** The compiled form of list queries, cached by their shape: the ways to read pages, and the statements of each way and kind of position. */
import { memoryBounds } from '../../memory/bounds.ts';
import { OctetCache, octetsOfText } from '../../memory/octet-cache.ts';
import type { SqlValue } from '../field-value.ts';
import type { ValueSlot } from '../filter-shape.ts';
import { shapeOf } from '../page-of-rows.ts';
import type { ListQuery, Position } from '../store.ts';
import { compileRanked } from './compile/ranked.ts';
import { compilePage, type PageStatement, type Selection } from './compile/select.ts';
import type { ReaderPool } from './reader/pool.ts';
import type { RelatedSearch } from './related-search.ts';
import type { Snapshot } from './snapshot.ts';
import type { Layout } from './table-layout.ts';
import type { Search } from './word-search.ts';

/** Kinds of positions (which values of the key are null) whose statements one shape caches. */
const positionsMax = 64;

export type PlanSources = {
  readonly snapshot: Snapshot;
  readonly readers: ReaderPool;
  readonly layout: Layout;
  readonly layoutOf: (table: string) => Layout;
  readonly tableNumber: number;
  /** Those of the other tables that the filter looks at. */
  readonly relatedNumbers: readonly number[];
  readonly shapes: CompiledShapes;
};

export type CompiledShapes = OctetCache<CompiledShape>;

/** Shared by queries that differ only in values and limit. */
export type CompiledShape = {
  readonly key: string;
  /** Reads pages on a reader thread. */
  readonly scan: Selection;
  /** Reads pages on the calling thread; undefined if no index serves them. */
  readonly walk: Selection | undefined;
  /** Set if an index of words finds the rows: how few and how many found rows are read. */
  readonly search: Search | undefined;
  /** Set if indexes lead from the rows that references name to those of the list. */
  readonly related?: RelatedSearch | undefined;
  /** A condition for all rows of a walk: one value, 1 if it holds. */
  readonly gate?: { readonly sql: string; readonly parameters: readonly ValueSlot[] } | undefined;
  /** No row can match. */
  readonly empty: boolean;
  readonly statements: Map<string, readonly PageStatement[]>;
};

export function createCompiledShapes(): CompiledShapes {
  return new OctetCache({ octetsMax: memoryBounds.sqliteShapes.octets, octetsOf: octetsOfShape });
}

/** One query of a shape. */
export type Run = {
  readonly sources: PlanSources;
  readonly query: ListQuery;
  readonly shape: CompiledShape;
  readonly values: readonly SqlValue[];
};

/** The statements of a page, compiled at the first position of their kind. */
export function statementsOf(
  { sources: { shapes }, shape }: Run,
  selection: Selection,
  position: Position,
  way = kindOf(selection),
  compile = () =>
    selection.ranked === undefined ? compilePage(selection, position) : compileRanked(selection, position),
): readonly PageStatement[] {
  const kind = `${way}${shapeOf(selection.sort, position)}`;
  const kept = shape.statements.get(kind);
  if (kept !== undefined) return kept;
  if (shape.statements.size >= positionsMax) shape.statements.clear();
  const compiled = compile();
  shape.statements.set(kind, compiled);
  // Set again, because its size has grown.
  shapes.set(shape.key, shape);
  return compiled;
}

function kindOf({ whole, found, drive, timed, capped }: Selection): string {
  if (whole) return 'whole ';
  if (found !== undefined) return `found ${found.by} `;
  if (drive !== undefined) return 'driven ';
  if (timed) return 'timed ';
  return capped ? 'capped ' : '';
}

const statementOctets = 256;

function octetsOfShape({ key, statements }: CompiledShape): number {
  let octets = 1024 + 4 * octetsOfText(key);
  for (const pages of statements.values()) {
    for (const { sql, parameters } of pages) {
      octets += statementOctets + octetsOfText(sql) + 32 * parameters.length;
    }
  }
  return octets;
}
