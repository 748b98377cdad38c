/**
 * The registries and the pages that describe them say the same: each generated page is, to the letter, what its
 * renderer makes of the code now. A page missing and a page with one code or setting too many both fail.
 *
 * Usage: node scripts/checks/generated-docs.ts
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { renderGeneratedPages } from '../generated-docs.ts';
import { readText } from '../source-tree.ts';
import type { Problem } from './problem.ts';
import { runAlone } from './problem.ts';

/** Renders every page and compares it with the file; a tree without any renderer is a problem of its own. */
export async function findGeneratedDocsProblems(root: string): Promise<readonly Problem[]> {
  const pages = await renderGeneratedPages(root);
  if (pages.length === 0)
    return [{ file: 'scripts/docs', message: 'There is no renderer of a page to compare' }];
  const problems: Problem[] = [];
  for (const { renderer, path, text } of pages) {
    if (!existsSync(join(root, path))) {
      problems.push({
        file: path,
        message: `${renderer} generates this page, which is missing: run npm run docs`,
      });
      continue;
    }
    const line = firstDifference(readText(root, path), text);
    if (line === undefined) continue;
    problems.push({ file: path, line, message: `Differs from what ${renderer} generates: run npm run docs` });
  }
  return problems;
}

function firstDifference(found: string, wanted: string): number | undefined {
  if (found === wanted) return undefined;
  const foundLines = found.split('\n');
  const wantedLines = wanted.split('\n');
  const index = foundLines.findIndex((line, at) => line !== wantedLines[at]);
  return (index === -1 ? foundLines.length : index) + 1;
}

if (import.meta.main) await runAlone(findGeneratedDocsProblems);
