/** The dashboard judged by axe-core in light and dark, at the width of a phone, and by its size. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { openBrowser } from './chromium.ts';
import { enterDashboard, openWindow, violationsOn } from './dashboard-window.ts';

let program: RunningServer;
let browser: Browser;

before(async () => {
  program = await startServer();
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  await program?.stop();
});

const listOf = (name: string) => `#/list?path=/api/v1/${name}`;

const views = [
  ['the overview', ''],
  ['a list', listOf('products')],
  ['an import', '#/import?path=/api/v1/products'],
  ['an empty list', listOf('deliveries')],
  ['a query', '#/query?path=/api/v1/products'],
  ['an explanation', '#/explain'],
  ['live events', '#/live'],
  ['the system', '#/system'],
  ['deleted documents', `${listOf('articles')}&deleted=yes`],
  ['accounts', listOf('users')],
  ['the audit trail', listOf('audit')],
  ['the own account', '#/account'],
  ['sign-in and limits', '#/access'],
  ['access rules', '#/rules?collection=articles'],
] as const;

for (const [name, view] of views) {
  test(`has no violation of accessibility in light and dark, and fits a phone: ${name}`, async () => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    const { page, complaints } = await openWindow(context, program.url);
    await enterDashboard(page, program.url, view);
    await page.getByRole('heading', { level: 1 }).waitFor();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      assert.deepEqual(await violationsOn(page), []);
    }
    await page.setViewportSize({ width: 390, height: 844 });
    const overflow = await page.evaluate(
      'document.documentElement.scrollWidth - document.documentElement.clientWidth',
    );
    assert.equal(overflow, 0, 'the page scrolls sideways');
    assert.deepEqual(complaints, []);
    await context.close();
  });
}

test('opens the menu of a phone over the whole width, and folds it when a page is chosen', async () => {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 } });
  const { page, complaints } = await openWindow(context, program.url);
  await enterDashboard(page, program.url);
  const menu = page.locator('nav details.menu');
  await menu.locator('> summary').click();
  const { width } = (await menu.boundingBox()) ?? { width: 0 };
  assert.ok(width > 340, `${width}`);
  await menu.getByRole('link', { name: 'Products' }).click();
  await page.getByRole('heading', { level: 1, name: 'Products' }).waitFor();
  assert.equal(await menu.getAttribute('open'), null);
  assert.deepEqual(complaints, []);
  await context.close();
});

test('is within 150 kB compressed', async () => {
  const { body } = await program.send('GET', '/dashboard');
  let octets = body.length;
  for (const [, path] of body.matchAll(/(?:src|href)="(dashboard[^"]+)"/g)) {
    const response = await fetch(`${program.url}/${path}`, { headers: { 'Accept-Encoding': 'gzip' } });
    assert.equal(response.headers.get('Content-Encoding'), 'gzip');
    octets += Number(response.headers.get('Content-Length'));
  }
  assert.ok(octets > 10_000 && octets < 150_000, `${octets}`);
});
