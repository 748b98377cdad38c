/** The dashboard by what a declaration says of people: labels, titles, states, money, times of the reader; and its forms. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';
import { type Client, login, openClient, register } from '../../harness/account-client.ts';
import { startMailServer } from '../../harness/mail-server.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { openBrowser } from './chromium.ts';
import { enterDashboard, openWindow, reloadDashboard, violationsOn } from './dashboard-window.ts';

const orders = '/api/v1/orders';

type Document = { readonly id: string } & Record<string, unknown>;

const mails = await startMailServer({ after });
let program: RunningServer;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let complaints: readonly string[];
let customer: Document;
let technician: Document;
let client: Client;

const email = 'una@service.example';
const password = 'correct horse battery staple';

before(async () => {
  const config = fileURLToPath(new URL('./fixtures/work-orders.config.ts', import.meta.url));
  program = await startServer({ config, env: { COMITY_SMTP_URL: mails.url } });
  customer = await create('customers', { name: 'Café Central', city: 'Wien', country: 'AT' });
  technician = await create('users', { email: 'tom@service.example', name: 'Tom Technician' });
  client = openClient(program.port);
  await register(client, email, password);
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  client?.close();
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

const enter = (view: string) => enterDashboard(page, program.url, view);
const list = `#/list?path=${orders}`;
const memberOf = (id: string) => `#/member?path=${orders}&id=${id}`;

function order(number: string, members: object = {}): Promise<Document> {
  return create('orders', { number, customerId: customer.id, ...members });
}

test('names lists, members and documents as the declaration does, and shows no id beside a link', async () => {
  const { id } = await order('W-1', {
    state: 'under_way',
    technicianId: technician.id,
    plannedAt: '2026-07-01T07:30:00Z',
    minutes: 90,
    price: 1234.5,
    discount: 0.05,
  });
  await enter(`${list}&number=W-1`);
  await page.getByRole('heading', { name: 'Work orders' }).waitFor();
  await page.getByRole('button', { name: 'No. = W-1' }).waitFor();
  const row = page.getByRole('row', { name: /W-1/ });
  await row.getByRole('link', { name: 'Café Central, Wien' }).waitFor();
  assert.equal(await row.locator('.badge.info').textContent(), 'Under way');
  const planned = row.locator('time').first();
  assert.match((await planned.textContent()) ?? '', /1 Jul 2026.*09:30/);
  assert.match(
    (await planned.getAttribute('title')) ?? '',
    /^2026-07-01T09:30:00\.000\+02:00 \(Europe\/Berlin\)/,
  );
  assert.ok(!(await page.locator('tbody').textContent())?.includes(customer.id));
  await row.getByRole('link', { name: 'W-1' }).click();
  await page.getByRole('heading', { name: 'W-1 Café Central, Wien' }).waitFor();
  await page.getByRole('heading', { name: 'Money' }).waitFor();
  const members = await page.locator('.members').allTextContents();
  for (const text of ['€1,234.50', '1 h 30 min', '5%', 'Under way'])
    assert.ok(members.join().includes(text), text);
  assert.equal(await page.getByRole('main').locator('a', { hasText: id }).count(), 0);
  assert.deepEqual(await violationsOn(page), []);
  assert.deepEqual(complaints, []);
});

test('has a form at the side, with groups, defaults, and buttons that stay in view', async () => {
  await enter(list);
  await page.getByRole('button', { name: 'New' }).click();
  const panel = page.getByRole('dialog', { name: 'New: Order' });
  assert.equal(await panel.getByLabel('State').inputValue(), 'planned');
  assert.equal(await panel.getByLabel('Currency').inputValue(), 'EUR');
  await panel.getByRole('group', { name: 'Money' }).getByText('How long the work takes').waitFor();
  const create = panel.getByRole('button', { name: 'Create' });
  assert.ok(await isInView(create));
  assert.deepEqual(await violationsOn(page), []);
  // A fault at a member: it comes into view and has the focus.
  await panel.getByLabel('No.').fill('W-2');
  await panel.getByRole('combobox', { name: 'Customer' }).fill('cafe');
  await panel.getByRole('option', { name: 'Café Central, Wien' }).click();
  await panel.getByLabel('Notes').fill('Bring a ladder.');
  await panel.getByLabel('Discount').fill('2');
  await panel.getByLabel('No.').focus();
  await create.click();
  await panel.getByLabel('Discount').and(page.locator(':focus')).waitFor();
  assert.ok(await isInView(panel.getByLabel('Discount')));
  await panel.getByLabel('Discount').fill('0.1');
  // A code of a hook, which the reference has as well.
  await panel.getByLabel('State').selectOption('done');
  await create.click();
  await panel.getByLabel('Minutes').and(page.locator(':focus')).waitFor();
  await panel.getByText('minutes_missing').waitFor();
  const reference = await panel.getByRole('link', { name: 'minutes_missing' }).getAttribute('href');
  assert.equal(reference, '/docs/errors#minutes_missing');
  const { body: errors } = await program.send('GET', '/docs/errors');
  assert.match(errors, /<article id="minutes_missing">/);
  // Escape asks, since something was typed.
  await page.keyboard.press('Escape');
  await panel.getByRole('button', { name: 'Stay' }).click();
  await panel.getByLabel('Minutes').fill('30');
  await create.click();
  await page
    .getByRole('row', { name: /W-2/ })
    .getByText('30 min')
    .or(page.getByText('W-2'))
    .first()
    .waitFor();
  const { items } = (await program.send('GET', `${orders}?number=W-2`)).json() as { items: Document[] };
  assert.deepEqual([items[0]?.minutes, items[0]?.state, items[0]?.currency], [30, 'done', 'EUR']);
  assert.deepEqual(complaints, []);
});

const isInView = (element: Locator) =>
  element.evaluate((each: { getBoundingClientRect(): { top: number; bottom: number } }) => {
    const { top, bottom } = each.getBoundingClientRect();
    return top >= 0 && bottom <= 800;
  });

test('shows members that the caller may not write as text', async () => {
  const { id } = await order('W-3', { price: 100, technicianId: technician.id });
  await page.goto(`${program.url}/dashboard${memberOf(id)}`);
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('button', { name: 'Edit' }).click();
  const panel = page.getByRole('dialog', { name: 'Edit W-3 Café Central, Wien' });
  await panel.getByLabel('No.').waitFor();
  assert.equal(await panel.getByLabel('Price').count(), 0);
  await panel.locator('.closed', { hasText: 'Price' }).getByText('€100.00').waitFor();
  await panel.locator('.closed', { hasText: 'Technician' }).waitFor();
  assert.deepEqual(await violationsOn(page), []);
  await panel.getByLabel('Notes').fill('Two stairs.');
  await panel.getByRole('button', { name: 'Save' }).click();
  await page.getByText(/^Saved/).waitFor();
  const stored = (await program.send('GET', `${orders}/${id}`)).json() as Document;
  assert.deepEqual([stored.notes, stored.price], ['Two stairs.', 100]);
  assert.deepEqual(complaints, []);
});

test('merges member by member what two people changed', async () => {
  const { id } = await order('W-4', { minutes: 10, notes: 'old' });
  await enter(memberOf(id));
  await page.getByRole('button', { name: 'Edit' }).click();
  const panel = page.getByRole('dialog');
  await panel.getByLabel('Notes').fill('mine');
  await panel.getByLabel('Minutes').fill('20');
  const theirs = { notes: 'theirs', minutes: 30, warranty: true };
  assert.equal((await program.send('PATCH', `${orders}/${id}`, { json: theirs })).status, 200);
  await panel.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'Somebody changed this' }).waitFor();
  await page.getByText('by the administrator key').first().waitFor();
  const row = page.locator('.conflict').getByRole('row', { name: /^Notes/ });
  assert.deepEqual(await row.locator('td').allTextContents(), ['old', ' theirs', ' mine']);
  await page
    .locator('.conflict')
    .getByRole('row', { name: /^Warranty/ })
    .waitFor();
  assert.deepEqual(await violationsOn(page), []);
  await page.getByRole('radio', { name: 'Notes: theirs' }).check();
  await page.getByRole('button', { name: 'Save what I chose' }).click();
  await page.getByText(/^Saved/).waitFor();
  const merged = (await program.send('GET', `${orders}/${id}`)).json() as Document;
  assert.deepEqual([merged.notes, merged.minutes, merged.warranty], ['theirs', 20, true]);
  assert.deepEqual(complaints, []);
});

test('leads by Ctrl+K to documents, lists and actions, and keeps what is folded', async () => {
  await order('W-5');
  await enter(list);
  await page.getByRole('heading', { name: 'Work orders' }).waitFor();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('central');
  await page.getByRole('option', { name: 'Café Central, Wien Customers' }).waitFor();
  assert.deepEqual(await violationsOn(page), []);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Café Central, Wien' }).waitFor();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('new: ord');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'New: Order' }).waitFor();
  await page.goBack();
  await page.getByRole('heading', { name: 'Café Central, Wien' }).waitFor();
  const links = page.getByRole('navigation').getByRole('link', { name: 'Subscribers' });
  await links.waitFor();
  await page.getByRole('navigation').getByText('Functions').click();
  await links.waitFor({ state: 'hidden' });
  await reloadDashboard(page);
  await page.getByRole('navigation').getByText('Functions').waitFor();
  await links.waitFor({ state: 'hidden' });
  await page.setViewportSize({ width: 390, height: 800 });
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByLabel('Password').waitFor();
  assert.deepEqual(complaints, []);
});

test('invites the owner of an account by mail, and says why it cannot', async () => {
  await enter(`#/member?path=/api/v1/users&id=${technician.id}`);
  await page.getByRole('button', { name: 'Invite by mail' }).click();
  await page.getByText('The mail is on its way.').waitFor();
  assert.match((await mails.next('tom@service.example')).raw, /invit/i);
  assert.deepEqual(await violationsOn(page), []);
  const { body } = await client.ask('GET', '/api/v1/auth/me', {
    as: (await login(client, email, password)).token,
  });
  await enter(`#/member?path=/api/v1/users&id=${(JSON.parse(body) as Document).id}`);
  await page.getByRole('button', { name: 'Invite by mail' }).click();
  await page
    .getByText(/has a password|second factor/)
    .first()
    .waitFor();
  assert.deepEqual(complaints, []);
});
