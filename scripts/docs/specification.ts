/**
 * Fills the tables of docs/specification: below each section, which nodes decide its clauses and which tests prove them. The words of the
 * pages are written by hand and come out as they are.
 */
import { relative } from 'node:path/posix';
import { repositoryRoot } from '../source-tree.ts';
import type { Clause, SpecificationPage } from '../specification-pages.ts';
import { readSpecification, specificationFolder, tableBegin, tableEnd } from '../specification-pages.ts';
import { type Proof, proofsOf } from '../specification-proof.ts';

/** Every page that has clauses. */
export function renderPages(): readonly { readonly path: string; readonly text: string }[] {
  const prove = proofsOf(repositoryRoot);
  return readSpecification(repositoryRoot)
    .filter(({ clauses }) => clauses.length > 0)
    .map((page) => ({ path: page.path, text: renderPage(page, prove) }));
}

function renderPage({ written, clauses }: SpecificationPage, prove: (clause: Clause) => Proof): string {
  const lines = written.trimEnd().split('\n');
  // A section ends where the anchor before the next heading is, or the heading itself.
  const starts = lines.flatMap((line, index) =>
    line.startsWith('#') ? [lines[index - 2]?.startsWith('<a id=') ? index - 2 : index] : [],
  );
  const ends = [...starts.slice(1), lines.length];
  return starts
    .map((start, index) => {
      const end = ends[index] ?? lines.length;
      const own = clauses.filter(({ line }) => line - 1 >= start && line - 1 < end);
      const rows = own.flatMap((clause) => rowOf(clause, prove(clause)));
      const text = lines.slice(start, end).join('\n').trimEnd();
      return rows.length === 0 ? text : `${text}\n\n${tableOf(rows)}`;
    })
    .join('\n\n')
    .concat('\n');
}

function tableOf(rows: readonly string[]): string {
  return [tableBegin, '| clause | decided by | tested by |', '|---|---|---|', ...rows, tableEnd].join('\n');
}

function rowOf({ number, conduct }: Clause, { deciders, files, tests }: Proof): readonly string[] {
  if (deciders.length + files.length + tests.length + conduct.length === 0) return [];
  const named = tests.flatMap(({ title, files: found }) =>
    found.map((path) => `${linkTo(path)}: ${asText(title)}`),
  );
  const shown = new Set(tests.flatMap(({ files: found }) => found));
  const cited = files.filter((path) => !shown.has(path)).map(linkTo);
  const decided = [...new Set(deciders)].map((name) => `\`${name}\``).join(', ');
  const judged =
    conduct.length === 0
      ? []
      : [`[comity conduct](../guides/conduct.md): ${conduct.map((id) => `\`${id}\``).join(', ')}`];
  return [`| §${number} | ${decided} | ${[...named, ...cited, ...judged].join('<br>')} |`];
}

function linkTo(path: string): string {
  return `[${path.replace(/^test\//, '').replace(/(\.test)?\.ts$/, '')}](${relative(specificationFolder, path)})`;
}

/** A title as text of a table, with an ellipsis where each case puts something of its own. */
function asText(title: string): string {
  return title.replace(/\$\{[^}]*\}/g, '…').replace(/[\\`*_{}[\]<>|]/g, (character) => `\\${character}`);
}
