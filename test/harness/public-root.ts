/**
 * A program behind a proxy that serves it at https://example.com/backend and removes `/backend` from requests: each URL that it gives is
 * followed through the proxy, where a path without the prefix is 404.
 */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import { test } from 'node:test';
import { WebSocket } from 'ws';
import { adminKey } from './exchange.ts';
import { type RunningServer, repositoryRoot, startServer } from './running-server.ts';

export const root = '/backend';
const origin = 'https://example.com';
const base = `${root}/api/v1`;
const senderSecret = 'the secret of the phone company';
const image = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

export function startBehindRoot(): Promise<RunningServer> {
  return startServer({
    config: join(repositoryRoot, 'test/wire/server/fixtures/public-root.config.ts'),
    env: {
      COMITY_PUBLIC_URL: `${origin}${root}/`,
      COMITY_BEHIND_PROXY: 'on',
      COMITY_PASSWORD_MEMORY_KIBIBYTES: '8',
      COMITY_EGRESS_ALLOW: '127.0.0.0/8',
      COMITY_OAUTH_COMPANY_AUTHORIZATION_URL: 'https://id.example/authorize',
      COMITY_OAUTH_COMPANY_TOKEN_URL: 'https://id.example/token',
      COMITY_OAUTH_COMPANY_USERINFO_URL: 'https://id.example/userinfo',
      COMITY_OAUTH_COMPANY_CLIENT_ID: 'comity',
      COMITY_OAUTH_COMPANY_CLIENT_SECRET: 'secret',
      PHONE_WEBHOOK_SECRET: senderSecret,
    },
  });
}

type Sent = {
  readonly json?: unknown;
  readonly body?: string | Buffer<ArrayBuffer>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly anonymous?: boolean;
};

type Got = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects of it, it says itself.
  readonly json: any;
};

/** @param address of the proxy, without the root */
export async function sendTo(address: string, method: string, path: string, sent: Sent = {}): Promise<Got> {
  const { json, anonymous = false, headers = {} } = sent;
  const body = json === undefined ? sent.body : JSON.stringify(json);
  const response = await fetch(address + path, {
    method,
    redirect: 'manual',
    headers: {
      Accept: 'application/json, */*;q=0.5',
      ...(json === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...(anonymous ? {} : { Authorization: `Bearer ${adminKey}` }),
      ...headers,
    },
    ...(body === undefined ? {} : { body }),
  });
  const text = await response.text();
  const isJson = /json/.test(response.headers.get('Content-Type') ?? '');
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: isJson ? JSON.parse(text) : undefined,
  };
}

const linkTarget = /<([^>]*)>/g;
const reference = /(?:href|src)="([^"#]+)[^"]*"/g;

/** Each URL in the fields and the content of an answer, resolved against the URL of the request. */
function urlsIn({ headers, text, json }: Got, path: string): readonly string[] {
  const found = [headers.get('Location'), headers.get('Content-Location')].filter((each) => each !== null);
  for (const [, target] of (headers.get('Link') ?? '').matchAll(linkTarget)) found.push(target ?? '');
  const look = (value: unknown): void => {
    if (typeof value === 'string' && (value.startsWith('/') || value.startsWith(origin))) found.push(value);
    else if (typeof value === 'object' && value !== null) Object.values(value).forEach(look);
  };
  look(json);
  if (headers.get('Content-Type')?.startsWith('text/html'))
    for (const [, target] of text.matchAll(reference)) found.push(target ?? '');
  return found
    .map((each) => new URL(each, `${origin}${path}`))
    .filter((url) => url.origin === origin)
    .map(({ pathname, search }) => pathname + search);
}

