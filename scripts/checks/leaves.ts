/**
 * A source file under 40 lines whose one importer stands in the same folder, or in the folder above, belongs into that importer, unless
 * scripts/leaf-exceptions.ts says why not. Entries of threads have no importer and do not count.
 *
 * Usage: node scripts/checks/leaves.ts
 */
import { dirname, posix } from 'node:path';
import { leafExceptions } from '../leaf-exceptions.ts';
import { parseSource } from '../parse-source.ts';
import { listCode, readText } from '../source-tree.ts';
import type { Problem } from './problem.ts';
import { runAlone } from './problem.ts';

const leafLinesMax = 40;

/** @param exceptions the repository's own, unless others are given */
export function findLeafProblems(
  root: string,
  exceptions: ReadonlyMap<string, string> = leafExceptions,
): readonly Problem[] {
  const files = listCode(root).filter((file) => file.startsWith('src/'));
  const importers = new Map<string, Set<string>>();
  const lines = new Map<string, number>();
  for (const file of files) {
    const text = readText(root, file);
    lines.set(file, text.split('\n').length - 1);
    for (const { specifier } of parseSource(file, text).imports) {
      const target = posix.join(dirname(file), specifier);
      importers.set(target, (importers.get(target) ?? new Set()).add(file));
    }
  }
  const leaves = files.filter((file) => {
    const [importer, other] = importers.get(file) ?? [];
    if (importer === undefined || other !== undefined || (lines.get(file) ?? 0) >= leafLinesMax) return false;
    return [dirname(file), dirname(dirname(file))].includes(dirname(importer));
  });
  const found = leaves
    .filter((file) => !exceptions.has(file))
    .map((file) => ({
      file,
      message: `${lines.get(file)} lines with one importer, ${[...(importers.get(file) ?? [])][0]}: put it there`,
    }));
  const stale = [...exceptions.keys()]
    .filter((file) => !leaves.includes(file))
    .map((file) => ({
      file: 'scripts/leaf-exceptions.ts',
      message: `${file} no longer needs an exception`,
    }));
  return [...found, ...stale];
}

if (import.meta.main) await runAlone(findLeafProblems);
