/** Members of documents that are edited in the cells of a list, with the keyboard and the mouse. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { openClient, register } from '../../harness/account-client.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { openBrowser } from './chromium.ts';
import { enterDashboard, openWindow, violationsOn } from './dashboard-window.ts';

const orders = '/api/v1/orders';
const email = 'una@service.example';
const password = 'correct horse battery staple';

type Document = { readonly id: string } & Record<string, unknown>;

let program: RunningServer;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let complaints: readonly string[];
let central: Document;
let orpheum: Document;
let count = 0;

before(async () => {
  const config = fileURLToPath(new URL('./fixtures/work-orders.config.ts', import.meta.url));
  program = await startServer({ config });
  central = await create('customers', { name: 'Café Central', city: 'Wien' });
  orpheum = await create('customers', { name: 'Orpheum', city: 'Graz' });
  const client = openClient(program.port);
  await register(client, email, password);
  client.close();
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  await program?.stop();
});

beforeEach(async (t) => {
  context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    timezoneId: 'Europe/Berlin',
    locale: 'en-GB',
  });
  ({ page, complaints } = await openWindow(context, program.url));
  if ('after' in t) t.after(() => context.close());
});

async function create(collection: string, members: object): Promise<Document> {
  const { status, body } = await program.send('POST', `/api/v1/${collection}`, { json: members });
  assert.equal(status, 201, body);
  return JSON.parse(body) as Document;
}

/** An order that the list then shows alone. */
async function order(members: object = {}): Promise<{ readonly id: string; readonly view: string }> {
  count += 1;
  const number = `W-${count}`;
  const { id } = await create('orders', { number, customerId: central.id, ...members });
  const columns = 'number,customerId,state,plannedAt,minutes,price,warranty,currency,createdAt,parts';
  return { id, view: `#/list?path=${orders}&number=${number}&columns=${columns}` };
}

const enter = (view: string) => enterDashboard(page, program.url, view);
const cell = (name: string | RegExp) => page.getByRole('gridcell', { name, exact: true });
const at = (column: number) => page.locator(`[data-cell="0:${column}"]`);
const focused = (column: number) => at(column).and(page.locator(':focus')).waitFor();
const stored = async (id: string) => (await program.send('GET', `${orders}/${id}`)).json() as Document;

test('moves between cells by arrow keys, and edits by Enter, F2 or a double click', async () => {
  const { id, view } = await order();
  await enter(view);
  await page.getByRole('grid', { name: 'Work orders' }).waitFor();
  await at(0).focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('End');
  await focused(9);
  await page.keyboard.press('Home');
  await focused(0);
  await page.keyboard.press('F2');
  const number = page.getByRole('textbox', { name: 'No.', exact: true });
  assert.deepEqual(await violationsOn(page), []);
  await number.fill('given up');
  await page.keyboard.press('Escape');
  await focused(0);
  assert.equal((await stored(id)).number, `W-${count}`);
  await page.keyboard.press('Enter');
  await number.fill('W-changed');
  await page.keyboard.press('Enter');
  await cell('W-changed').waitFor();
  await focused(0);
  assert.equal((await stored(id)).number, 'W-changed');
  await at(4).dblclick();
  await page.getByRole('textbox', { name: 'Minutes' }).fill('45');
  await page.getByRole('button', { name: 'Save' }).click();
  await cell('45 min').waitFor();
  assert.equal((await stored(id)).minutes, 45);
  assert.deepEqual(complaints, []);
});

