/** The pages for people, as they are handed to the program. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { problems } from '../../src/http/problem-registry.ts';
import { type DocsAsset, docsAssets, viewerVersion } from '../../src/openapi/docs-assets.ts';

const assets = docsAssets({ title: 'Tea & <Coffee>', root: '', hasGuides: false });

async function textOf(asset: DocsAsset | undefined): Promise<string> {
  assert(asset);
  return Buffer.from(await asset.read()).toString('utf8');
}

const at = (path: string) => assets.find((asset) => asset.path === path);

test('serves everything that a page loads, from its own address', async () => {
  for (const page of [at('/docs'), at('/docs/errors')]) {
    const loaded = [...(await textOf(page)).matchAll(/(?:src|href)="([^"#]+)"/g)].map(
      ([, address]) => address ?? '',
    );
    assert(loaded.length > 0);
    for (const address of loaded.filter((one) => !one.startsWith('data:'))) {
      assert.match(address, /^\/(?!\/)/);
      assert(at(address) !== undefined || address.startsWith('/openapi.json'), address);
    }
  }
});

test('has for each code of the registry an anchor where type of a problem points', async () => {
  const page = await textOf(at('/docs/errors'));
  for (const code of Object.keys(problems)) assert.equal(page.split(`id="${code}"`).length, 2, code);
});

test('has an entry for each code of the application, with its actions and its status where they are one', async () => {
  const own = [
    { code: 'not_an_agent', status: undefined, actions: [] },
    { code: 'ticket_closed', status: 409, actions: ['merge', 'close'] },
    // A code of the registry has its own entry already.
    { code: 'not_found', status: 404, actions: ['merge'] },
    { code: '<b>', status: undefined, actions: [] },
  ];
  const page = await textOf(
    docsAssets({ title: 'Desk', root: '', hasGuides: false }, () => own).find(
      ({ path }) => path === '/docs/errors',
    ),
  );
  assert.match(page, /<h2>Codes of Desk<\/h2>/);
  assert.match(
    page,
    /<article id="not_an_agent">\n.*\n<p>A function of this application refuses the request;/,
  );
  assert.match(
    page,
    /<article id="ticket_closed">\n.*\n<p>The actions <code>merge<\/code>, <code>close<\/code> of this application refuse the request with 409 Conflict;/,
  );
  assert.equal(page.split('id="not_found"').length, 2);
  assert.ok(page.includes('<article id="&lt;b&gt;">'));
});

test('shows a title as text', async () => {
  for (const page of [at('/docs'), at('/docs/errors')]) {
    const html = await textOf(page);
    assert(html.includes('Tea &amp; &lt;Coffee&gt;') && !html.includes('<Coffee>'));
  }
});

test('keeps assets for ever under names that change with them, and pages not', () => {
  for (const { path, cacheControl } of assets) {
    const isAsset = path.startsWith('/docs/assets/');
    assert.equal(cacheControl, isAsset ? 'public, max-age=31536000, immutable' : 'no-cache', path);
    if (isAsset) assert.match(path, /-(?:[A-Za-z0-9_-]{8}|\d+\.\d+\.\d+)\.(?:js|css)$/);
  }
});

test('allows pages no script but files of this program, and no other host', () => {
  for (const page of [at('/docs'), at('/docs/errors')]) {
    const policy = page?.fields[(page?.fields.indexOf('Content-Security-Policy') ?? 0) + 1] ?? '';
    assert.match(policy, /^default-src 'none'/);
    assert(!/script-src[^;]*(?:unsafe|http|\*)/.test(policy) && !policy.includes('://'), policy);
  }
});

test('the viewer that the page names is the one that is installed', () => {
  const manifest = fileURLToPath(import.meta.resolve('openapi-explorer/package.json'));
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string };
  assert.equal(viewerVersion, version);
});
