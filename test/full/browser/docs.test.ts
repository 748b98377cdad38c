/** The documentation pages in a real browser, at desktop and phone width. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { docsAssets } from '../../../src/openapi/docs-assets.ts';
import type { Listening } from '../../harness/listening.ts';
import { documentOf, shopCollections } from '../../openapi/fixture.ts';
import { openBrowser } from './chromium.ts';
import { serveDocs } from './serve-docs.ts';

let browser: Browser;
let served: Listening;

before(async () => {
  served = await serveDocs(
    documentOf(shopCollections),
    docsAssets({ title: 'Shop', root: '', hasGuides: false }),
  );
  browser = await openBrowser();
});

after(async () => {
  await browser.close();
  await served.close();
});

const widths = [
  ['a desktop', { width: 1366, height: 900 }],
  ['a phone', { width: 390, height: 844 }],
] as const;

/** Runs with a page, and fails on whatever it complained of or asked of another host. */
async function visit(
  path: string,
  viewport: { width: number; height: number },
  look: (page: Page) => Promise<void>,
) {
  const page = await browser.newPage({ viewport });
  const complaints: string[] = [];
  page.on('console', (message) => complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('request', (request) => {
    if (!request.url().startsWith(served.url) && !request.url().startsWith('data:'))
      complaints.push(request.url());
  });
  page.on('response', (response) => {
    if (response.status() >= 400) complaints.push(`${response.status()} ${response.url()}`);
  });
  try {
    await page.goto(served.url + path);
    await look(page);
    assert.deepEqual(complaints, []);
    const overflow = await page.evaluate(
      'document.documentElement.scrollWidth - document.documentElement.clientWidth',
    );
    assert.equal(overflow, 0, 'the page scrolls sideways');
  } finally {
    await page.close();
  }
}

for (const [label, viewport] of widths) {
  test(`shows QUERY with its description on ${label}, without a complaint or another host`, async () => {
    await visit('/docs', viewport, async (page) => {
      await page.getByText('Query products', { exact: true }).first().click();
      await page.getByText('A GET of Location repeats the query').first().waitFor();
      await page.getByText('ProductsFilter').first().waitFor();
    });
  });

  test(`leads from a problem to its code on ${label}`, async () => {
    await visit('/docs/errors#precondition_failed', viewport, async (page) => {
      const entry = page.locator('article:target');
      assert.match((await entry.textContent()) ?? '', /precondition_failed/);
      const box = await entry.boundingBox();
      assert(box !== null && box.y >= 0 && box.y < viewport.height, `${box?.y}`);
    });
  });
}

test('says so when the document cannot be had', async () => {
  const lost = await serveDocs(undefined, docsAssets({ title: 'Shop', root: '', hasGuides: false }));
  const page = await browser.newPage();
  try {
    await page.goto(`${lost.url}/docs`);
    await page.getByRole('alert').filter({ hasText: 'The reference could not be shown' }).waitFor();
  } finally {
    await page.close();
    await lost.close();
  }
});
