/** Actions of an application in the dashboard, in a real browser: a form by the input, and the answer by its type. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { changeUser, openClient, register } from '../../harness/account-client.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { openBrowser } from './chromium.ts';
import { enterDashboard, openWindow, violationsOn } from './dashboard-window.ts';

let program: RunningServer;
let browser: Browser;
let page: Page;
let complaints: readonly string[];
let repair: string;

const config = fileURLToPath(new URL('./fixtures/repairs.config.ts', import.meta.url));
const base = '/api/v1';

async function create(collection: string, json: object): Promise<string> {
  const { status, body } = await program.send('POST', `${base}/${collection}`, { json });
  assert.equal(status, 201, body);
  return (JSON.parse(body) as { id: string }).id;
}

before(async () => {
  program = await startServer({ config, env: { COMITY_RATE_LIMIT_READS: '0', COMITY_DEVELOPMENT: 'on' } });
  browser = await openBrowser();
  const customerId = await create('customers', { name: 'Mill' });
  await create('customers', { name: 'Harbour' });
  repair = await create('repairs', { title: 'Pump', customerId });
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

const member = () => `#/member?path=${base}/repairs&id=${repair}`;
const actions = () => page.getByRole('group', { name: 'Actions' });

test('opens a form for an action with defaults and references by search, and shows the members of its answer', async () => {
  await enterDashboard(page, program.url, member());
  await actions().getByRole('button', { name: 'Hand over to another customer' }).click();
  const panel = page.getByRole('dialog', { name: 'Hand over to another customer' });
  await panel.getByText('The repair stays as it is.').waitFor();
  assert.equal(await panel.getByLabel('Days').inputValue(), '14');
  assert.equal(await panel.getByLabel('Reason').inputValue(), 'sold');
  assert.deepEqual(await violationsOn(page), []);
  const run = panel.getByRole('button', { name: 'Hand over to another customer' });
  const to = panel.getByRole('combobox', { name: 'To' });
  // A refusal leads to the member that it names.
  await to.fill('mill');
  await panel.getByRole('option', { name: 'Mill' }).click();
  await run.click();
  await to.and(page.locator(':focus')).waitFor();
  await panel.getByRole('alert').getByText('it is theirs already').first().waitFor();
  await to.fill('harb');
  await panel.getByRole('option', { name: 'Harbour' }).click();
  await run.click();
  await panel.getByText('Done.').waitFor();
  await panel.getByRole('definition').filter({ hasText: '14' }).waitFor();
  assert.deepEqual(await violationsOn(page), []);
  await page.keyboard.press('Escape');
  await panel.waitFor({ state: 'detached' });
  await page.getByRole('definition').getByRole('link', { name: 'Harbour' }).waitFor();
  assert.deepEqual(complaints, []);
});

test('shows an image that an action answers, and offers it under its name', async () => {
  await enterDashboard(page, program.url, member());
  await actions().getByRole('button', { name: 'Label' }).click();
  const panel = page.getByRole('dialog', { name: 'Label' });
  await panel.getByRole('button', { name: 'Label' }).click();
  const image = panel.getByRole('img', { name: 'label.svg' });
  await image.waitFor();
  assert.equal(
    await image.evaluate((element) => (element as unknown as { naturalWidth: number }).naturalWidth),
    160,
  );
  await panel.getByRole('link', { name: 'Download label.svg' }).waitFor();
  assert.deepEqual(complaints, []);
});

test('downloads other octets with their name and size', async () => {
  await enterDashboard(page, program.url, member());
  await actions().getByRole('button', { name: 'Archive' }).click();
  const panel = page.getByRole('dialog', { name: 'Archive' });
  await panel.getByRole('button', { name: 'Archive' }).click();
  await panel.getByText('application/zip, 22 octets').waitFor();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    panel.getByRole('link', { name: 'Download repair.zip' }).click(),
  ]);
  assert.equal(download.suggestedFilename(), 'repair.zip');
  assert.equal((await readFile(await download.path())).length, 22);
  assert.deepEqual(complaints, []);
});

test('sends files with the other members of a form', async () => {
  await enterDashboard(page, program.url, member());
  await actions().getByRole('button', { name: 'Photo' }).click();
  const panel = page.getByRole('dialog', { name: 'Photo' });
  const file = panel.getByLabel('Photo');
  await file.setInputFiles({ name: 'p.png', mimeType: 'text/plain', buffer: Buffer.from('abc') });
  await panel.locator('button[type=submit]').click();
  await file.and(page.locator(':focus')).waitFor();
  await panel.getByText('must be of the type image/png').first().waitFor();
  await file.setInputFiles({ name: 'p.png', mimeType: 'image/png', buffer: Buffer.from('abcde') });
  await panel.getByLabel('Note').fill('from the left');
  await panel.locator('button[type=submit]').click();
  await panel.getByRole('definition').filter({ hasText: 'from the left' }).waitFor();
  await panel.getByRole('definition').filter({ hasText: '5' }).waitFor();
  assert.deepEqual(complaints, []);
});

test('shows the progress of an action that runs in the background, and then its answer', async () => {
  await enterDashboard(page, program.url, member());
  await actions().getByRole('button', { name: 'Photo' }).click();
  const panel = page.getByRole('dialog', { name: 'Photo' });
  await panel
    .getByLabel('Photo')
    .setInputFiles({ name: 'p.png', mimeType: 'image/png', buffer: Buffer.from('abc') });
  await panel.getByLabel('In the background').check();
  await panel.locator('button[type=submit]').click();
  await panel.getByText('Pending').waitFor();
  await panel.getByText('Succeeded').waitFor();
  await panel.getByRole('definition').filter({ hasText: '3' }).waitFor();
  assert.deepEqual(complaints, []);
});

test('has the actions of a collection on its list, and shows text that they answer', async () => {
  await enterDashboard(page, program.url, `#/list?path=${base}/repairs`);
  await actions().getByRole('button', { name: 'Export' }).click();
  const panel = page.getByRole('dialog', { name: 'Export' });
  await panel.getByLabel('State').selectOption('open');
  await panel.getByRole('button', { name: 'Export' }).click();
  await panel.getByText('title,state').waitFor();
  await panel.getByRole('link', { name: 'Download repairs.csv' }).waitFor();
  assert.deepEqual(await violationsOn(page), []);
  assert.deepEqual(complaints, []);
});

test('leads by Ctrl+K to the actions of the document or the list in view, whose forms the address opens too', async () => {
  await enterDashboard(page, program.url, member());
  await page.getByRole('heading', { name: 'Pump' }).waitFor();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('hand over');
  await page.getByRole('option', { name: 'Hand over to another customer Action on this document' }).waitFor();
  assert.deepEqual(await violationsOn(page), []);
  await page.keyboard.press('Enter');
  const panel = page.getByRole('dialog', { name: 'Hand over to another customer' });
  await panel.waitFor();
  await page.keyboard.press('Escape');
  await panel.waitFor({ state: 'detached' });
  await page.goBack();
  await panel.waitFor();
  await page.keyboard.press('Escape');
  await page.evaluate(`location.hash = '#/list?path=${base}/repairs'`);
  await page.getByRole('heading', { name: 'Repairs' }).waitFor();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('hand over');
  await page.getByText('0 found').waitFor();
  await page.getByRole('combobox', { name: /Go to a page/ }).fill('export');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Export' }).getByLabel('State').waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+k');
  await page.keyboard.type('import: repairs');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Import Repairs' }).waitFor();
  assert.deepEqual(complaints, []);
});

test('offers no action that the caller may never call, and explains the refusal where the right went', async () => {
  const client = openClient(program.port);
  const { userId } = await register(client, 'ada@shop.example', 'correct horse battery staple');
  await page.goto(`${program.url}/dashboard`);
  await page.getByLabel('Email').fill('ada@shop.example');
  await page.getByLabel('Password').fill('correct horse battery staple');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByText('ada@shop.example').waitFor();
  await page.evaluate(`location.hash = ${JSON.stringify(member())}`);
  await actions().getByRole('button', { name: 'Label' }).waitFor();
  assert.equal(await actions().getByRole('button', { name: 'Close' }).count(), 0);
  await changeUser(client, userId, { roles: ['foreman'] });
  await page.reload();
  await actions().getByRole('button', { name: 'Close' }).click();
  await changeUser(client, userId, { roles: [] });
  client.close();
  const panel = page.getByRole('dialog', { name: 'Close' });
  await panel.getByRole('button', { name: 'Close' }).click();
  await panel.getByRole('alert').getByText('forbidden').first().waitFor();
  await panel.getByRole('link', { name: 'Why this answer?' }).click();
  await page.getByRole('heading', { name: 'The response with status 403' }).waitFor();
  assert.deepEqual(complaints, []);
});
