/**
 * Credentialed requests between origins in a real browser (§5.5), and what a hostile page cannot do with a session that is not its
 * own (§5.4): from the allowed application, from an untrusted origin of the same site, which a SameSite cookie does not keep
 * out, and from another site.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import {
  base,
  bearer,
  type Client,
  login,
  openClient,
  register,
  sessionCookieName,
} from '../../harness/account-client.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { openBrowser } from './chromium.ts';
import {
  apiHost,
  appHost,
  type FetchOptions,
  fetchFrom,
  jsonOf,
  type Pages,
  postForm,
  servePages,
  siblingHost,
  statusOf,
  strangerHost,
} from './session-pages.ts';

const email = 'ada@shop.example';
const attacker = 'mallory@shop.example';
const password = 'correct horse battery staple';

let pages: Pages;
let program: RunningServer;
/** Allows every origin, and so no credentials. */
let open: RunningServer;
let browser: Browser;
let client: Client;
let token: string;
let context: BrowserContext;
let page: Page;

before(async () => {
  pages = await servePages();
  [program, open] = await Promise.all([
    startServer({ env: { COMITY_CORS_ORIGINS: pages.origin(appHost) } }),
    startServer({ env: { COMITY_CORS_ORIGINS: '*' } }),
  ]);
  client = openClient(program.port);
  ({ token } = await register(client, email, password));
  await register(client, attacker, password);
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  client?.close();
  await Promise.all([program?.stop(), open?.stop()]);
  await pages?.close();
});

beforeEach(async () => {
  context = await browser.newContext();
  page = await context.newPage();
});

afterEach(() => context.close());

const url = (path: string) => `http://${apiHost}:${program.port}${base}${path}`;
const post = (path: string, options: FetchOptions) =>
  fetchFrom(page, url(path), { method: 'POST', ...options });
const openPage = (host: string) => page.goto(pages.at(host));

/** The victim logs in on the application, and then comes to the page of somebody else. */
async function logInAndVisit(host: string): Promise<void> {
  await openPage(appHost);
  const json = { email, password, cookie: true };
  assert.equal(statusOf(await post('/auth/login', { json })), 200);
  await openPage(host);
}

async function notesHeld(): Promise<number> {
  const answer = await client.ask('GET', `${base}/notes?limit=1000`, { headers: bearer(token) });
  return (answer.json().items as unknown[]).length;
}

async function cookieHeld(): Promise<string | undefined> {
  const cookies = await context.cookies(`http://${apiHost}:${program.port}`);
  return cookies.find(({ name }) => name === sessionCookieName)?.value;
}

describe('a page of the allowed origin', () => {
  beforeEach(() => openPage(appHost));

  it('logs in, reads, writes and logs out with the cookie alone', async () => {
    const answer = await post('/auth/login', { json: { email, password, cookie: true } });
    assert.equal(statusOf(answer), 200);
    assert.equal('type' in answer && answer.type, 'cors');
    assert.equal(await page.evaluate('document.cookie'), '');
    assert.equal(jsonOf(await fetchFrom(page, url('/auth/me'))).email, email);
    const made = await post('/notes', {
      json: { text: 'across' },
      headers: { Prefer: 'return=representation' },
    });
    assert.equal(statusOf(made), 201);
    assert.ok('etag' in made && made.etag !== null, 'ETag is exposed to the page');
    const note = url(`/notes/${jsonOf(made).id}`);
    const match = { 'If-Match': String('etag' in made ? made.etag : '') };
    const changed = await fetchFrom(page, note, {
      method: 'PATCH',
      json: { text: 'changed' },
      headers: match,
    });
    assert.equal(statusOf(changed), 200);
    assert.equal(statusOf(await fetchFrom(page, note, { method: 'DELETE' })), 204);
    assert.equal(statusOf(await post('/auth/logout', {})), 204);
    assert.equal(await cookieHeld(), undefined);
    assert.equal(statusOf(await fetchFrom(page, url('/auth/me'))), 401);
  });

  it('refreshes in two tabs at once, and both stay signed in', async () => {
    const { refreshToken } = jsonOf(await post('/auth/login', { json: { email, password } }));
    const other = await context.newPage();
    await other.goto(pages.at(appHost));
    const refresh = { method: 'POST', json: { refreshToken }, credentials: 'omit' } as const;
    const answers = await Promise.all(
      [page, other, page, other].map((tab) => fetchFrom(tab, url('/auth/refresh'), refresh)),
    );
    const [first] = answers.map(jsonOf);
    for (const answer of answers) assert.deepEqual(jsonOf(answer), first);
    const headers = { Authorization: `Bearer ${first?.token}` };
    assert.equal(statusOf(await fetchFrom(other, url('/auth/me'), { headers, credentials: 'omit' })), 200);
  });

  it('reads the refusal when it forgot to include credentials', async () => {
    await post('/auth/login', { json: { email, password, cookie: true } });
    const answer = await fetchFrom(page, url('/auth/me'), { credentials: 'omit' });
    assert.equal(statusOf(answer), 401);
    assert.equal(jsonOf(answer).error, 'no token provided');
  });

  it('sends a token of its own in Authorization after a preflight', async () => {
    const options = { headers: { Authorization: `Bearer ${token}` }, credentials: 'omit' } as const;
    assert.equal(jsonOf(await fetchFrom(page, url('/auth/me'), options)).email, email);
  });

  it('gets no cookie where any origin is allowed, for `*` never goes with credentials', async () => {
    const at = `http://${apiHost}:${open.port}${base}/products`;
    assert.equal(statusOf(await fetchFrom(page, at, { credentials: 'omit' })), 200);
    assert.ok('failed' in (await fetchFrom(page, at, { credentials: 'include' })));
  });
});

