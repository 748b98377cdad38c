/** The system page of the dashboard in a real browser: backups, and what the store has. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { until } from '../../harness/until.ts';
import { openBrowser } from './chromium.ts';
import { enterDashboard, openWindow, violationsOn } from './dashboard-window.ts';

let program: RunningServer;
let browser: Browser;
let page: Page;
let complaints: readonly string[];

before(async () => {
  program = await startServer({ env: { COMITY_BACKUPS_MAX: '1', COMITY_SLOW_LIST_MS: '0' } });
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  await program?.stop();
});

beforeEach(async (t) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  ({ page, complaints } = await openWindow(context, program.url));
  if ('after' in t) t.after(() => context.close());
});

test('makes a backup, shows it, refuses one too many with the reason, and deletes it', async () => {
  await enterDashboard(page, program.url, '#/system');
  await page.getByRole('button', { name: 'Back up now' }).click();
  const file = page.getByRole('region', { name: 'Table of backups' }).getByRole('code');
  await file.waitFor();
  const path = join(program.folder, 'backups', (await file.textContent()) ?? '');
  assert.ok(existsSync(path));
  assert.deepEqual(await violationsOn(page), []);
  await page.getByRole('button', { name: 'Back up now' }).click();
  await page.getByRole('alert').getByText('backups_exhausted').waitFor();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByText('0 kept in the folder of the server').waitFor();
  await until(() => !existsSync(path), 'the file is removed');
  assert.deepEqual(complaints, []);
});

test('tells in the query console how a list was read, and which index would serve it', async () => {
  await enterDashboard(page, program.url, '#/query?path=/api/v1/products');
  const plan = page.locator('.plan');
  await page.getByRole('textbox', { name: 'Query' }).fill('{"filter": {"name": "a"}}');
  await page.getByRole('button', { name: /^Run/ }).click();
  await plan.getByText('An index of name would.').waitFor();
  assert.deepEqual(await violationsOn(page), []);
  await page.getByRole('textbox', { name: 'Query' }).fill('{"sort": ["-id"]}');
  await page.getByRole('button', { name: /^Run/ }).click();
  await plan.getByText('Walks the index of id').waitFor();
  assert.deepEqual(complaints, []);
});

test('shows which lists were slow, and how they were read', async () => {
  await program.send('GET', '/api/v1/products?name=a&sort=-price');
  await enterDashboard(page, program.url, '#/system');
  const row = page.getByRole('region', { name: 'Table of slow lists' }).getByRole('row', { name: /name eq/ });
  await row.getByText('An index of name, price would.').waitFor();
  assert.deepEqual(await violationsOn(page), []);
  assert.deepEqual(complaints, []);
});

test('shows the size of the store, the documents and the indexes of each collection', async () => {
  for (const name of ['one', 'two']) await program.send('POST', '/api/v1/categories', { json: { name } });
  await enterDashboard(page, program.url, '#/system');
  const table = page.getByRole('region', { name: 'Collections of the store' });
  const row = table.getByRole('row', { name: /^products/ });
  await row.getByText('unique: sku').waitFor();
  await page.getByText(/MiB on disk, schema \d+/).waitFor();
  await page.getByRole('heading', { name: 'Migrations of documents' }).waitFor();
  assert.deepEqual(await violationsOn(page), []);
  assert.deepEqual(complaints, []);
});
