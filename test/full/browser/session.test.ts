/** The session cookie in a real browser, on a page of the program's own origin (§5.2). */
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import {
  base,
  type Client,
  login,
  openClient,
  register,
  sessionCookieName,
} from '../../harness/account-client.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { openBrowser } from './chromium.ts';
import { apiHost, fetchFrom, jsonOf, servePages, statusOf, strangerHost } from './session-pages.ts';

const email = 'ada@shop.example';
const password = 'correct horse battery staple';

let program: RunningServer;
let browser: Browser;
let client: Client;
let context: BrowserContext;
let page: Page;

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

beforeEach(async () => {
  context = await browser.newContext();
  page = await context.newPage();
  await page.goto(`${api()}/health/live`);
});

afterEach(() => context.close());

const api = () => `http://${apiHost}:${program.port}`;
const url = (path: string) => `${api()}${base}${path}`;

async function logIn(from: Page = page): Promise<void> {
  const json = { email, password, cookie: true };
  assert.equal(statusOf(await fetchFrom(from, url('/auth/login'), { method: 'POST', json })), 200);
}

async function sessionCookie() {
  return (await context.cookies(api())).find(({ name }) => name === sessionCookieName);
}

test('keeps a __Host- cookie that is Secure, HttpOnly and SameSite=Lax, and shows it to no script', async () => {
  await logIn();
  const cookie = await sessionCookie();
  assert.ok(cookie !== undefined, 'the browser kept the cookie');
  const { httpOnly, secure, sameSite, path, domain } = cookie;
  assert.deepEqual(
    { httpOnly, secure, sameSite, path, domain },
    { httpOnly: true, secure: true, sameSite: 'Lax', path: '/', domain: apiHost },
  );
  assert.ok(cookie.expires > Date.now() / 1000, 'it outlives the browser');
  assert.equal(await page.evaluate('document.cookie'), '');
});

for (const host of ['localhost', '127.0.0.1']) {
  test(`keeps the cookie on http://${host} too, which Chromium trusts without TLS`, async () => {
    await page.goto(`http://${host}:${program.port}/health/live`);
    const at = `http://${host}:${program.port}${base}`;
    const json = { email, password, cookie: true };
    assert.equal(statusOf(await fetchFrom(page, `${at}/auth/login`, { method: 'POST', json })), 200);
    assert.equal(statusOf(await fetchFrom(page, `${at}/auth/me`)), 200);
  });
}

test('sends the cookie by itself: reads, makes, changes and deletes with nothing else', async () => {
  await logIn();
  assert.equal(jsonOf(await fetchFrom(page, url('/auth/me'))).email, email);
  const made = await fetchFrom(page, url('/notes'), { method: 'POST', json: { text: 'from a page' } });
  assert.equal(statusOf(made), 201);
  const note = url(`/notes/${jsonOf(made).id}`);
  assert.equal(jsonOf(await fetchFrom(page, note)).text, 'from a page');
  const changed = await fetchFrom(page, note, { method: 'PATCH', json: { text: 'changed' } });
  assert.equal(statusOf(changed), 200);
  const queried = await fetchFrom(page, url('/notes'), {
    method: 'QUERY',
    json: { filter: { text: 'changed' } },
  });
  assert.equal((jsonOf(queried).items as unknown[]).length, 1);
  assert.equal(statusOf(await fetchFrom(page, note, { method: 'DELETE' })), 204);
});

test('follows a link from another site with the cookie, as Lax means it', async () => {
  await logIn();
  const pages = await servePages();
  try {
    await page.goto(pages.at(strangerHost));
    const [answer] = await Promise.all([
      page.waitForResponse(url('/auth/me')),
      page.evaluate(`location.assign(${JSON.stringify(url('/auth/me'))})`),
    ]);
    assert.equal(answer.status(), 200);
  } finally {
    await pages.close();
  }
});

test('logs out: the cookie is gone from the browser, and put back by hand it is dead', async () => {
  await logIn();
  const cookie = await sessionCookie();
  assert.ok(cookie !== undefined);
  assert.equal(statusOf(await fetchFrom(page, url('/auth/logout'), { method: 'POST' })), 204);
  assert.equal(await sessionCookie(), undefined);
  const after = await fetchFrom(page, url('/auth/me'));
  assert.equal(statusOf(after), 401);
  assert.equal(jsonOf(after).error, 'no token provided');
  await context.addCookies([cookie]);
  assert.equal(statusOf(await fetchFrom(page, url('/auth/me'))), 401);
});

test('ends an open event stream of the page when it logs out', async () => {
  await logIn();
  const opened = `new Promise((resolve, reject) => {
    window.source = new EventSource(${JSON.stringify(url('/events'))}, { withCredentials: true });
    window.over = new Promise((ended) => { window.source.addEventListener('error', () => ended(true), { once: true }); });
    window.source.addEventListener('open', () => resolve(true), { once: true });
    window.source.addEventListener('error', () => reject(new Error('not opened')), { once: true });
  })`;
  assert.equal(await page.evaluate(opened), true);
  assert.equal(statusOf(await fetchFrom(page, url('/auth/logout'), { method: 'POST' })), 204);
  assert.equal(await page.evaluate('window.over.then(() => (window.source.close(), true))'), true);
});

test('never adopts a session that was put into the browser: a login makes a new one, and the old stays what it was', async () => {
  const planted = await login(client, email, password, true);
  const value = planted.cookie.slice(planted.cookie.indexOf('=') + 1);
  const forged = `${value.split('.', 1)[0]}.${'A'.repeat(43)}`;
  for (const fixed of [forged, 'chosen-by-an-attacker', value]) {
    await context.clearCookies();
    const attributes = { domain: apiHost, path: '/', secure: true, httpOnly: true, sameSite: 'Lax' as const };
    await context.addCookies([{ name: sessionCookieName, value: fixed, ...attributes }]);
    await logIn();
    const cookie = await sessionCookie();
    assert.ok(cookie !== undefined && cookie.value !== fixed, 'the login set a cookie of its own');
    assert.equal(statusOf(await fetchFrom(page, url('/auth/me'))), 200);
    const asked = { headers: { Cookie: `${sessionCookieName}=${fixed}` } };
    const old = await client.ask('GET', `${base}/auth/me`, asked);
    assert.equal(old.status, fixed === value ? 200 : 401, 'only what was good before is good after');
  }
});
