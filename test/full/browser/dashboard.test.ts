/** The dashboard in a real browser, by what a person does: the shop over its own listener, with the policy that the program sends. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { Secret, TOTP } from 'otpauth';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { type Client, openClient, register } from '../../harness/account-client.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { openBrowser } from './chromium.ts';
import { enterDashboard, openWindow } from './dashboard-window.ts';

const email = 'ada@shop.example';
const password = 'correct horse battery staple';

let program: RunningServer;
let browser: Browser;
let client: Client;
let context: BrowserContext;
let page: Page;
let complaints: readonly string[];

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
  ({ page, complaints } = await openWindow(context, program.url));
  if ('after' in t) t.after(() => context.close());
});

async function createNote(text: string): Promise<string> {
  const { body } = await program.send('POST', '/api/v1/notes', { json: { text } });
  return (JSON.parse(body) as { id: string }).id;
}

const enter = (view = '', on = page) => enterDashboard(on, program.url, view);
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

test('shows the login page without a dialog of the browser for a name and a password', async () => {
  const devtools = await context.newCDPSession(page);
  const dialogs: string[] = [];
  devtools.on('Fetch.requestPaused', ({ requestId }) =>
    devtools.send('Fetch.continueRequest', { requestId }),
  );
  devtools.on('Fetch.authRequired', ({ requestId, request }) => {
    dialogs.push(request.url);
    const authChallengeResponse = { response: 'CancelAuth' } as const;
    return devtools.send('Fetch.continueWithAuth', { requestId, authChallengeResponse });
  });
  await devtools.send('Fetch.enable', { handleAuthRequests: true });
  await page.goto(`${program.url}/dashboard`);
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill('wrong');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('alert').getByText('invalid credentials').waitFor();
  assert.deepEqual(dialogs, []);
  // The same request by the address bar has the dialog: the watch works.
  await page.goto(`${program.url}/api/v1/auth/me`);
  assert.deepEqual(dialogs, [`${program.url}/api/v1/auth/me`]);
});

test('asks for the second factor of an account that has one', async () => {
  const owner = 'grace@shop.example';
  const { token } = await register(client, owner, password);
  const headers = { Authorization: `Bearer ${token}` };
  const post = async (path: string, json: unknown) => {
    const { body } = await program.send('POST', `/api/v1/auth/second-factor/${path}`, {
      ...{ headers, json },
      anonymous: true,
    });
    return JSON.parse(body) as Record<string, string>;
  };
  const { enrolment, secret = '' } = await post('totp', { password });
  const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate();
  const { recoveryCodes } = await post('totp/confirm', { enrolment, code });
  await page.goto(`${program.url}/dashboard`);
  await page.getByLabel('Email').fill(owner);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
  const field = page.getByLabel('Code of your authenticator');
  await field.fill('000000');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByRole('alert').getByText('second_factor_invalid').waitFor();
  await field.fill(recoveryCodes?.[0] ?? '');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByText(owner).waitFor();
  assert.deepEqual(complaints, []);
});

test('creates, finds, changes and deletes a document', async () => {
  await enter(listOf('categories'));
  await page.getByRole('button', { name: 'New' }).click();
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('alert').getByText('name').first().waitFor();
  await page.getByRole('textbox', { name: 'Name' }).fill('Kites');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('gridcell', { name: 'Kites', exact: true }).waitFor();
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
  await page.getByText('No categories match').or(page.locator('table.rows')).waitFor();
  assert.deepEqual(complaints, []);
});

test('shows both versions if another window changed the document first, and applies the chosen one', async () => {
  const id = await createNote('first');
  const view = `#/member?path=/api/v1/notes&id=${id}`;
  await enter(view);
  const { page: other } = await openWindow(context, program.url);
  await enter(view, other);
  for (const [window, text] of [
    [page, 'mine'],
    [other, 'theirs'],
  ] as const) {
    await window.getByRole('button', { name: 'Edit' }).click();
    await window.getByLabel('text', { exact: false }).fill(text);
  }
  await other.getByRole('button', { name: 'Save' }).click();
  await other.getByText(/^Saved/).waitFor();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'Somebody changed this' }).waitFor();
  await page.getByRole('cell', { name: 'mine' }).waitFor();
  await page.getByRole('cell', { name: 'theirs' }).waitFor();
  await page.getByRole('button', { name: 'Save what I chose' }).click();
  await page.getByText(/^Saved/).waitFor();
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

test('keeps the language and the SQL when another list is chosen, and reads from that one', async () => {
  await enter('#/query?path=/api/v1/notes');
  await page.getByLabel('SQL').check();
  const editor = page.getByRole('textbox', { name: 'Query' });
  await editor.fill("SELECT id FROM notes WHERE id <> 'notes' LIMIT 3");
  await page.getByLabel('List').selectOption('categories');
  assert.equal(await editor.inputValue(), "SELECT id FROM categories WHERE id <> 'notes' LIMIT 3");
  assert.ok(await page.getByLabel('SQL').isChecked());
  await page.goBack();
  await page.waitForFunction(`document.querySelector('textarea').value.includes('FROM notes')`);
  assert.deepEqual(complaints, []);
});

test('leads from an error to its explanation with the request that was refused', async () => {
  await enter(listOf('products'));
  await page.getByRole('button', { name: 'New' }).click();
  for (const [name, value] of [
    ['Name', 'Kettle'],
    ['Price', '-1'],
    ['Sku', 'K-1'],
  ] as const)
    await page.getByRole('dialog').getByRole('textbox', { name }).fill(value);
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('link', { name: 'Why this answer?' }).click();
  await page.getByRole('heading', { name: 'The response with status 400' }).waitFor();
  assert.equal(await page.getByLabel('Method').inputValue(), 'POST');
  assert.equal(await page.getByLabel('Path').inputValue(), '/api/v1/products');
  assert.match(await page.locator('textarea[name="content"]').inputValue(), /^\{.*"name":"Kettle"/);
  assert.ok(!page.url().includes('Kettle'), 'the content is not in the address');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByText('400 Bad Request').waitFor();
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

test('shows the roles of accounts in their list', async () => {
  await enter(listOf('users'));
  await page.getByRole('columnheader', { name: 'Roles' }).waitFor();
  assert.deepEqual(complaints, []);
});

test('shows the secret of a new key once', async () => {
  await enter(listOf('keys'));
  await page.getByRole('button', { name: 'New' }).click();
  await page.getByRole('textbox', { name: 'Name' }).fill('for a test');
  await page.getByRole('combobox', { name: /^Kind/ }).selectOption('secret');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByText('Only this response shows the secret').waitFor();
  const shown = (await page.locator('.json pre').first().textContent()) ?? '';
  const [, secret = ''] = /"key": "(sk_[^"]+)"/.exec(shown) ?? [];
  assert.notEqual(secret, '');
  await page.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('cell', { name: 'for a test', exact: true }).waitFor();
  assert.equal(await page.getByText(secret).count(), 0);
  assert.deepEqual(complaints, []);
});

test('shows events as they happen, 200 a second, and keeps the newest', async (t) => {
  await enter('#/live');
  await page.getByText('Connected.').waitFor();
  await page.evaluate(
    '(() => { window.longest = 0; let before = performance.now(); const tick = (now) => { window.longest = Math.max(window.longest, now - before); before = now; requestAnimationFrame(tick); }; requestAnimationFrame(tick); })()',
  );
  const text = 'written while it is watched';
  await program.send('POST', '/api/v1/categories', { json: { name: 'Titled' } });
  await page
    .getByRole('region', { name: 'Events', exact: true })
    .getByRole('link', { name: 'Titled' })
    .waitFor();
  for (let second = 0; second < 3; second += 1) {
    await Promise.all(Array.from({ length: 200 }, () => createNote(text)));
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  await page.getByText('601 events').waitFor();
  const events = page.getByRole('region', { name: 'Events', exact: true });
  assert.equal(await events.locator('tbody tr').count(), 200);
  // The view follows the events by a stream of its own.
  await page.getByRole('heading', { name: 'Connections' }).waitFor();
  await page.getByRole('cell', { name: 'stream', exact: true }).waitFor();
  const longest = Number(await page.evaluate('window.longest'));
  t.diagnostic(`longest frame ${Math.round(longest)} ms`);
  await page.getByRole('button', { name: 'Pause' }).click();
  await createNote(text);
  await page.getByText('602 events').waitFor();
  assert.deepEqual(complaints, []);
});

test('shows the attempts of a delivery as a timeline', async () => {
  const { body } = await program.send('POST', '/api/v1/endpoints', {
    json: { url: 'https://hooks.invalid/', events: ['categories.*'] },
  });
  const { id } = JSON.parse(body) as { id: string };
  await program.send('POST', '/api/v1/categories', { json: { name: 'Delivered' } });
  await enter(`#/list?path=/api/v1/deliveries&endpointId=${id}`);
  await page.locator('tbody a').first().click();
  await page.getByText('attempts', { exact: true }).click();
  await page.locator('.timeline li.bad').first().waitFor();
  assert.deepEqual(complaints, []);
});

test('shows the rates and times of the server', async () => {
  await enter('#/system');
  await page.getByText('Requests by route').waitFor();
  await page.getByRole('cell', { name: 'GET /metrics' }).waitFor();
  await page.getByRole('figure', { name: /Time of requests/ }).waitFor();
  assert.deepEqual(complaints, []);
});
