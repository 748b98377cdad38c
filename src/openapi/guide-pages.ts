/**
 * The guides and the reference as pages of the program, each with its Markdown beside it, and `/llms.txt`, which lists them for programs
 * that read (llmstxt.org). They are the files of docs/ in the package, rendered at their first request; a package without them has no such
 * pages. The folders of pages are chosen here, their order by docs/guides/README.md.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import {
  type DocsAsset,
  type Documented,
  escapeHtml,
  pageCacheControl,
  plainHtml,
  plainPage,
} from './docs-assets.ts';

const folders = ['guides', 'reference'] as const;
const guidesPath = '/docs/guides';

type Site = Pick<Documented, 'title' | 'root'>;

/** @param docs the folder of the documentation */
export function guidePages(site: Site, docs: string): readonly DocsAsset[] {
  const index = join(docs, 'guides/README.md');
  if (!existsSync(index)) return [];
  const names = folders.flatMap((folder) =>
    readdirSync(join(docs, folder))
      .filter((file) => file.endsWith('.md'))
      .map((file) => `${folder}/${file}`),
  );
  const served = new Set(names.map(pathOf));
  return [
    ...names.flatMap((name) => {
      const read = () => readFile(join(docs, name), 'utf8');
      const path = pathOf(name);
      return [
        plainPage(path, async () => render(site, path, await read(), served)),
        plain(`${path}.md`, 'text/markdown; charset=utf-8', async () => withoutRemarks(await read())),
      ];
    }),
    plain('/llms.txt', 'text/plain; charset=utf-8', () => listFor(site, readFileSync(index, 'utf8'))),
  ];
}

function plain(path: string, mediaType: string, read: DocsAsset['read']): DocsAsset {
  return { path, mediaType, cacheControl: pageCacheControl, fields: [], read };
}

/** `guides/README.md` is the page of its folder. */
function pathOf(name: string): string {
  const path = `/docs/${name.slice(0, -'.md'.length)}`;
  return path === `${guidesPath}/README` ? guidesPath : path;
}

/** A line of comment says how a test runs the block after it (test/full/guides/read-examples.ts). */
function withoutRemarks(markdown: string): string {
  return markdown.replaceAll(/^<!-- .* -->\n/gm, '');
}

async function render(
  { title, root }: Site,
  path: string,
  markdown: string,
  served: ReadonlySet<string>,
): Promise<string> {
  const [{ Marked }, { default: Slugger }] = await Promise.all([import('marked'), import('github-slugger')]);
  const slugger = new Slugger();
  const folder = path === guidesPath ? path : posix.dirname(path);
  let heading = title;
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }) {
        const shown = this.parser.parseInline(tokens);
        if (depth === 1) heading = text;
        const id = slugger.slug(shown.replaceAll(/<[^>]*>/g, ''));
        return `<h${depth} id="${id}">${shown}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        const shown = this.parser.parseInline(tokens);
        const target = targetOf(href, folder, served);
        return target === undefined
          ? shown
          : `<a href="${escapeHtml(target.startsWith('/') ? `${root}${target}` : target)}">${shown}</a>`;
      },
      table(token) {
        const rows = [token.header, ...token.rows].map((cells, at) => {
          const name = at === 0 ? 'th' : 'td';
          const inline = cells.map(({ tokens }) => `<${name}>${this.parser.parseInline(tokens)}</${name}>`);
          return `<tr>${inline.join('')}</tr>\n`;
        });
        return `<div class="wide" tabindex="0"><table>\n${rows.join('')}</table></div>\n`;
      },
      code({ text }) {
        return `<pre tabindex="0"><code>${escapeHtml(text)}</code></pre>\n`;
      },
    },
  });
  const html = await marked.parse(withoutRemarks(markdown), { async: true });
  const twin = `<p class="quiet"><a href="${root}${path}.md">This page as Markdown</a></p>`;
  return plainHtml({
    ...{ title, root, heading },
    here: guidesPath,
    hasGuides: true,
    main: `${html}${twin}`,
  });
}

/** A URL, or a place on the same page. */
const outside = /^(?:https?:|#)/;

/** @returns undefined for a file that is not served, such as a test or a source of this program */
function targetOf(href: string, folder: string, served: ReadonlySet<string>): string | undefined {
  if (outside.test(href)) return href;
  const [file = '', anchor] = href.split('#', 2);
  const path = pathOf(posix.join(folder, file).slice('/docs/'.length));
  return served.has(path) ? `${path}${anchor === undefined ? '' : `#${anchor}`}` : undefined;
}

/** The list of guides with targets that a program can follow. */
function listFor({ title, root }: Site, index: string): string {
  const sections = index.slice(index.indexOf('\n## ') + 1);
  const guides = sections.replaceAll(/\]\(([\w-]+\.md)\)/g, `](${root}${guidesPath}/$1)`);
  return `# ${title} API

> An HTTP API served by Comity. The description of its operations is OpenAPI; errors are JSON with a stable code.

## API

- [OpenAPI](${root}/openapi.json): every operation, its input and its answers.
- [Errors](${root}/docs/reference/errors.md): every code, its status and what a client can do.
- [Limits](${root}/docs/reference/limits.md): sizes, rates and times.

${guides}`;
}
