/** The dashboard and the portal in a real browser, behind a proxy that serves the program under a path and removes the path. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { type PrefixProxy, startPrefixProxy } from '../../harness/prefix-proxy.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { makeLink } from '../../wire/portal/portal-client.ts';
import { openBrowser } from './chromium.ts';
import { enterDashboard, openWindow } from './dashboard-window.ts';

const albums = '/api/v1/albums';
const root = '/backend';
const account = { email: 'ada@example.com', password: 'correct horse battery staple' };
let proxy: PrefixProxy;
let program: RunningServer;
let url: string;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let complaints: readonly string[];

before(async () => {
  proxy = await startPrefixProxy(root);
  url = proxy.url + root;
  program = await startServer({
    config: fileURLToPath(new URL('./fixtures/album.config.ts', import.meta.url)),
    env: { COMITY_PUBLIC_URL: url, COMITY_PASSWORD_MEMORY_KIBIBYTES: '8' },
  });
  proxy.lead(program.port);
  await program.send('POST', '/api/v1/auth/register', { json: account, anonymous: true, expect: 201 });
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  await proxy?.close();
  await program?.stop();
});

beforeEach(async (t) => {
  context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  // A request outside the root is a complaint.
  ({ page, complaints } = await openWindow(context, url));
  if ('after' in t) t.after(() => context.close());
});

test('a person logs in by the cookie, and is still logged in after a reload', async () => {
  await page.goto(`${url}/dashboard/`);
  await page.getByLabel('Email').fill(account.email);
  await page.getByLabel('Password').fill(account.password);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('heading', { name: 'Collections' }).waitFor();
  await page.reload();
  await page.getByRole('heading', { name: 'Collections' }).waitFor();
  assert.deepEqual(complaints, []);
});

test('a document is edited and has a file, and its events arrive', async () => {
  const { id } = (await program.send('POST', albums, { json: { title: 'Summer' }, expect: 201 })).json();
  const watching = await openWindow(context, url);
  await enterDashboard(watching.page, url, '#/live');
  await watching.page.getByText('Connected.').waitFor();
  await enterDashboard(page, url, `#/member?path=${albums}&id=${id}`);
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByRole('textbox', { name: 'title' }).fill('Winter');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'Winter' }).waitFor();
  await watching.page
    .getByRole('region', { name: 'Events', exact: true })
    .getByRole('link', { name: 'Winter' })
    .first()
    .waitFor();
  const buffer = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  );
  await page
    .getByLabel('Add a file of cover')
    .setInputFiles({ name: 'c.png', mimeType: 'image/png', buffer });
  await page.getByRole('img', { name: 'c.png' }).waitFor();
  await page.evaluate(`document.querySelector('img[alt="c.png"]').decode()`);
  await page.getByRole('button', { name: 'Remove…' }).click();
  await page.getByRole('button', { name: 'Remove', exact: true }).click();
  await page.getByLabel('Add a file of cover').waitFor();
  assert.deepEqual([...complaints, ...watching.complaints], []);
});

test('a link to the portal opens it', async () => {
  const link = await makeLink(program, 'acme');
  assert.ok(link.url.startsWith(`${url}/portal#`));
  await page.goto(link.url);
  await page.getByRole('heading', { name: 'Endpoints' }).waitFor();
  assert.deepEqual(complaints, []);
});

test('the reference shows the operations', async () => {
  await page.goto(`${url}/docs`);
  await page.getByText('Query albums', { exact: true }).first().click();
  await page.getByText('A GET of Location repeats the query').first().waitFor();
  assert.deepEqual(complaints, []);
});
