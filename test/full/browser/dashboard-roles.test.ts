/** The dashboard for people with roles: their Home, what they may do, what was done, invitations, and actions on no collection. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { type Client, changeUser, openClient, register } from '../../harness/account-client.ts';
import { codeIn, startMailServer } from '../../harness/mail-server.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { firstPair } from '../../wire/server/certificates.ts';
import { openBrowser } from './chromium.ts';
import { enterDashboard, openWindow, violationsOn } from './dashboard-window.ts';

const orders = '/api/v1/orders';
const list = `#/list?path=${orders}`;
const memberOf = (id: string) => `#/member?path=${orders}&id=${id}`;
const password = 'correct horse battery staple';
const dora = 'dora@field.example';
const tom = 'tom@field.example';

const mails = await startMailServer({ after });
const config = fileURLToPath(new URL('./fixtures/roles.config.ts', import.meta.url));
let program: RunningServer;
let mailless: RunningServer;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let complaints: readonly string[];
let client: Client;
let tomId: string;

before(async () => {
  program = await startServer({ config, env: { COMITY_SMTP_URL: mails.url } });
  const folder = temporaryFolder();
  const [certificate, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  writeFileSync(certificate, firstPair.cert);
  writeFileSync(key, firstPair.key);
  const tls = { COMITY_TLS_CERT: certificate, COMITY_TLS_KEY: key, COMITY_TLS_PORT: '0' };
  mailless = await startServer({ config, env: tls });
  client = openClient(program.port);
  for (const [email, roles] of [
    [dora, ['dispatcher']],
    [tom, ['technician']],
  ] as const) {
    const { userId } = await register(client, email, password);
    await changeUser(client, userId, { roles, tenant: 'north' });
    if (email === tom) tomId = userId;
  }
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  client?.close();
  await program?.stop();
  await mailless?.stop();
});

beforeEach(async (t) => {
  context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: 'en-GB' });
  ({ page, complaints } = await openWindow(context, program.url));
  if ('after' in t) t.after(() => context.close());
});

async function create(members: object): Promise<string> {
  const json = { site: 'Mill', price: 100, ...members };
  return (await program.send('POST', orders, { json, expect: 201 })).json().id;
}

async function enterAs(email: string, view = ''): Promise<void> {
  await page.goto(`${program.url}/dashboard${view}`);
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.locator('.who').getByRole('link', { name: email }).waitFor();
}

const notice = (text: RegExp) => page.locator('.notices').filter({ hasText: text });

test('says what was created, changed and deleted, with a link, and takes it back', async () => {
  await enterAs(dora, list);
  await page.getByRole('button', { name: 'New' }).click();
  const panel = page.getByRole('dialog', { name: 'New: Order' });
  await panel.getByLabel('No.').fill('A-1');
  await panel.getByLabel('Site').fill('Harbour');
  await panel.getByLabel('Price').fill('80');
  await panel.getByRole('button', { name: 'Create' }).click();
  const status = page.locator('.notices').getByRole('status');
  assert.equal(await status.getAttribute('aria-live'), 'polite');
  await status.filter({ hasText: 'Created A-1 Harbour.' }).waitFor();
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violationsOn(page), []);
  }
  await status.getByRole('link', { name: 'A-1 Harbour' }).click();
  await page.getByRole('heading', { name: 'A-1 Harbour' }).waitFor();
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByRole('dialog').getByLabel('Price').fill('90');
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await notice(/^Saved A-1 Harbour\./).waitFor();
  await page.getByText('€90.00').first().waitFor();
  await page.getByRole('button', { name: 'Undo' }).click();
  await notice(/^Changed back A-1 Harbour\./).waitFor();
  await page.locator('.members').getByText('€80.00').first().waitFor();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await notice(/^Deleted A-1 Harbour\./).waitFor();
  await page.getByRole('heading', { name: 'Orders' }).waitFor();
  assert.equal(await page.getByRole('row', { name: /A-1/ }).count(), 0);
  await page.getByRole('button', { name: 'Undo' }).click();
  await notice(/^Restored A-1 Harbour\./).waitFor();
  await page.getByRole('row', { name: /A-1/ }).waitFor();
  await page.getByRole('button', { name: 'Dismiss' }).click();
  await notice(/./).waitFor({ state: 'hidden' });
  assert.deepEqual(complaints, []);
});

test('says how many rows were deleted, and restores them', async () => {
  await create({ number: 'B-1' });
  await create({ number: 'B-2' });
  await enterAs(dora, `${list}&q=B-`);
  await page.getByRole('checkbox', { name: 'Mark all rows' }).check();
  await page.getByText('2 marked').waitFor();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await notice(/^Deleted: 2 of Orders\./).waitFor();
  await page.getByText('No Orders match this view.').waitFor();
  await page.getByRole('button', { name: 'Undo' }).click();
  await notice(/^Restored: 2 of Orders\./).waitFor();
  await page.getByRole('row', { name: /B-2/ }).waitFor();
  assert.deepEqual(complaints, []);
});

test('says that a change cannot be taken back which somebody else has changed since', async () => {
  const id = await create({ number: 'C-1' });
  await enterAs(dora, memberOf(id));
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByRole('dialog').getByLabel('Notes').fill('mine');
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await notice(/^Saved/).waitFor();
  await program.send('PATCH', `${orders}/${id}`, { json: { notes: 'theirs' }, expect: 200 });
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByRole('alert').getByText('Somebody changed the document since.').waitFor();
  const stored = (await program.send('GET', `${orders}/${id}`)).json();
  assert.equal(stored.notes, 'theirs');
  assert.deepEqual(complaints, []);
});

test('offers nobody what they may never do, on the list, the document and in the palette', async () => {
  const planned = await create({ number: 'D-1' });
  const underWay = await create({ number: 'D-2', state: 'under_way' });
  await enterAs(tom, `${list}&q=D-`);
  await page.getByRole('row', { name: /D-1/ }).waitFor();
  await page.getByText('2 in this view').waitFor();
  for (const name of ['New', 'Deleted', 'Import'])
    assert.equal(await page.getByRole('main').getByText(name, { exact: true }).count(), 0, name);
  assert.equal(await page.getByRole('checkbox', { name: /^Mark/ }).count(), 0);
  await page.goto(`${program.url}/dashboard${memberOf(planned)}`);
  await page.getByText('You may read this, and neither change nor delete it.').waitFor();
  for (const name of ['Edit', 'Delete…', 'Start'])
    assert.equal(await page.getByRole('button', { name }).count(), 0, name);
  // The rule of this document lets everyone change it, without the price.
  await page.goto(`${program.url}/dashboard${memberOf(underWay)}`);
  await page.getByRole('button', { name: 'Edit' }).click();
  const panel = page.getByRole('dialog');
  await panel.locator('.closed', { hasText: 'Price' }).getByText('€100.00').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Delete…' }).count(), 0);
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+k');
  await page.keyboard.type('order');
  await page.getByRole('option', { name: /^Orders/ }).waitFor();
  assert.equal(await page.getByRole('option', { name: 'New: Order' }).count(), 0);
  assert.deepEqual(await violationsOn(page), []);
  assert.deepEqual(complaints, []);
});

test('marks the members that a document needs, also those that not everybody writes', async () => {
  const id = await create({ number: 'E-1' });
  await enterAs(dora, memberOf(id));
  await page.getByRole('button', { name: 'Edit' }).click();
  const panel = page.getByRole('dialog');
  for (const [label, isNeeded] of [
    ['No.', 'true'],
    ['Price', 'true'],
    ['Notes', 'false'],
  ] as const)
    assert.equal(await panel.getByLabel(label).getAttribute('aria-required'), isNeeded, label);
  await page.keyboard.press('Escape');
  await page.goto(`${program.url}/dashboard${list}&new=yes`);
  assert.equal(await page.getByRole('dialog').getByLabel('Price').getAttribute('aria-required'), 'true');
  assert.deepEqual(complaints, []);
});

test('Home shows what is a dispatcher’s, what changed, and what is a technician’s', async () => {
  await create({ number: 'F-1', technicianId: tomId });
  await create({ number: 'F-2', state: 'under_way' });
  await enterAs(dora, `${list}&state=under_way`);
  await page.getByText('Views', { exact: true }).click();
  await page.getByLabel('Name of the view').fill('On the way');
  await page.getByRole('checkbox', { name: /Share/ }).check();
  await page.getByRole('button', { name: 'Save as new' }).click();
  await page.getByText('On the way').first().waitFor();
  await page.evaluate("location.hash = '#/'");
  await page.getByRole('heading', { name: 'Saved views' }).waitFor();
  await page
    .locator('.cards')
    .getByRole('link', { name: /^On the way\s*Orders\s*[1-9]/ })
    .waitFor();
  const changed = page.getByRole('region', { name: 'Changed lately, yours to act on' });
  await changed.getByRole('link', { name: 'F-2 Mill' }).waitFor();
  await page.getByRole('link', { name: 'New: Order' }).waitFor();
  assert.equal(await page.getByRole('link', { name: 'New: Rate' }).count(), 0);
  for (const [width, colorScheme] of [
    [1280, 'light'],
    [390, 'dark'],
  ] as const) {
    await page.setViewportSize({ width, height: 844 });
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violationsOn(page), []);
    const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
    assert.equal(await page.evaluate(overflow), 0, 'the page scrolls sideways');
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.getByRole('button', { name: 'Log out' }).click();
  await enterAs(tom);
  await page.getByRole('heading', { name: 'Assigned to you' }).waitFor();
  await page
    .locator('.cards')
    .getByRole('link', { name: /^Orders\s*Technician: you\s*1/ })
    .click();
  await page.getByRole('row', { name: /F-1/ }).waitFor();
  await page.goBack();
  const toRead = page.getByRole('region', { name: 'Changed lately, to read' });
  await toRead.getByRole('link', { name: 'F-1 Mill' }).waitFor();
  assert.deepEqual(complaints, []);
});

test('Home names keys that expire within 30 days', async () => {
  const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
  for (const [name, days] of [
    ['Nightly export', 29],
    ['Partner', 31],
  ] as const) {
    const json = { name, kind: 'secret', expiresAt: inDays(days) };
    await program.send('POST', '/api/v1/keys', { json, expect: 201 });
  }
  await enterDashboard(page, program.url);
  const found = page.getByRole('region', { name: 'Needs you now' }).getByRole('listitem');
  await found.filter({ hasText: /The key Nightly export expires/ }).waitFor();
  assert.equal(await found.filter({ hasText: 'Partner' }).count(), 0);
  assert.deepEqual(complaints, []);
});

test('Home names a certificate that expires within 30 days', async () => {
  const own = await openWindow(context, mailless.url);
  for (const [today, text] of [
    ['2126-10-10T12:00:00Z', /The TLS certificate expires 29 Oct 2126/],
    ['2126-11-10T12:00:00Z', /The TLS certificate expired 29 Oct 2126/],
  ] as const) {
    await own.page.clock.setFixedTime(today);
    await enterDashboard(own.page, mailless.url);
    await own.page.locator('.findings').getByText(text).waitFor();
  }
  assert.deepEqual(own.complaints, []);
});

test('invites a person by one form, with the roles that the caller may give', async () => {
  await enterAs(dora, '#/list?path=/api/v1/users');
  await page.getByRole('button', { name: 'Invite' }).click();
  const panel = page.getByRole('dialog', { name: 'Invite a person' });
  await panel.getByLabel('Email').fill('tina@field.example');
  await panel.getByLabel('Name').fill('Tina');
  const roles = panel.getByRole('group', { name: 'Roles' }).getByRole('checkbox');
  assert.equal(await roles.count(), 1);
  await panel.getByRole('checkbox', { name: 'Technician' }).check();
  assert.deepEqual(await violationsOn(page), []);
  await panel.getByRole('button', { name: 'Invite' }).click();
  await notice(/^Invited Tina\./).waitFor();
  assert.ok(codeIn(await mails.next('tina@field.example')).length > 0);
  const [tina] = await program.list('/api/v1/users?email=tina@field.example');
  assert.deepEqual([tina.roles, tina.tenant], [['technician'], 'north']);
  assert.deepEqual(complaints, []);
});

test('names the setting where no mail can be sent, and shows an administrator the link once', async () => {
  const own = await openWindow(context, mailless.url);
  await enterDashboard(own.page, mailless.url, '#/list?path=/api/v1/users');
  await own.page.getByRole('button', { name: 'Invite' }).click();
  const panel = own.page.getByRole('dialog', { name: 'Invite a person' });
  await panel.getByLabel('Email').fill('lia@field.example');
  await panel.getByRole('checkbox', { name: 'Dispatcher' }).check();
  await panel.getByRole('button', { name: 'Invite' }).click();
  await panel.getByText('no mail server is configured: set COMITY_SMTP_URL').waitFor();
  await panel.getByRole('button', { name: 'Create a link to copy' }).click();
  const code = await panel.locator('.secret code').textContent();
  await panel.getByText('This is shown once.').waitFor();
  await panel.getByText('COMITY_MAIL_INVITATION_URL').waitFor();
  assert.deepEqual(await violationsOn(own.page), []);
  const json = { code, password };
  const entered = await mailless.send('POST', '/api/v1/auth/invitation/accept', { json });
  assert.equal(entered.status, 200, entered.body);
  assert.deepEqual(own.complaints, []);
});

test('opens the access rules with a role, and shows the function that refuses and what it was asked', async () => {
  await enterDashboard(page, program.url, '#/rules?collection=orders');
  assert.equal(await page.getByRole('combobox', { name: 'Role' }).inputValue(), 'dispatcher');
  const decision = (title: string) =>
    page.locator('.decisions > li').filter({ has: page.getByRole('heading', { name: title, exact: true }) });
  await decision('Create').getByText('Always').waitFor();
  await page.getByRole('combobox', { name: 'Role' }).fill('technician');
  await page.keyboard.press('Tab');
  await page.getByText('Asked for an account with the role technician').waitFor();
  const removal = decision('Delete');
  await removal.getByText('Never', { exact: true }).waitFor();
  await removal.getByText(/returned by a function of the configuration, onlyPlanned/).click();
  await removal.getByText("principal.roles.has('dispatcher')").waitFor();
  assert.deepEqual(await violationsOn(page), []);
  assert.deepEqual(complaints, []);
});

test('numbers and money stand at the right of their columns', async () => {
  await create({ number: 'G-1', price: 12.5 });
  await enterAs(dora, `${list}&q=G-1`);
  const cell = page.getByRole('gridcell', { name: '€12.50' });
  const style = (element: unknown) => {
    const { textAlign, fontVariantNumeric } = (
      globalThis as unknown as { getComputedStyle(of: unknown): Record<string, string> }
    ).getComputedStyle(element);
    return `${textAlign} ${fontVariantNumeric}`;
  };
  assert.equal(await cell.evaluate(style), 'right tabular-nums');
  assert.match(await page.getByRole('columnheader', { name: 'Price' }).evaluate(style), /^right/);
  assert.match(await page.getByRole('columnheader', { name: 'Site' }).evaluate(style), /^(left|start)/);
});

test('actions on no collection have a page with forms, and stand in the palette', async () => {
  await enterAs(dora);
  await page.getByRole('link', { name: 'Actions' }).click();
  await page.getByRole('heading', { name: 'Actions' }).waitFor();
  assert.deepEqual(await violationsOn(page), []);
  await page.keyboard.press('Control+k');
  await page.keyboard.type('close the');
  await page.getByRole('option', { name: /^Close the day/ }).waitFor();
  await page.keyboard.press('Enter');
  const panel = page.getByRole('dialog', { name: 'Close the day' });
  await panel.getByLabel('Day').fill('2026-07-01');
  await panel.getByRole('button', { name: 'Close the day' }).click();
  await panel.getByRole('definition').filter({ hasText: '3' }).waitFor();
  await panel.getByRole('button', { name: 'Close', exact: true }).click();
  await notice(/^Carried out “Close the day”\./).waitFor();
  await page.getByRole('button', { name: 'Log out' }).click();
  await enterAs(tom);
  await page.getByRole('heading', { name: 'Collections' }).waitFor();
  assert.equal(await page.getByRole('link', { name: 'Actions' }).count(), 0);
  assert.deepEqual(complaints, []);
});
