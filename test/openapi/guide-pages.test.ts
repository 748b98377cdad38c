/** The guides as pages of the program: what they lead to is there, and their Markdown beside them is what people read. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { before, test } from 'node:test';
import type { DocsAsset } from '../../src/openapi/docs-assets.ts';
import { docsAssets } from '../../src/openapi/docs-assets.ts';
import { guidePages } from '../../src/openapi/guide-pages.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const pages = guidePages({ title: 'Tea & <Coffee>', root: '' }, 'docs');
const paths = new Set(
  [...pages, ...docsAssets({ title: 'Shop', root: '', hasGuides: true })].map(({ path }) => path),
);
const html = new Map<string, string>();

async function textOf(asset: DocsAsset): Promise<string> {
  return Buffer.from(await asset.read()).toString('utf8');
}

const at = (path: string): DocsAsset => {
  const found = pages.find((asset) => asset.path === path);
  assert(found !== undefined, path);
  return found;
};

before(async () => {
  for (const page of pages) {
    if (page.mediaType.startsWith('text/html')) html.set(page.path, await textOf(page));
  }
});

test('the index names each guide once', () => {
  const named = [...readFileSync('docs/guides/README.md', 'utf8').matchAll(/^- \[[^\]]+\]\((\S+\.md)\): /gm)];
  const files = globSync('docs/guides/*.md').map((path) => basename(path));
  assert.deepEqual(named.map(([, file]) => file).sort(), files.filter((file) => file !== 'README.md').sort());
});

test('every link of a page leads to a place that exists', () => {
  assert(html.size > 40);
  const broken: string[] = [];
  for (const [path, text] of html) {
    for (const [, href = ''] of text.matchAll(/href="([^"]+)"/g)) {
      if (/^(?:https?:|data:|\/openapi\.json)/.test(href)) continue;
      const [page = '', anchor] = href.split('#', 2);
      const target = page === '' ? path : page;
      const isThere =
        paths.has(target) && (anchor === undefined || html.get(target)?.includes(`id="${anchor}"`));
      if (!isThere) broken.push(`${path}: ${href}`);
    }
  }
  assert.deepEqual(broken, []);
});

test('a link to a file that is not served stays as its text', () => {
  const text = html.get('/docs/guides/querying') ?? '';
  assert(text.includes('desk') && !text.includes('examples/help-desk'));
});

test('a page has its Markdown beside it, without the remarks for tests', async () => {
  const text = await textOf(at('/docs/guides/writing.md'));
  assert(text.startsWith('# Writing\n') && !/^<!--/m.test(text));
  assert(html.get('/docs/guides/writing')?.includes('href="/docs/guides/writing.md"'));
  assert(![...html.values()].some((page) => page.includes('<!-- ')));
});

test('/llms.txt leads to the Markdown of every guide', async () => {
  const text = await textOf(at('/llms.txt'));
  const links = [...text.matchAll(/\]\((\/[^)]+)\)/g)].map(([, target]) => target ?? '');
  assert(links.length > 40);
  for (const link of links) assert(paths.has(link) || link === '/openapi.json', link);
});

test('a title is shown as text', () => {
  assert(html.get('/docs/guides')?.includes('<strong>Tea &amp; &lt;Coffee&gt;</strong>'));
});

test('a package without docs has no such pages', () => {
  assert.deepEqual(guidePages({ title: 'Shop', root: '' }, temporaryFolder()), []);
});
