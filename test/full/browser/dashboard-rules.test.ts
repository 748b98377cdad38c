/** The page of access rules in a real browser: a role and a collection, then an account and a document, each with the rule that decides. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { type Client, openClient, register } from '../../harness/account-client.ts';
import { adminKey } from '../../harness/exchange.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { openBrowser } from './chromium.ts';
import { enterDashboard, openWindow, violationsOn } from './dashboard-window.ts';

const config = fileURLToPath(
  new URL('../../wire/resources/fixtures/orders-access.config.ts', import.meta.url),
);
const password = 'correct horse battery staple';

let program: RunningServer;
let browser: Browser;
let client: Client;
let context: BrowserContext;
let page: Page;
let complaints: readonly string[];
let order: string;

before(async () => {
  program = await startServer({ config });
  client = openClient(program.port);
  const olaf = await register(client, 'olaf@shop.example', password);
  const dora = await register(client, 'dora@shop.example', password);
  const json = { roles: ['dispatcher'] };
  await client.ask('PATCH', `users/${dora.userId}`, { json, as: adminKey, expect: 200 });
  const made = await client.ask('POST', 'orders', { json: { number: '17' }, as: olaf.token, expect: 201 });
  order = made.json().id;
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  client?.close();
  await program?.stop();
});

beforeEach(async (t) => {
  context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  ({ page, complaints } = await openWindow(context, program.url));
  if ('after' in t) t.after(() => context.close());
});

const decision = (title: string) =>
  page.locator('.decisions > li').filter({ has: page.getByRole('heading', { name: title, exact: true }) });

async function choose(label: string, text: string): Promise<void> {
  const field = page.getByRole('combobox', { name: label });
  await field.click();
  await field.fill(text);
  await page.locator('.options:visible').getByText(text).first().click();
}

test('shows what a role may do with a collection, in words and as text', async () => {
  await enterDashboard(page, program.url);
  await page.getByRole('link', { name: 'Access rules' }).click();
  await page.getByRole('heading', { name: 'Access rules' }).waitFor();
  await page.getByLabel('Collection').selectOption('orders');
  await page.getByRole('combobox', { name: 'Role' }).fill('dispatcher');
  await page.keyboard.press('Tab');
  const update = decision('Update and replace');
  await update.getByText('Always').waitFor();
  await update.getByText('By rule 2.').waitFor();
  await update.getByText('(status is open AND owner is the caller) OR role is dispatcher').waitFor();
  await update.getByText('1.1 State is open').waitFor();
  await decision('Delete').getByText('By condition').waitFor();
  await decision('Delete').getByText('returned by a function of the configuration').waitFor();
  await page.getByLabel('Caller').selectOption('anonymous');
  await decision('Update and replace').getByText('Never').waitFor();
  const author = page.getByRole('row', { name: 'Author id' });
  await author.getByText('The server sets it.').waitFor();
  assert.deepEqual(await violationsOn(page), []);
  assert.deepEqual(complaints, []);
});

test('says whether an account may change a document, and by which rule', async () => {
  await enterDashboard(page, program.url, '#/rules?collection=orders');
  await page.getByLabel('Caller').selectOption('account');
  await choose('Account', 'dora');
  await choose('Document', order);
  await page.getByRole('heading', { name: 'This document' }).waitFor();
  const update = decision('Update and replace');
  await update.getByText('Yes').waitFor();
  await update.getByText('By rule 2.').waitFor();
  const part = update.getByRole('listitem').filter({ hasText: /^\s*1\.2 owner is the caller$/ });
  await part.getByRole('img', { name: 'does not hold' }).waitFor();
  assert.deepEqual(await violationsOn(page), []);
  await page.reload();
  assert.match(page.url(), /account=usr_/, 'the address names the question');
  assert.deepEqual(complaints, []);
});

test('shows what the server refuses to answer', async () => {
  await enterDashboard(page, program.url, '#/rules?collection=orders&caller=account&account=usr_none');
  await page.getByRole('alert').getByText('there is no account').waitFor();
  assert.deepEqual(complaints, []);
});

test('is for administrators', async () => {
  await page.goto(`${program.url}/dashboard`);
  await page.getByLabel('Email').fill('olaf@shop.example');
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('link', { name: 'olaf@shop.example' }).waitFor();
  assert.equal(await page.getByRole('link', { name: 'Access rules' }).count(), 0);
});
