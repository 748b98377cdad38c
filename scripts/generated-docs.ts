/**
 * Pages of docs/ that are made from the code. Each file of scripts/docs/ exports `path`, the page it makes (relative
 * to the root), and `render()`, its whole text, or `renderPages()`, which gives several pages with their paths;
 * `npm run docs` writes the pages and a check compares them. A section sign in a page of one renderer becomes a link to docs/specification.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { listCode } from './source-tree.ts';
import { sectionLinks } from './specification-links.ts';

export type GeneratedPage = {
  /** The renderer, relative to the root. */
  readonly renderer: string;
  readonly path: string;
  readonly text: string;
};

/**
 * Runs every renderer of a tree.
 *
 * @throws {TypeError} when a file of scripts/docs/ exports neither `path` and `render()` nor `renderPages()`
 */
export async function renderGeneratedPages(root: string): Promise<readonly GeneratedPage[]> {
  const pages: GeneratedPage[] = [];
  const link = sectionLinks(root);
  for (const renderer of listCode(root, ['scripts/docs'])) {
    const module = (await import(pathToFileURL(join(root, renderer)).href)) as Record<string, unknown>;
    const { path, render, renderPages } = module;
    if (typeof renderPages === 'function') {
      const several = (await renderPages()) as readonly Omit<GeneratedPage, 'renderer'>[];
      pages.push(...several.map((page) => ({ renderer, ...page })));
      continue;
    }
    if (typeof path !== 'string' || typeof render !== 'function') {
      throw new TypeError(`Expected "${renderer}" to export path and render(), got ${Object.keys(module)}`);
    }
    pages.push({ renderer, path, text: link(path, String(await render())) });
  }
  return pages;
}