test('saves by Tab and goes on to the next cell, for each kind of member', async () => {
  const { id, view } = await order({ plannedAt: '2026-07-01T07:30:00Z' });
  await enter(view);
  await at(1).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('combobox', { name: 'Customer' }).waitFor();
  await page.keyboard.type('orph');
  await page.getByRole('option', { name: 'Orpheum, Graz' }).waitFor();
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  await cell('Orpheum, Graz').waitFor();
  await focused(2);
  await page.keyboard.press('Enter');
  await page.getByRole('combobox', { name: 'State' }).selectOption('late');
  await page.keyboard.press('Tab');
  await cell('Late').waitFor();
  await focused(3);
  await page.keyboard.press('Enter');
  await page.locator('.cell-editor').getByLabel('Planned for').fill('2026-07-02T10:15');
  await page.keyboard.press('Tab');
  await cell(/2 Jul 2026/).waitFor();
  await focused(4);
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Enter');
  await page.getByRole('textbox', { name: 'Price' }).fill('99.5');
  await page.keyboard.press('Tab');
  await cell('€99.50').waitFor();
  await focused(6);
  await page.keyboard.press('Enter');
  await page.getByRole('combobox', { name: 'Warranty' }).selectOption('true');
  await page.keyboard.press('Shift+Tab');
  await cell('yes').waitFor();
  await focused(5);
  const { customerId, state, plannedAt, price, warranty } = await stored(id);
  assert.deepEqual(
    { customerId, state, plannedAt, price, warranty },
    {
      ...{ customerId: orpheum.id, state: 'late', price: 99.5, warranty: true },
      plannedAt: '2026-07-02T08:15:00.000Z',
    },
  );
  assert.deepEqual(complaints, []);
});

test('keeps what was typed at the cell with the refusal', async () => {
  const { id, view } = await order();
  await enter(view);
  await at(7).dblclick();
  const currency = page.getByRole('textbox', { name: 'Currency' });
  await currency.fill('euro');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').waitFor();
  assert.equal(await currency.inputValue(), 'euro');
  assert.equal(await currency.getAttribute('aria-invalid'), 'true');
  assert.deepEqual(await violationsOn(page), []);
  await page.keyboard.press('Escape');
  // A refusal of the application about another member.
  await at(2).dblclick();
  await page.getByRole('combobox', { name: 'State' }).selectOption('done');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').getByText('say how long it took').waitFor();
  assert.equal((await stored(id)).state, 'planned');
  await page.keyboard.press('Escape');
  await at(4).dblclick();
  await page.getByRole('textbox', { name: 'Minutes' }).fill('soon');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').getByText('must be a number, not soon').waitFor();
});

test('merges a change that came second from three columns', async () => {
  const { id, view } = await order({ minutes: 10 });
  await enter(view);
  await at(4).dblclick();
  await page.getByRole('textbox', { name: 'Minutes' }).fill('20');
  await program.send('PATCH', `${orders}/${id}`, { json: { minutes: 30, warranty: true } });
  await page.keyboard.press('Enter');
  await page.getByText('Somebody changed this while you edited it').waitFor();
  assert.deepEqual(await violationsOn(page), []);
  assert.equal((await stored(id)).minutes, 30);
  assert.equal(await page.locator('.conflict').getByRole('row', { name: /etag/i }).count(), 0);
  await page.getByRole('button', { name: 'Save what I chose' }).click();
  await cell('20 min').waitFor();
  await cell('yes').waitFor();
  assert.equal((await stored(id)).minutes, 20);
  await program.send('PATCH', `${orders}/${id}`, { json: { minutes: 40 } });
  await at(4).dblclick();
  await page.getByRole('textbox', { name: 'Minutes' }).fill('50');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Keep theirs' }).click();
  await cell('40 min').waitFor();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  assert.deepEqual(complaints, []);
});

test('says why a cell is not edited: who sets it, where it is edited, and what the caller may not change', async () => {
  const { id, view } = await order({ price: 10 });
  await page.goto(`${program.url}/dashboard`);
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('heading', { name: 'Collections' }).waitFor();
  await page.evaluate(`location.hash = ${JSON.stringify(view)}`);
  for (const [column, reason] of [
    [8, 'The server sets this.'],
    [9, 'Edit this on the page of the document.'],
    [5, 'You may not change this.'],
  ] as const) {
    await at(column).focus();
    await page.keyboard.press('F2');
    await page.getByRole('status').getByText(reason).waitFor();
    assert.deepEqual(await violationsOn(page), []);
  }
  assert.equal(await at(8).getAttribute('aria-readonly'), 'true');
  assert.equal(await at(4).getAttribute('aria-readonly'), 'false');
  await at(4).dblclick();
  await page.getByRole('textbox', { name: 'Minutes' }).fill('15');
  await page.keyboard.press('Enter');
  await cell('15 min').waitFor();
  assert.equal((await stored(id)).minutes, 15);
});
