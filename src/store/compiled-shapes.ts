/**
 * Compiled list queries, cached by their shape, which queries that differ only in values share: the ways to read pages, and the statements
 * of each way and kind of position.
 */
import { memoryBounds } from '../memory/bounds.ts';
import { OctetCache, octetsOfText } from '../memory/octet-cache.ts';
import { keyOfSort } from './filter-shape.ts';
import type { ListQuery } from './store.ts';

/** Kinds of positions (which values of the key are null) whose statements one shape caches. */
const positionsMax = 64;

const statementOctets = 256;

type Statement = { readonly sql: string; readonly parameters: readonly unknown[] };

/** @template S a statement, or several that are read in turn */
type Compiled<S> = { readonly key: string; readonly statements: ReadonlyMap<string, S> };

export function createCompiledShapes<C extends Compiled<Statement | readonly Statement[]>>(): OctetCache<C> {
  return new OctetCache<C>({ octetsMax: memoryBounds.listShapes.octets, octetsOf: octetsOfShape });
}

/** @param of what the shape depends on besides the sort @throws RangeError for a query without a sort */
export function compiledShape<C extends {}>(
  shapes: OctetCache<C>,
  { sort, heads = false }: Pick<ListQuery, 'sort' | 'heads'>,
  of: string,
  compile: (key: string) => C,
): C {
  if (sort.length === 0) throw new RangeError('a list needs a sort that ends with the id');
  const key = `${heads ? 'heads ' : ''}${keyOfSort(sort)}${of}`;
  let shape = shapes.get(key);
  if (shape === undefined) {
    shape = compile(key);
    shapes.set(key, shape);
  }
  return shape;
}

/** @returns the statement of this kind, compiled when it is first used */
export function compiledStatement<S, C extends Compiled<S> & { readonly statements: Map<string, S> }>(
  shapes: OctetCache<C>,
  shape: C,
  kind: string,
  compile: () => S,
): S {
  const kept = shape.statements.get(kind);
  if (kept !== undefined) return kept;
  if (shape.statements.size >= positionsMax) shape.statements.clear();
  const compiled = compile();
  shape.statements.set(kind, compiled);
  // Set again, because its size has grown.
  shapes.set(shape.key, shape);
  return compiled;
}

function octetsOfShape({ key, statements }: Compiled<Statement | readonly Statement[]>): number {
  let octets = 1024 + 4 * octetsOfText(key);
  for (const { sql, parameters } of [...statements.values()].flat()) {
    octets += statementOctets + octetsOfText(sql) + 32 * parameters.length;
  }
  return octets;
}
