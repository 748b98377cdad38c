/**
 * A source file under 200 lines with one importer belongs into that importer if both fit into one file, unless scripts/leaf-exceptions.ts
 * says why not. Entries of threads, and what is imported only when it is needed, do not count.
 *
 * Usage: node scripts/checks/leaves.ts
 */
import { dirname, posix } from 'node:path';
import { leafExceptions } from '../leaf-exceptions.ts';
import { parseSource } from '../parse-source.ts';
import { listCode, readText } from '../source-tree.ts';
import type { Problem } from './problem.ts';
import { runAlone } from './problem.ts';
import { fileLinesMax } from './sizes.ts';

const leafLinesMax = 200;

/** @param exceptions the repository's own, unless others are given */
export function findLeafProblems(
  root: string,
  exceptions: ReadonlyMap<string, string> = leafExceptions,
): readonly Problem[] {
  const files = listCode(root).filter((file) => file.startsWith('src/'));
  const importers = new Map<string, Set<string>>();
  const loadedLater = new Set<string>();
  const lines = new Map<string, number>();
  for (const file of files) {
    const text = readText(root, file);
    lines.set(file, text.split('\n').length - 1);
    for (const { specifier, kind } of parseSource(file, text).imports) {
      const target = posix.join(dirname(file), specifier);
      importers.set(target, (importers.get(target) ?? new Set()).add(file));
      if (kind === 'dynamic' || kind === 'url') loadedLater.add(target);
    }
  }
  const leaves = files.filter((file) => {
    const [importer, other] = importers.get(file) ?? [];
    if (importer === undefined || other !== undefined || loadedLater.has(file)) return false;
    const length = lines.get(file) ?? 0;
    return length < leafLinesMax && length + (lines.get(importer) ?? 0) <= fileLinesMax;
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