/** Requests by what they show; `{made}` is the path of the album. Each with the number of URLs that its answer has at least. */
const rows: Readonly<Record<string, readonly [method: string, path: string, sent: Sent, urls: number]>> = {
  'the entrance for a browser': ['GET', `${root}/`, { headers: { Accept: 'text/html' } }, 1],
  'the entrance for a program': ['GET', `${root}/`, {}, 4],
  'a created document': ['POST', `${base}/albums`, { json: { title: 'B' } }, 1],
  'the pages of a list': ['GET', `${base}/albums?limit=1&page=2`, { headers: { Prefer: 'count=exact' } }, 3],
  'a query': ['QUERY', `${base}/albums`, { json: { limit: 1 } }, 3],
  'a request for later': [
    'POST',
    `${base}/albums`,
    { json: { title: 'C' }, headers: { Prefer: 'respond-async' } },
    1,
  ],
  'a file and its preview': [
    'PUT',
    '{made}/cover',
    { body: image, headers: { 'Content-Type': 'image/png' } },
    2,
  ],
  'a link to a file': ['POST', '{made}/cover/link', { json: {} }, 1],
  'a document with a file': ['GET', '{made}', {}, 2],
  'the documents with their files': ['GET', `${base}/albums`, {}, 2],
  'the event of a document with a file': ['GET', `${base}/events?type=albums.updated`, {}, 2],
  'an upload by tus': [
    'POST',
    `${base}/uploads`,
    { headers: { 'Tus-Resumable': '1.0.0', 'Upload-Length': '5' } },
    1,
  ],
  'an upload by the draft': [
    'POST',
    `${base}/uploads`,
    {
      headers: { 'Upload-Draft-Interop-Version': '8', 'Upload-Complete': '?0', 'Upload-Length': '5' },
      body: 'he',
    },
    1,
  ],
  'an endpoint': ['POST', `${base}/endpoints`, { json: { url: 'http://127.0.0.1:8090/', events: ['*'] } }, 1],
  'an event': ['POST', `${base}/events`, { json: { type: 'x.y', data: { object: { id: '1' } } } }, 1],
  'a sender': ['GET', `${base}/senders`, {}, 1],
  'a link to the portal': ['POST', `${base}/portal-links`, { json: { tenant: 'acme' } }, 2],
  'a key': ['POST', `${base}/keys`, { json: { name: 'k', kind: 'secret' } }, 1],
  'an account': [
    'POST',
    `${base}/auth/register`,
    { json: { email: 'ada@example.com', password: 'correct horse battery staple' }, anonymous: true },
    1,
  ],
  'the type of a problem': [
    'GET',
    `${base}/albums/none`,
    { headers: { Accept: 'application/problem+json' } },
    1,
  ],
  'a problem outside of resources': [
    'GET',
    `${root}/nothing`,
    { headers: { Accept: 'application/problem+json' } },
    1,
  ],
  'the servers of the description': ['GET', `${root}/openapi.json`, {}, 1],
  'the reference': ['GET', `${root}/docs`, {}, 5],
  'the reference with a slash': ['GET', `${root}/docs/`, {}, 1],
  'the errors': ['GET', `${root}/docs/errors`, {}, 4],
  'the guides': ['GET', `${root}/docs/guides`, {}, 20],
  'a guide': ['GET', `${root}/docs/guides/behind-a-proxy`, {}, 5],
  'the dashboard': ['GET', `${root}/dashboard`, {}, 2],
  'the portal': ['GET', `${root}/portal`, {}, 2],
};

/** Paths that are no resources by themselves: of the API, of operations' parameters, and of JSON pointers. */
const noResources: ReadonlySet<string> = new Set([base, root]);

