/**
 * The documentation as a static site: the files of docs/ as they stand, with search. The order of the guides is that of their index. Links to
 * files outside docs/, such as tests and sources, stay as their text; a link to a page that does not exist fails the build. Beside each page is its
 * Markdown, and llms.txt lists the guides.
 */
import { copyFileSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import Slugger from 'github-slugger';
import { type DefaultTheme, defineConfig } from 'vitepress';

const docs = join(import.meta.dirname, '../../docs');
const title = 'Comity';
const description = 'An HTTP backend whose conduct is exact.';
const guideIndex = readFileSync(join(docs, 'guides/README.md'), 'utf8');

/** The sections of the index of guides. */
function guides(): DefaultTheme.SidebarItem[] {
  const sections = guideIndex.split('\n## ').slice(1);
  return sections.map((section) => ({
    text: section.slice(0, section.indexOf('\n')),
    items: [...section.matchAll(/^- \[([^\]]+)\]\(([^)]+)\.md\)/gm)].map(([, text = '', name = '']) => ({
      text,
      link: `/guides/${name}`,
    })),
  }));
}

/** The pages of a folder by their titles, in the order of their names, numbers as numbers. */
function pagesOf(folder: string): DefaultTheme.SidebarItem[] {
  return globSync(`${folder}/*.md`, { cwd: docs })
    .filter((file) => basename(file) !== 'README.md')
    .sort((one, other) => one.localeCompare(other, 'en', { numeric: true }))
    .map((file) => {
      const text = /^# (.+)$/m.exec(readFileSync(join(docs, file), 'utf8'))?.[1];
      return { text: text ?? file, link: `/${file.replace(/\.md$/, '')}` };
    });
}

/** VitePress would stop at a link that leaves docs/. */
function isOutside(href: string, page: string): boolean {
  return !/^(?:https?:|#|\/)/.test(href) && posix.join(posix.dirname(page), href).startsWith('../');
}

function twins(outDir: string): void {
  for (const file of globSync('**/*.md', { cwd: docs })) {
    copyFileSync(join(docs, file), join(outDir, file.replace(/README\.md$/, 'index.md')));
  }
  const list = guideIndex.slice(guideIndex.indexOf('\n## ') + 1).replaceAll('](', '](/guides/');
  writeFileSync(join(outDir, 'llms.txt'), `# ${title}\n\n> ${description}\n\n${list}`);
}

export default defineConfig({
  title,
  description,
  srcDir: '../docs',
  rewrites: { 'README.md': 'index.md', ':folder/README.md': ':folder/index.md' },
  cleanUrls: true,
  markdown: {
    anchor: { slugify: (text) => new Slugger().slug(text) },
    languageAlias: { haproxy: 'ini', caddyfile: 'nginx', vcl: 'c', h2o: 'yaml' },
    config: ({ core }) => {
      core.ruler.push('outside', ({ tokens, env }) => {
        const { relativePath } = env as { relativePath: string };
        for (const { children } of tokens) {
          const left: boolean[] = [];
          for (const token of children ?? []) {
            // The placeholders of templates are no expressions of Vue.
            if (token.type === 'code_inline') token.attrSet('v-pre', '');
            if (token.type === 'link_open') {
              const href = token.attrGet('href') ?? '';
              left.push(isOutside(href, relativePath));
              token.attrSet('href', href.replace(/README\.md(?=#|$)/, 'index.md'));
            }
            const isLeft =
              token.type === 'link_close' ? left.pop() : token.type === 'link_open' && left.at(-1);
            if (isLeft === true) Object.assign(token, { type: 'text', tag: '', attrs: null });
          }
        }
      });
    },
  },
  // The pages stand outside this folder, whose packages their code imports.
  vite: {
    resolve: {
      alias: {
        'vue/server-renderer': fileURLToPath(import.meta.resolve('vue/server-renderer')),
        vue: fileURLToPath(import.meta.resolve('vue/dist/vue.runtime.esm-bundler.js')),
      },
    },
    build: { chunkSizeWarningLimit: 2_000 },
  },
  buildEnd: ({ outDir }) => twins(outDir),
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Guides', link: '/guides/' },
      { text: 'Specification', link: '/specification/' },
      { text: 'Reference', link: '/reference/settings' },
      { text: 'Comparison', link: '/comparison' },
    ],
    sidebar: {
      '/guides/': guides(),
      '/specification/': [{ text: 'Specification', items: pagesOf('specification') }],
      '/reference/': [{ text: 'Reference', items: pagesOf('reference') }],
      '/decisions/': [{ text: 'Decisions', items: pagesOf('decisions') }],
    },
  },
});
