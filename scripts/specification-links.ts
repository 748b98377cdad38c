/** Section signs of our specification as links to its clauses, for the pages of docs/ that are made from the code. */
import { dirname, relative } from 'node:path/posix';
import { listCitations } from './section-citations.ts';
import { anchorOf, readSpecification } from './specification-pages.ts';

/**
 * Returns a function that links the sections in the text of a page. Those of standards, and those that no clause has, stay as they are.
 *
 * @returns `path` is that of the page, relative to the root
 */
export function sectionLinks(root: string): (path: string, text: string) => string {
  const pages = new Map(
    readSpecification(root).flatMap(({ path, clauses }) =>
      clauses.map(({ number }) => [number, path] as const),
    ),
  );
  return (path, text) => {
    let linked = '';
    let end = 0;
    for (const { standard, section, offset } of listCitations(text)) {
      const page = standard === undefined ? pages.get(section) : undefined;
      if (page === undefined) continue;
      linked += `${text.slice(end, offset)}[\u00a7${section}](${relative(dirname(path), page)}#${anchorOf(section)})`;
      end = text.indexOf(section, offset) + section.length;
    }
    return linked + text.slice(end);
  };
}
