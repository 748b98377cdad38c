/**
 * No file imports itself through others. Imports of types count: they run nothing, but two files that name each
 * other's types can be read only together.
 *
 * Usage: node scripts/checks/cycles.ts
 */
import { dirname, posix } from 'node:path';
import { parseSource } from '../parse-source.ts';
import { listCode, readText } from '../source-tree.ts';
import type { Problem } from './problem.ts';
import { runAlone } from './problem.ts';

/** One problem for each knot of files that reach each other, at the file that comes first. */
export function findCycleProblems(root: string): readonly Problem[] {
  const files = listCode(root);
  const known = new Set(files);
  const edges = new Map<string, readonly string[]>();
  for (const file of files) {
    const imports = parseSource(file, readText(root, file)).imports.filter(({ kind }) => kind !== 'url');
    const targets = imports.map(({ specifier }) => posix.join(dirname(file), specifier));
    edges.set(
      file,
      [...new Set(targets)].filter((target) => known.has(target)),
    );
  }
  return findKnots(edges).map((knot) => ({
    file: knot[0] ?? '',
    message: `Import cycle: ${shortestCycle(edges, knot).join(' -> ')}`,
  }));
}

/** Tarjan's strongly connected components, those that hold a cycle; each in order of path. */
function findKnots(edges: ReadonlyMap<string, readonly string[]>): readonly (readonly string[])[] {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const knots: string[][] = [];
  const visit = (file: string): void => {
    order.set(file, order.size);
    lowest.set(file, order.size - 1);
    stack.push(file);
    for (const target of edges.get(file) ?? []) {
      if (!order.has(target)) visit(target);
      if (stack.includes(target)) lowest.set(file, Math.min(lowest.get(file) ?? 0, lowest.get(target) ?? 0));
    }
    if (lowest.get(file) !== order.get(file)) return;
    const knot = stack.splice(stack.indexOf(file));
    if (knot.length > 1 || edges.get(file)?.includes(file)) knots.push(knot.sort());
  };
  for (const file of edges.keys()) if (!order.has(file)) visit(file);
  return knots;
}

/** The shortest way from the first file of a knot back to itself, both ends named. */
function shortestCycle(
  edges: ReadonlyMap<string, readonly string[]>,
  knot: readonly string[],
): readonly string[] {
  const start = knot[0] ?? '';
  const ways: string[][] = [[start]];
  const seen = new Set<string>();
  for (let way = ways.shift(); way !== undefined; way = ways.shift()) {
    for (const target of edges.get(way.at(-1) ?? '') ?? []) {
      if (target === start) return [...way, start];
      if (seen.has(target) || !knot.includes(target)) continue;
      seen.add(target);
      ways.push([...way, target]);
    }
  }
  return knot;
}

if (import.meta.main) await runAlone(findCycleProblems);
