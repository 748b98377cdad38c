/**
 * Pages of docs/ that are made from the code. Each file of scripts/docs/ exports `path`, the page it makes (relative
 * to the root), and `render()`, its whole text; `npm run docs` writes the pages and a check compares them.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { listCode } from './source-tree.ts';

export type GeneratedPage = {
  /** The renderer, relative to the root. */
  readonly renderer: string;
  readonly path: string;
  readonly text: string;
};

/**
 * Runs every renderer of a tree.
 *
 * @throws {TypeError} when a file of scripts/docs/ does not export `path` and `render()`
 */
export async function renderGeneratedPages(root: string): Promise<readonly GeneratedPage[]> {
  const pages: GeneratedPage[] = [];
  for (const renderer of listCode(root, ['scripts/docs'])) {
    const module = (await import(pathToFileURL(join(root, renderer)).href)) as Record<string, unknown>;
    const { path, render } = module;
    if (typeof path !== 'string' || typeof render !== 'function') {
      throw new TypeError(`Expected "${renderer}" to export path and render(), got ${Object.keys(module)}`);
    }
    pages.push({ renderer, path, text: String(await render()) });
  }
  return pages;
}
