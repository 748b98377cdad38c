/** The dashboard in a real browser, by what a person does: the shop over its own listener, with the policy that the program sends. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, beforeEach, test } from 'node:test';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { type Client, openClient, register } from '../../harness/account-client.ts';
import { adminKey } from '../../harness/exchange.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { openBrowser } from './chromium.ts';

const email = 'ada@shop.example';
const password = 'correct horse battery staple';
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let program: RunningServer;
let browser: Browser;
let client: Client;
let context: BrowserContext;
let page: Page;
let complaints: string[];

before(async () => {
  program = await startServer();
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
  context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  page = await openPage();
  complaints = [];
  if ('after' in t) t.after(() => context.close());
});

/** A page whose errors, violations of the policy and requests of other hosts become complaints. */
async function openPage(): Promise<Page> {
  const opened = await context.newPage();
  opened.on('pageerror', (error) => complaints.push(String(error)));
  opened.on('console', (message) => {
    // The browser reports each status of 400 and above that the program means to send.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      complaints.push(message.text());
  });
  opened.on('request', (request) => {
    if (!request.url().startsWith(program.url) && !/^(data|blob):/.test(request.url()))
      complaints.push(request.url());
  });
  return opened;
}

async function enter(view = '', on: Page = page): Promise<void> {
  await on.goto(`${program.url}/dashboard`);
  await on.getByLabel('API key').fill(adminKey);
  await on.getByRole('button', { name: 'Use the key' }).click();
  await on.getByRole('heading', { name: 'Collections' }).waitFor();
  if (view !== '') await on.evaluate(`location.hash = ${JSON.stringify(view)}`);
}

async function createNote(text: string): Promise<string> {
  const { body } = await program.send('POST', '/api/v1/notes', { json: { text } });
  return (JSON.parse(body) as { id: string }).id;
}

const listOf = (name: string) => `#/list?path=/api/v1/${name}`;

test('leads browsers from / to the dashboard, and gives programs the links of the API', async () => {
  await page.goto(`${program.url}/`);
  assert.equal(new URL(page.url()).pathname, '/dashboard');
  const { status, body } = await program.send('GET', '/');
  assert.equal(status, 200);
  assert.deepEqual(JSON.parse(body), {
    api: '/api/v1',
    openapi: '/openapi.json',
    docs: '/docs',
    health: '/health/ready',
    dashboard: '/dashboard',
  });
});

test('logs in by account with the session cookie, and out again', async () => {
  await page.goto(`${program.url}/dashboard`);
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill('wrong');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('alert').getByText('invalid credentials').waitFor();
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByText(email).waitFor();
  await page.reload();
  await page.getByText(email).waitFor();
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByLabel('Password').waitFor();
  assert.deepEqual(complaints, []);
});

test('creates, finds, changes and deletes a document', async () => {
  await enter(listOf('categories'));
  await page.getByRole('button', { name: 'New' }).click();
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('alert').getByText('name').first().waitFor();
  await page.getByLabel('name', { exact: false }).first().fill('Kites');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('cell', { name: 'Kites' }).waitFor();
  await page.getByLabel('Member').selectOption('name');
  await page.getByLabel('Value').fill('Kites');
  await page.getByRole('button', { name: 'Filter' }).click();
  await page.getByText('1 in this view').waitFor();
  await page.locator('tbody a').first().click();
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('name', { exact: false }).fill('Box kites');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'Box kites' }).waitFor();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByText('No categories match').or(page.locator('table')).waitFor();
  assert.deepEqual(complaints, []);
});

test('shows both versions if another window changed the document first, and applies the chosen one', async () => {
  const id = await createNote('first');
  const view = `#/member?path=/api/v1/notes&id=${id}`;
  await enter(view);
  const other = await openPage();
  await enter(view, other);
  for (const [window, text] of [
    [page, 'mine'],
    [other, 'theirs'],
  ] as const) {
    await window.getByRole('button', { name: 'Edit' }).click();
    await window.getByLabel('text', { exact: false }).fill(text);
  }
  await other.getByRole('button', { name: 'Save' }).click();
  await other.getByText('Saved.').waitFor();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'Somebody changed this' }).waitFor();
  await page.getByRole('cell', { name: 'mine' }).waitFor();
  await page.getByRole('cell', { name: 'theirs' }).waitFor();
  await page.getByRole('button', { name: 'Apply my change' }).click();
  await page.getByText('Saved.').waitFor();
  const { body } = await program.send('GET', `/api/v1/notes/${id}`);
  assert.equal((JSON.parse(body) as { text: string }).text, 'mine');
  assert.deepEqual(complaints, []);
});

test('runs a QUERY as JSON and as SQL, and shows its faults', async () => {
  await createNote('found by a query');
  await enter('#/query?path=/api/v1/notes');
  await page.getByRole('button', { name: /^Run/ }).click();
  await page.getByRole('cell', { name: 'found by a query' }).waitFor();
  await page.getByLabel('SQL').check();
  await page.getByRole('textbox', { name: 'Query' }).fill('SELECT nothing FROM notes');
  await page.getByRole('button', { name: /^Run/ }).click();
  await page.getByRole('alert').getByText('422').waitFor();
  assert.deepEqual(complaints, []);
});

test('explains a request by its walk through the graph', async () => {
  await enter('#/explain?method=GET&path=/api/v1/notes/none');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByText('404 Not Found').waitFor();
  await page.getByText('Does a resource exist at the target?').waitFor();
  const last = page.locator('.walk li').last();
  assert.match((await last.textContent()) ?? '', /404 not_found/);
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByText('The request before').waitFor();
  assert.deepEqual(complaints, []);
});

test('shows the secret of a new key once', async () => {
  await enter(listOf('keys'));
  await page.getByRole('button', { name: 'New' }).click();
  await page.getByLabel('name', { exact: false }).first().fill('for a test');
  await page.getByRole('combobox', { name: /^kind/ }).selectOption('secret');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByText('Only this response shows the secret').waitFor();
  const shown = (await page.locator('.json pre').first().textContent()) ?? '';
  const [, secret = ''] = /"key": "(sk_[^"]+)"/.exec(shown) ?? [];
  assert.notEqual(secret, '');
  await page.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('cell', { name: 'for a test' }).waitFor();
  assert.equal(await page.getByText(secret).count(), 0);
  assert.deepEqual(complaints, []);
});

const views = [
  ['the overview', ''],
  ['a list', listOf('products')],
  ['an empty list', listOf('deliveries')],
  ['a query', '#/query?path=/api/v1/products'],
  ['an explanation', '#/explain'],
] as const;

for (const [name, view] of views) {
  test(`has no violation of accessibility in light and dark, and fits a phone: ${name}`, async () => {
    await enter(view);
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
  });
}

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

/** By axe-core, which the policy of the page lets no page load: the browser evaluates it. */
async function violationsOn(on: Page): Promise<readonly string[]> {
  await on.evaluate(axe);
  const found = (await on.evaluate('axe.run()')) as {
    violations: { id: string; nodes: { html: string }[] }[];
  };
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}
