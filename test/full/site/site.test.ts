/** The documentation site as it would be published: built, every link and place in it followed, and searched in a browser. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, posix } from 'node:path';
import { before, test } from 'node:test';
import { promisify } from 'node:util';
import { listen } from '../../harness/listening.ts';
import { installLocked } from '../../harness/npm-install.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';
import { openBrowser } from '../browser/chromium.ts';

const run = promisify(execFile);
const output = temporaryFolder();
const pages = new Map<string, string>();
let missing = '';

before(
  async () => {
    missing = await install();
    if (missing !== '') return;
    const generator = 'site/node_modules/vitepress/bin/vitepress.js';
    await run(process.execPath, [generator, 'build', 'site', '--outDir', output]);
    for (const file of globSync('**/*.html', { cwd: output })) {
      pages.set(`/${file}`, readFileSync(join(output, file), 'utf8'));
    }
  },
  { timeout: 5 * 60_000 },
);

/** @returns why the packages of the site cannot be had; empty if they are there */
async function install(): Promise<string> {
  const lock = 'site/package-lock.json';
  const versionOf = (path: string): unknown =>
    existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).version : undefined;
  const wanted = JSON.parse(readFileSync(lock, 'utf8')).packages['node_modules/vitepress'].version;
  if (versionOf('site/node_modules/vitepress/package.json') === wanted) return '';
  return installLocked('site');
}

test('every link leads to a page and a place that exist', (context) => {
  if (missing !== '') return context.skip(missing);
  assert(pages.size > 60);
  const broken: string[] = [];
  for (const [path, html] of pages) {
    for (const [, href = ''] of html.matchAll(/<a [^>]*?href="([^"]+)"/g)) {
      if (/^(?:https?|mailto):/.test(href)) continue;
      const [target = '', place] = href.split('#', 2);
      const page = target === '' ? path : pageAt(posix.join(posix.dirname(path), decodeURI(target)), target);
      const isThere =
        page === undefined ? false : place === undefined || hasPlace(page, decodeURIComponent(place));
      if (!isThere) broken.push(`${path}: ${href}`);
    }
  }
  assert.deepEqual(broken, []);
});

function pageAt(relative: string, target: string): string | undefined {
  const path = target.startsWith('/') ? target : relative;
  return [path, `${path}.html`, posix.join(path, 'index.html')].find((each) => pages.has(each));
}

function hasPlace(page: string, place: string): boolean {
  return place === '' || pages.get(page)?.includes(`id="${place}"`) === true;
}

test('each page has its Markdown beside it, and llms.txt lists the guides', (context) => {
  if (missing !== '') return context.skip(missing);
  for (const path of pages.keys()) {
    if (path !== '/404.html') assert(existsSync(join(output, path.replace(/\.html$/, '.md'))), path);
  }
  const list = readFileSync(join(output, 'llms.txt'), 'utf8');
  const links = [...list.matchAll(/\]\((\/[^)]+)\)/g)].map(([, link = '']) => link);
  assert(links.length > 40);
  for (const link of links) assert(existsSync(join(output, link)), link);
});

test('search leads a reader to the section', async (context) => {
  if (missing !== '') return context.skip(missing);
  const types: Readonly<Record<string, string>> = {
    '.html': 'text/html',
    '.js': 'text/javascript',
    '.css': 'text/css',
  };
  const server = createServer((request, response) => {
    const path = decodeURI(request.url?.split('?', 1)[0] ?? '/');
    const file = [path, `${path}.html`, posix.join(path, 'index.html')].find(
      (each) => extname(each) !== '' && existsSync(join(output, each)),
    );
    response.writeHead(file === undefined ? 404 : 200, {
      'Content-Type': types[extname(file ?? '')] ?? 'application/octet-stream',
    });
    response.end(file === undefined ? '' : readFileSync(join(output, file)));
  });
  const { url } = await listen(server, context);
  const browser = await openBrowser();
  context.after(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 1366, height: 900 } });
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('request', (request) => {
    if (!request.url().startsWith(url)) complaints.push(request.url());
  });
  page.on('response', (response) => {
    if (response.status() >= 400) complaints.push(`${response.status()} ${response.url()}`);
  });
  await page.goto(`${url}/guides/querying`);
  // The page listens for keys some time after it is shown.
  const box = page.locator('.VPLocalSearchBox input');
  await until(async () => {
    await page.keyboard.press('Control+k');
    return box.waitFor({ timeout: 1000 }).then(
      () => true,
      () => false,
    );
  });
  await page.fill('.VPLocalSearchBox input', 'idempotency keys');
  await page.locator('.VPLocalSearchBox .result').first().click();
  await page.waitForURL('**/guides/writing#idempotency-keys');
  assert.deepEqual(complaints, []);
});
