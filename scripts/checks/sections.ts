/**
 * Every section sign resolves: to a clause of docs/specification, or to a standard whose name is before it. What points into a document that is
 * not in the repository is refused, whatever it is called.
 *
 * Usage: node scripts/checks/sections.ts
 */
import { extname } from 'node:path';
import { expandCitation, listCitations } from '../section-citations.ts';
import { listFiles, readText } from '../source-tree.ts';
import { readSpecification, specificationFolder } from '../specification-pages.ts';
import type { Problem } from './problem.ts';
import { runAlone } from './problem.ts';

const folders = ['src', 'conduct', 'test', 'scripts', 'docs', 'bench', 'examples'];
const rootPages = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md'];
const extensions: ReadonlySet<string> = new Set(['.ts', '.mjs', '.js', '.md', '.sql', '.html']);

/** Pointers into documents that readers of the repository do not have. */
const foreignDocument = new RegExp(
  [
    ...['\\bdesign,? \u00a7', '\\(desig[n]\\b', '\\bstyle (?:habit|\u00a7)', '\\bpart \\d\\b'],
    ...['[(;,] ?surface\\b(?=[ ,;.:)"])', '\\bsurface(?:,? "|\\.md\\b)', '(?:// | {2,})surface: '],
  ].join('|'),
  'gi',
);

/** Finds citations that lead nowhere in the code, the tests and the documentation. */
export function findSectionProblems(root: string): readonly Problem[] {
  const clauses = readSpecification(root).flatMap((page) => page.clauses);
  const known = new Set(clauses.map(({ number }) => number));
  const problems: Problem[] = [];
  for (const file of [...folders.flatMap((folder) => listFiles(root, folder)), ...presentPages(root)]) {
    if (!extensions.has(extname(file))) continue;
    const text = readText(root, file);
    const tell = (offset: number, message: string) =>
      problems.push({ file, line: text.slice(0, offset).split('\n').length, message });
    for (const citation of listCitations(text)) {
      if (citation.standard !== undefined || citation.section === '') continue;
      const missing = expandCitation(citation).find((section) => !known.has(section));
      if (missing === undefined) continue;
      tell(
        citation.offset,
        `\u00a7${missing} is not a clause of ${specificationFolder}: name the standard, or write the clause`,
      );
    }
    if (file.startsWith(`${specificationFolder}/`)) continue; // Its pages are parts.
    for (const match of text.matchAll(foreignDocument))
      tell(match.index, `"${match[0]}" does not point into a document of the repository`);
  }
  return problems;
}

function presentPages(root: string): readonly string[] {
  const present = new Set(listFiles(root).filter((path) => !path.includes('/')));
  return rootPages.filter((page) => present.has(page));
}

if (import.meta.main) await runAlone(findSectionProblems);