export function followEachUrl(addressOf: () => string): void {
  let made = '';
  const send = (method: string, path: string, sent?: Sent) => sendTo(addressOf(), method, path, sent);

  test('a created document is found at its Location', async () => {
    const answer = await send('POST', `${base}/albums`, { json: { title: 'A' } });
    made = answer.headers.get('Location') ?? '';
    assert.match(made, /^\/backend\/api\/v1\/albums\/\w+$/);
    assert.equal((await send('GET', made)).json.title, 'A');
  });

  for (const [title, [method, pattern, sent, urls]] of Object.entries(rows)) {
    test(`each URL of ${title} begins with the root and leads somewhere`, async () => {
      const path = pattern.replace('{made}', made);
      const answer = await send(method, path, sent);
      assert.ok(answer.status < 400 || answer.status === 404, `${answer.status} ${answer.text}`);
      const found = title.startsWith('the servers') ? [answer.json.servers[0].url] : urlsIn(answer, path);
      assert.ok(
        found.length >= urls,
        `${found.length} URLs: ${found.join(' ')} ${answer.text.slice(0, 500)}`,
      );
      for (const url of new Set(found)) {
        assert.ok(url === root || url.startsWith(`${root}/`), url);
        if (noResources.has(url)) continue;
        const { status } = await send('GET', url);
        assert.notEqual(status, 404, url);
      }
    });
  }

  test('each path of the description is found below its server', async () => {
    const { json: document } = await send('GET', `${root}/openapi.json`);
    const paths = Object.keys(document.paths);
    assert.ok(paths.includes('/api/v1/albums'));
    for (const path of paths.filter((each) => !each.includes('{'))) {
      const { status } = await send('OPTIONS', document.servers[0].url + path);
      assert.equal(status, 204, path);
    }
  });

  test('llms.txt and the guides as Markdown are found', async () => {
    const { text } = await send('GET', `${root}/llms.txt`);
    const targets = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, target = '']) => target);
    assert.ok(targets.length > 20);
    for (const target of targets) assert.equal((await send('GET', target)).status, 200, target);
  });

  checkAccounts(send);
  checkConnections(addressOf, send);
}

type Send = (method: string, path: string, sent?: Sent) => Promise<Got>;

function checkAccounts(send: Send): void {
  test('a sign-in names a callback under the root', async () => {
    const { status, headers } = await send('GET', `${base}/auth/oauth/company`, { anonymous: true });
    assert.equal(status, 303);
    const callback = new URL(headers.get('Location') ?? '').searchParams.get('redirect_uri') ?? '';
    assert.equal(callback, `${origin}${base}/auth/oauth/company/callback`);
    assert.notEqual((await send('GET', new URL(callback).pathname, { anonymous: true })).status, 404);
  });

  test('tokens name the public URL, and the keys are below it', async () => {
    const json = { email: 'bob@example.com', password: 'correct horse battery staple', cookie: true };
    const { json: session } = await send('POST', `${base}/auth/register`, { json, anonymous: true });
    const claims = JSON.parse(Buffer.from(session.token.split('.')[1], 'base64url').toString());
    assert.deepEqual([claims.iss, claims.aud], [`${origin}${root}`, `${origin}${root}`]);
    const keys = await send('GET', `${new URL(claims.iss).pathname}/.well-known/jwks.json`, {
      anonymous: true,
    });
    assert.ok(keys.json.keys.length > 0);
    const me = await send('GET', `${base}/auth/me`, {
      anonymous: true,
      headers: { Authorization: `Bearer ${session.token}` },
    });
    assert.equal(me.status, 200, me.text);
  });

  test('passkeys belong to the host of the public URL', async () => {
    const { json: options } = await send('POST', `${base}/auth/login/passkey/options`, {
      json: {},
      anonymous: true,
    });
    assert.equal(options.options.rpId, 'example.com');
  });
}

function checkConnections(addressOf: () => string, send: Send): void {
  test('a sender that signs the URL signs the public one', async () => {
    const path = `${base}/webhooks/phone?call=1`;
    const body = '{"type":"call"}';
    const signed = (url: string) =>
      createHmac('sha256', senderSecret)
        .update(url + body)
        .digest('hex');
    const post = (url: string) =>
      send('POST', path, { anonymous: true, body, headers: { 'X-Signature': signed(url) } });
    assert.equal((await post(`${origin}${path}`)).status, 204);
    assert.equal((await post(`${origin}${path.slice(root.length)}`)).status, 400);
  });

  test('a WebSocket opens under the root', async () => {
    const { json } = await send('POST', `${base}/realtime/tickets`, { json: {} });
    const address = addressOf().replace('http', 'ws');
    const socket = new WebSocket(`${address}${base}/realtime?ticket=${json.ticket}`, 'comity.v1', {
      rejectUnauthorized: false,
    });
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
    socket.terminate();
  });
}