describe('a page of another origin of the same site', () => {
  beforeEach(() => logInAndVisit(siblingHost));

  it('reads nothing of the session', async () => {
    for (const path of ['/auth/me', '/notes', '/products']) {
      assert.ok('failed' in (await fetchFrom(page, url(path))), path);
    }
  });

  it('writes nothing by fetch, with a preflight or without', async () => {
    const held = await notesHeld();
    assert.ok('failed' in (await post('/notes', { json: { text: 'planted' } })));
    for (const type of ['text/plain', 'application/x-www-form-urlencoded']) {
      const body = type === 'text/plain' ? 'planted' : 'text=planted';
      const [answer] = await Promise.all([
        page.waitForResponse((response) => response.url() === url('/notes')),
        post('/notes', { mode: 'no-cors', headers: { 'Content-Type': type }, body }),
      ]);
      assert.equal(answer.status(), 403, 'the cookie came with it and was not enough');
    }
    assert.equal(await notesHeld(), held);
  });

  it('writes nothing by a form', async () => {
    const held = await notesHeld();
    for (const enctype of ['application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain']) {
      await openPage(siblingHost);
      const { status, body } = await postForm(page, url('/notes'), { text: 'planted' }, enctype);
      assert.equal(status, 403, enctype);
      assert.match(body, /cross_site_request/);
    }
    assert.equal(await notesHeld(), held);
  });

  it('logs nobody out', async () => {
    assert.equal((await postForm(page, url('/auth/logout'), {})).status, 403);
    await openPage(appHost);
    assert.equal(statusOf(await fetchFrom(page, url('/auth/me'))), 200);
  });
});

for (const host of [siblingHost, strangerHost]) {
  describe(`a page of ${host}`, () => {
    it('logs nobody in to an account of its own', async () => {
      await openPage(host);
      const fields = { email: attacker, password, cookie: 'true' };
      const { status, body } = await postForm(page, url('/auth/login'), fields);
      assert.equal(status, 403, body);
      assert.equal(await cookieHeld(), undefined);
      await openPage(host);
      assert.ok('failed' in (await post('/auth/login', { json: { ...fields, cookie: true } })));
      assert.equal(await cookieHeld(), undefined);
    });

    it('does not change who is logged in', async () => {
      await logInAndVisit(host);
      const before = await cookieHeld();
      await postForm(page, url('/auth/login'), { email: attacker, password, cookie: 'true' });
      assert.equal(await cookieHeld(), before);
    });
  });
}

describe('a page of another site', () => {
  beforeEach(() => logInAndVisit(strangerHost));

  it('sends no cookie with what it posts: nobody is asking', async () => {
    const held = await notesHeld();
    const { status, body } = await postForm(page, url('/notes'), { text: 'planted' });
    assert.equal(status, 401, body);
    await openPage(strangerHost);
    const [answer] = await Promise.all([
      page.waitForResponse((response) => response.url() === url('/notes')),
      post('/notes', { mode: 'no-cors', headers: { 'Content-Type': 'text/plain' }, body: 'planted' }),
    ]);
    assert.equal(answer.status(), 401);
    assert.equal(await notesHeld(), held);
  });

  it('reads nothing, and not what anyone may read either', async () => {
    for (const path of ['/auth/me', '/notes', '/products']) {
      assert.ok('failed' in (await fetchFrom(page, url(path))), path);
    }
  });
});

it('tells an attacker at another origin nothing by the login of a victim who has a session already', async () => {
  const before = await login(client, email, password, true);
  const asked = {
    json: { email, password, cookie: true },
    headers: { Cookie: before.cookie, Origin: pages.origin(strangerHost), 'Sec-Fetch-Site': 'cross-site' },
  };
  const answer = await client.ask('POST', `${base}/auth/login`, asked);
  assert.equal(answer.status, 403);
  assert.equal(answer.json().code, 'cross_site_request');
  assert.equal(answer.headers['set-cookie'], undefined);
  assert.equal(answer.headers['access-control-allow-origin'], undefined);
});
