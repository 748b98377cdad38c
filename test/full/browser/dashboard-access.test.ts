/** Access in the dashboard in a real browser: the first administrator, the second factor with its QR code, sessions, roles, keys and the server. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { Secret, TOTP } from 'otpauth';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { type Client, openClient, register } from '../../harness/account-client.ts';
import { adminKey } from '../../harness/exchange.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { openBrowser } from './chromium.ts';
import { enterDashboard, openWindow, violationsOn } from './dashboard-window.ts';

const password = 'correct horse battery staple';

let program: RunningServer;
let browser: Browser;
let client: Client;
let context: BrowserContext;
let page: Page;
let complaints: readonly string[];

before(async () => {
  program = await startServer({ env: { COMITY_RATE_LIMIT_READS: '5000', COMITY_LOG_LEVEL: 'warn' } });
  client = openClient(program.port);
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

async function logIn(email: string, on = page): Promise<void> {
  await on.goto(`${program.url}/dashboard`);
  await on.getByLabel('Email').fill(email);
  await on.getByLabel('Password').fill(password);
  await on.getByRole('button', { name: 'Log in' }).click();
  await on.getByRole('link', { name: email }).waitFor();
}

const show = (view: string) => page.evaluate(`location.hash = ${JSON.stringify(view)}`);

test('makes the first administrator from the key, once', async () => {
  await page.goto(`${program.url}/dashboard`);
  await page.getByLabel('API key').fill(adminKey);
  await page.getByRole('button', { name: 'Use the key' }).click();
  await page.getByRole('heading', { name: 'Make the first administrator' }).waitFor();
  assert.deepEqual(await violationsOn(page), []);
  await page.getByLabel('Email').fill('root@shop.example');
  await page.getByLabel('Password').fill('short');
  await page.getByRole('button', { name: 'Make the account and log in' }).click();
  await page.getByRole('alert').waitFor();
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Make the account and log in' }).click();
  await page.getByRole('link', { name: 'root@shop.example' }).waitFor();
  assert.equal(await page.evaluate('sessionStorage.length'), 0, 'the key is forgotten');
  const { body } = await program.send('GET', '/api/v1/users?email=root@shop.example');
  const { items } = JSON.parse(body) as { items: { roles: string[] }[] };
  assert.deepEqual(items[0]?.roles, ['administrator']);
  const { page: other } = await openWindow(await browser.newContext(), program.url);
  await enterDashboard(other, program.url);
  await other.context().close();
  assert.deepEqual(complaints, []);
});

test('adds an authenticator application by a QR code, shows recovery codes once, and removes it by a code', async () => {
  await register(client, 'grace@shop.example', password);
  await logIn('grace@shop.example');
  await show('#/account');
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await page.getByLabel('Your password').fill(password);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByRole('img', { name: 'The secret as a QR code' }).waitFor();
  assert.deepEqual(await violationsOn(page), []);
  const secret = (await page.locator('.secret code').textContent()) ?? '';
  const totp = new TOTP({ secret: Secret.fromBase32(secret) });
  await page.getByLabel('The code that the application shows').fill('000000');
  await page.getByRole('button', { name: 'Confirm' }).click();
  await page.getByRole('alert').getByText('second_factor_invalid').waitFor();
  await page.getByLabel('The code that the application shows').fill(totp.generate());
  await page.getByRole('button', { name: 'Confirm' }).click();
  await page.getByRole('heading', { name: 'Recovery codes' }).waitFor();
  const codes = await page.locator('.codes code').allTextContents();
  assert.equal(codes.length, 10);
  await page.getByRole('button', { name: 'I have stored them' }).click();
  await page.getByText('10 left').waitFor();
  assert.equal(await page.getByText(codes[0] ?? '').count(), 0);
  await page.getByRole('button', { name: 'Remove…', exact: true }).click();
  await page.getByLabel('A code of your authenticator').fill(codes[0] ?? '');
  await page.getByRole('button', { name: 'Remove the authenticator application' }).click();
  await page.getByText('not added').waitFor();
  assert.deepEqual(complaints, []);
});

test('leads an administrator who needs a second factor to it, and then to the rest', async (t) => {
  const strict = await startServer({ env: { COMITY_SECOND_FACTOR: 'administrators' } });
  if ('after' in t) t.after(() => strict.stop());
  const json = { email: 'root@shop.example', roles: ['administrator'] };
  const { id } = (await strict.send('POST', '/api/v1/users', { json })).json();
  await strict.send('POST', `/api/v1/users/${id}/password`, { json: { password } });
  const { page: own, complaints: told } = await openWindow(context, strict.url);
  await own.goto(`${strict.url}/dashboard`);
  await own.getByLabel('Email').fill('root@shop.example');
  await own.getByLabel('Password').fill(password);
  await own.getByRole('button', { name: 'Log in' }).click();
  await own.getByText('Your account needs a second factor').waitFor();
  await own.getByRole('button', { name: 'Add', exact: true }).click();
  await own.getByLabel('Your password').fill(password);
  await own.getByRole('button', { name: 'Continue' }).click();
  const secret = (await own.locator('.secret code').textContent()) ?? '';
  const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate();
  await own.getByLabel('The code that the application shows').fill(code);
  await own.getByRole('button', { name: 'Confirm' }).click();
  await own.getByRole('button', { name: 'I have stored them' }).click();
  await own.getByRole('link', { name: 'audit' }).waitFor();
  assert.deepEqual(told, []);
});

test('shows administrators the second factor of an account, and resets it', async () => {
  const { token, userId } = await register(client, 'lost@shop.example', password);
  const begun = await client.ask('POST', 'auth/second-factor/totp', {
    json: { password },
    as: token,
    expect: 200,
  });
  const { enrolment, secret } = begun.json();
  const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate();
  const json = { enrolment, code };
  await client.ask('POST', 'auth/second-factor/totp/confirm', { json, as: token, expect: 200 });
  await enterDashboard(
    page,
    program.url,
    `#/member?path=${encodeURIComponent('/api/v1/users')}&id=${userId}`,
  );
  await page.getByRole('heading', { name: 'Second factor' }).waitFor();
  await page.getByText('Recovery codes left').waitFor();
  assert.deepEqual(await violationsOn(page), []);
  await page.getByRole('button', { name: 'Reset the second factor' }).click();
  await page.getByRole('button', { name: 'Reset the second factor' }).last().click();
  await page.getByText('The account has none, and needs none.').waitFor();
  await client.ask('GET', 'auth/me', { as: token, expect: 401 });
  assert.deepEqual(complaints, []);
});

test('changes the address of the own account by a proof', async () => {
  await register(client, 'ines@shop.example', password);
  await logIn('ines@shop.example');
  await show('#/account');
  await page.getByText('Change your e-mail address').click();
  await page.getByLabel('New address').fill('ines2@shop.example');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByLabel('Your password').fill(password);
  assert.deepEqual(await violationsOn(page), []);
  await page.getByRole('button', { name: 'Change it to ines2@shop.example' }).click();
  await page.getByRole('alert').getByText('no mail server is configured').waitFor();
  assert.deepEqual(complaints, []);
});

test('the QR code is that of the secret', async () => {
  await register(client, 'qr@shop.example', password);
  await logIn('qr@shop.example');
  await show('#/account');
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await page.getByLabel('Your password').fill(password);
  await page.getByRole('button', { name: 'Continue' }).click();
  const image = page.getByRole('img', { name: 'The secret as a QR code' });
  await image.waitFor();
  const secret = (await page.locator('.secret code').textContent()) ?? '';
  const modules = (await image.locator('path').getAttribute('d')) ?? '';
  const size = Number(((await image.getAttribute('viewBox')) ?? '').split(' ').at(-1));
  const { default: decode } = await import('qr/decode.js');
  const scale = 4;
  const pixels = new Uint8Array((size * scale) ** 2 * 4).fill(255);
  for (const [, x = 0, y = 0] of modules.matchAll(/M(\d+) (\d+)h1/g)) {
    for (let row = 0; row < scale; row += 1)
      for (let column = 0; column < scale; column += 1) {
        const at = ((Number(y) * scale + row) * size * scale + Number(x) * scale + column) * 4;
        pixels.fill(0, at, at + 3);
      }
  }
  const text = decode({ width: size * scale, height: size * scale, data: pixels });
  assert.match(text, /^otpauth:\/\/totp\//);
  assert.equal(new URL(text).searchParams.get('secret'), secret);
});

test('lists the sessions of an account, and ends one of another browser', async () => {
  await register(client, 'ida@shop.example', password);
  await logIn('ida@shop.example');
  const elsewhere = await browser.newContext();
  const { page: other } = await openWindow(elsewhere, program.url);
  await logIn('ida@shop.example', other);
  await show('#/account');
  await page.getByText('this session').waitFor();
  const ends = page.getByRole('button', { name: /^End ses_/ });
  // The newest first: that of the other browser, then this one, then the registration.
  await ends.first().click();
  await page.locator('tbody tr').nth(2).waitFor({ state: 'detached' });
  await other.reload();
  await other.getByLabel('Password').waitFor();
  await elsewhere.close();
  assert.deepEqual(await violationsOn(page), []);
  assert.deepEqual(complaints, []);
});

test('shows a person without roles only what it may read', async () => {
  await register(client, 'plain@shop.example', password);
  await logIn('plain@shop.example');
  const links = await page.getByRole('navigation', { name: 'Dashboard' }).getByRole('link').allTextContents();
  assert.ok(links.includes('Products') && links.includes('Keys'), links.join());
  for (const name of ['Audit', 'System', 'Received', 'Endpoints', 'Mails'])
    assert.ok(!links.includes(name), name);
  assert.deepEqual(complaints, []);
});

test('shows who did what in the audit trail, by type', async () => {
  await enterDashboard(page, program.url, '#/list?path=/api/v1/audit&type=session.ended');
  await page.getByRole('cell', { name: 'session.ended' }).first().waitFor();
  await page.getByRole('link', { name: 'ida@shop.example' }).first().waitFor();
  assert.deepEqual(await violationsOn(page), []);
  assert.deepEqual(complaints, []);
});

test('makes a key with scopes, rotates it and revokes it', async () => {
  await enterDashboard(page, program.url, '#/list?path=/api/v1/keys');
  await page.getByRole('button', { name: 'New' }).click();
  await page.getByRole('textbox', { name: 'Name' }).fill('nightly');
  await page.getByRole('combobox', { name: /^Kind/ }).selectOption('secret');
  await page.getByRole('checkbox', { name: 'read' }).check();
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByText('Only this response shows the secret').waitFor();
  const first = await page.locator('.secret code').textContent();
  await page.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('main').getByRole('link', { name: 'nightly' }).click();
  await page.getByRole('button', { name: /^Rotate/ }).click();
  const panel = page.getByRole('dialog', { name: /^Rotate/ });
  await panel.getByRole('button', { name: /^Rotate/ }).click();
  await page.locator('.secret code').waitFor();
  const second = await page.locator('.secret code').textContent();
  assert.match(second ?? '', /^sk_/);
  assert.notEqual(second, first);
  await panel.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('button', { name: 'Revoke…' }).click();
  await page.getByRole('button', { name: 'Revoke', exact: true }).click();
  await page.getByRole('heading', { name: 'keys' }).waitFor();
  const { status } = await program.send('GET', '/api/v1/auth/me', {
    anonymous: true,
    headers: { 'X-API-Key': second ?? '' },
  });
  assert.equal(status, 401);
  assert.deepEqual(complaints, []);
});

test('shows settings with their sources, and no secret', async () => {
  await enterDashboard(page, program.url, '#/system');
  const row = page.getByRole('row', { name: /rateLimitReads/ });
  await row.waitFor();
  assert.match((await row.textContent()) ?? '', /5,000 .*6,000 .*Environment/);
  await page
    .getByRole('row', { name: /adminKey/ })
    .getByText('set, never shown')
    .waitFor();
  assert.ok(!(await page.content()).includes(adminKey));
  await page.getByRole('searchbox', { name: 'Search settings' }).fill('listLimitMax');
  await page.getByRole('row', { name: /COMITY_LIST_LIMIT_MAX/ }).waitFor();
  await page.getByText('SQLite').or(page.getByText('PostgreSQL')).first().waitFor();
  assert.deepEqual(await violationsOn(page), []);
  assert.deepEqual(complaints, []);
});

test('works behind a proxy that adds a prefix, with the keyboard alone at 200 %', async (t) => {
  const { createServer, request } = await import('node:http');
  const { listen } = await import('../../harness/listening.ts');
  const proxy = createServer((incoming, outgoing) => {
    const path = (incoming.url ?? '').replace(/^\/shop/, '');
    const passed = request(
      { port: program.port, method: incoming.method, path, headers: incoming.headers },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(outgoing);
      },
    );
    incoming.pipe(passed);
  });
  const { port } = await listen(proxy, 'after' in t ? t : undefined);
  // 1280 pixels at 200 % are 640 CSS pixels.
  const small = await browser.newContext({ viewport: { width: 640, height: 400 }, deviceScaleFactor: 2 });
  const { page: prefixed, complaints: told } = await openWindow(small, `http://127.0.0.1:${port}/shop/`);
  await prefixed.goto(`http://127.0.0.1:${port}/shop/dashboard`);
  await prefixed.getByLabel('API key').focus();
  await prefixed.keyboard.type(adminKey);
  await prefixed.keyboard.press('Enter');
  await prefixed.getByRole('heading', { name: 'Collections' }).waitFor();
  await prefixed.getByText('Shop').first().focus();
  await prefixed.keyboard.press('Enter');
  await prefixed.getByRole('link', { name: 'categories' }).first().focus();
  await prefixed.keyboard.press('Enter');
  await prefixed.getByRole('heading', { name: 'categories' }).waitFor();
  const overflow = await prefixed.evaluate(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  );
  assert.equal(overflow, 0);
  assert.deepEqual(told, []);
  await small.close();
});
