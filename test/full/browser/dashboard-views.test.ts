/** Saved views of a list in the dashboard: saved, opened, shared, renamed, deleted, and held by the address alone. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { bearer, changeUser, openClient, register, type Tokens } from '../../harness/account-client.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { openBrowser } from './chromium.ts';
import { enterDashboard, openWindow, reloadDashboard, violationsOn } from './dashboard-window.ts';

const path = '/api/v1/customers';
const password = 'correct horse battery staple';

let program: RunningServer;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let complaints: readonly string[];
let una: Tokens;

before(async () => {
  const config = fileURLToPath(new URL('./fixtures/work-orders.config.ts', import.meta.url));
  program = await startServer({ config });
  const client = openClient(program.port);
  una = await register(client, 'una@service.example', password);
  await changeUser(client, una.userId, { name: 'Una Dispatcher' });
  await client.ask('POST', 'views', {
    ...{ headers: bearer(una.token), expect: 201 },
    json: {
      collection: 'customers',
      name: 'In Graz',
      shared: true,
      query: 'city=Graz',
      columns: ['city', 'name'],
    },
  });
  await client.ask('POST', 'views', {
    ...{ headers: bearer(una.token), expect: 201 },
    json: { collection: 'customers', name: 'Of Una alone', query: 'city=Linz' },
  });
  client.close();
  for (const [name, city] of [
    ['Café Central', 'Wien'],
    ['Orpheum', 'Graz'],
    ['Kunsthaus', 'Graz'],
  ])
    await program.send('POST', path, { json: { name, city } });
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  await program?.stop();
});

beforeEach(async (t) => {
  context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  ({ page, complaints } = await openWindow(context, program.url));
  if ('after' in t) t.after(() => context.close());
});

const enter = (rest = '') => enterDashboard(page, program.url, `#/list?path=${path}${rest}`);
const menu = () => page.locator('details.views > summary');
const address = () => new URLSearchParams(new URL(page.url()).hash.split('?')[1]);
const stored = async (name: string) => {
  const { items } = (await program.send('GET', `/api/v1/views?name=${encodeURIComponent(name)}`)).json();
  return (items as Record<string, unknown>[])[0];
};

test('saves what the list shows under a name, and opens it again', async () => {
  await enter('&city=Wien&sort=-name&columns=name,country');
  await page.getByText('1 in this view').waitFor();
  await menu().click();
  await page.getByLabel('Name of the view').fill('In Wien');
  await page.keyboard.press('Enter');
  await menu().getByText('In Wien').waitFor();
  const { id: _, createdAt, updatedAt, ...members } = (await stored('In Wien')) ?? {};
  assert.deepEqual(members, {
    ...{ collection: 'customers', name: 'In Wien', shared: false, ownerId: 'administrator' },
    ...{ query: 'city=Wien&sort=-name', columns: ['name', 'country'] },
  });
  await page.evaluate(`location.hash = '#/list?path=${path}'`);
  await page.getByText('3 in this view').waitFor();
  await menu().click();
  assert.deepEqual(await violationsOn(page), []);
  await page.getByRole('link', { name: 'In Wien' }).click();
  await page.getByText('1 in this view').waitFor();
  assert.equal(await page.getByRole('columnheader', { name: 'City' }).count(), 0);
  assert.deepEqual(complaints, []);
});

test('has the whole state in the address, which another person opens without the view', async () => {
  await enter();
  await menu().click();
  await page.getByRole('link', { name: /^In Graz/ }).click();
  await page.getByText('2 in this view').waitFor();
  const { $view: _, ...state } = Object.fromEntries(address());
  assert.deepEqual(state, { path, city: 'Graz', columns: 'city,name' });
  await page.evaluate(
    `location.hash = '#/list?path=${path}&city=Graz&columns=city,name&$view=view_of_nothing'`,
  );
  await reloadDashboard(page);
  await page.getByText('2 in this view').waitFor();
  assert.deepEqual(complaints, []);
});

test('filters by times relative to now, and saves them as they are', async () => {
  await enter();
  const [member, comparison] = [page.getByLabel('Member', { exact: true }), page.getByLabel('Comparison')];
  await member.selectOption('createdAt');
  await comparison.selectOption('yesterday');
  await page.getByRole('button', { name: 'Filter', exact: true }).click();
  await page.getByText('0 in this view').waitFor();
  await comparison.selectOption('in the last 7 days');
  await page.getByRole('button', { name: 'Filter', exact: true }).click();
  await page.getByText('3 in this view').waitFor();
  await page.getByRole('button', { name: /≥ 7 days before now/ }).waitFor();
  assert.equal(address().get('createdAt[lt]'), null);
  assert.deepEqual(await violationsOn(page), []);
  await menu().click();
  await page.getByLabel('Name of the view').fill('New');
  await page.keyboard.press('Enter');
  await menu().getByText('New').waitFor();
  const query = new URLSearchParams(String((await stored('New'))?.query));
  assert.match(String(query.get('createdAt[gte]')), /^now-P7D/);
  assert.match(String(query.get('createdAt[lte]')), /^now/);
  await member.selectOption('name');
  assert.equal(await comparison.inputValue(), 'eq');
  assert.equal(await comparison.getByRole('option', { name: 'yesterday' }).count(), 0);
  assert.deepEqual(complaints, []);
});

test('shows views of others that they share, with their name, and none besides', async () => {
  await enter();
  await menu().click();
  await page.getByRole('heading', { name: 'Shared by others' }).waitFor();
  await page.getByRole('link', { name: 'In Graz Una Dispatcher' }).waitFor();
  assert.equal(await page.getByText('Of Una alone').count(), 0);
});

test('saves changes, renames, shares and deletes the view that is open', async () => {
  await enter('&city=Graz');
  await menu().click();
  await page.getByLabel('Name of the view').fill('Mine');
  await page.getByLabel('Share with others').check();
  await page.getByRole('button', { name: 'Save as new' }).click();
  await menu().getByText('Mine').waitFor();
  assert.equal((await stored('Mine'))?.shared, true);
  await page.getByRole('button', { name: /^City = Graz/ }).click();
  await menu().getByText('(changed)').waitFor();
  await menu().click();
  await page.getByRole('button', { name: 'Save changes' }).click();
  await menu().getByText('(changed)').waitFor({ state: 'detached' });
  assert.equal((await stored('Mine'))?.query, '');
  await page.getByRole('button', { name: 'Stop sharing' }).click();
  await page.getByRole('button', { name: 'Share', exact: true }).waitFor();
  await page.getByRole('button', { name: 'Rename' }).click();
  await page.getByLabel('New name').fill('In Graz');
  await page.keyboard.press('Enter');
  await menu().getByText('In Graz').waitFor();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await menu().getByText('Views').waitFor();
  assert.equal(await stored('Mine'), undefined);
  assert.equal(address().get('$view'), null);
  assert.deepEqual(complaints, []);
});

test('says why a name is refused, and closes by Escape with the focus on the menu', async () => {
  await enter();
  await menu().focus();
  await page.keyboard.press('Enter');
  await page.getByLabel('Name of the view').fill('Twice');
  await page.keyboard.press('Enter');
  await menu().getByText('Twice').waitFor();
  await menu().click();
  await page.getByLabel('Name of the view').fill('Twice');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').getByText('already in use together').first().waitFor();
  await page.keyboard.press('Escape');
  await menu().and(page.locator(':focus')).waitFor();
  assert.equal(await page.getByLabel('Name of the view').isVisible(), false);
});
