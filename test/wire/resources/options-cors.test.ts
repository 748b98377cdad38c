/**
 * OPTIONS (§4.8, §2.8) and cross-origin sharing (§4.8, §5.5; Fetch).
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { adminKey } from '../../harness/exchange.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { ask, field, openSession } from '../http2/http2-client.ts';
import { openRaw } from '../server/raw-client.ts';

const origin = 'https://app.example';
const path = '/api/v1/products';
let named: RunningServer;
let any: RunningServer;
let withoutCredentials: RunningServer;

before(async () => {
  [named, any, withoutCredentials] = await Promise.all([
    startServer({
      env: {
        COMITY_CORS_ORIGINS: `${origin}, https://other.example:8443`,
        COMITY_CONTENT_TIMEOUT_MS: '1000',
      },
    }),
    startServer({ env: { COMITY_CORS_ORIGINS: '*' } }),
    startServer({ env: { COMITY_CORS_ORIGINS: origin, COMITY_CORS_CREDENTIALS: 'off' } }),
  ]);
});

after(() => Promise.all([named, any, withoutCredentials].map((program) => program.stop())));

const list = (value: unknown) => String(value).split(', ').sort();
const options = (target: string, headers: Record<string, string> = {}) =>
  named.send('OPTIONS', target, { anonymous: true, headers });
const preflight = (
  program: RunningServer,
  from: string,
  method: string,
  fields = 'authorization, content-type',
) =>
  program.send('OPTIONS', path, {
    anonymous: true,
    headers: {
      Origin: from,
      'Access-Control-Request-Method': method,
      'Access-Control-Request-Headers': fields,
    },
  });

for (const [target, allow] of [
  [path, ['GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'QUERY']],
  [`${path}/any`, ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'PUT']],
  [`${path}/bulk-delete`, ['OPTIONS', 'POST']],
  ['/api/v1/queries/any', ['GET', 'HEAD', 'OPTIONS']],
  ['/api/v1/operations/any', ['GET', 'HEAD', 'OPTIONS']],
  ['/api/v1/events', ['GET', 'HEAD', 'OPTIONS', 'POST']],
  ['/api/v1/events/any', ['GET', 'HEAD', 'OPTIONS']],
  ['/health/live', ['GET', 'HEAD', 'OPTIONS']],
] as const) {
  test(`OPTIONS ${target} lists its methods, needs no credential and has no content`, async () => {
    const answer = await options(target);
    assert.equal(answer.status, 204);
    assert.equal(answer.body, '');
    assert.equal(answer.headers['content-length'], undefined);
    assert.deepEqual(list(answer.headers.allow), allow);
    assert.equal(answer.headers['api-version'], '1');
  });
}

test('OPTIONS says which media types each method takes, and how long content may be', async () => {
  const collection = await options(path);
  const formats = ['application/json', 'application/x-www-form-urlencoded', 'multipart/form-data'];
  assert.deepEqual(list(collection.headers['accept-post']), formats);
  assert.deepEqual(list(collection.headers.accept), formats);
  assert.deepEqual(list(collection.headers['accept-query']), [
    'application/json',
    'application/sql',
    'application/x-www-form-urlencoded',
  ]);
  assert.equal(collection.headers['accept-patch'], 'application/json');
  assert.equal(collection.headers['max-content-length'], '1048576');
  const member = await options(`${path}/any`);
  assert.deepEqual(list(member.headers['accept-patch']), [
    'application/json',
    'application/json-patch+json',
    'application/merge-patch+json',
  ]);
  assert.deepEqual(list(member.headers.accept), formats, 'of a PUT');
  assert.equal(member.headers['accept-post'], undefined);
  assert.match(String((await options('/api/v1/notes')).headers['accept-post']), /text\/plain/);
  assert.equal((await options('/api/v1/operations/any')).headers['max-content-length'], undefined);
});

test('OPTIONS * is about the server as a whole', async () => {
  const answer = await options('*');
  assert.equal(answer.status, 204);
  assert.deepEqual(list(answer.headers.allow), [
    'DELETE',
    'GET',
    'HEAD',
    'OPTIONS',
    'PATCH',
    'POST',
    'PUT',
    'QUERY',
  ]);
});

test('OPTIONS of a path where no resource can be is 404', async () => {
  assert.equal((await options('/api/v1/nothing')).status, 404);
});

test('a preflight of an allowed origin gets the methods, QUERY among them, and the fields it may send', async () => {
  const answer = await preflight(named, origin, 'QUERY');
  assert.equal(answer.status, 204);
  assert.equal(answer.headers['access-control-allow-origin'], origin);
  assert.match(String(answer.headers['access-control-allow-methods']), /\bQUERY\b/);
  assert.deepEqual(
    list(answer.headers['access-control-allow-headers']).join(),
    'Accept,Authorization,Cache-Control,Content-Disposition,Content-Encoding,Content-Type,Idempotency-Key,If-Match,' +
      'If-Modified-Since,If-None-Match,If-Range,If-Unmodified-Since,Last-Event-ID,Max-Forwards,Prefer,Range,' +
      'Tus-Resumable,Upload-Checksum,Upload-Complete,Upload-Draft-Interop-Version,Upload-Length,Upload-Metadata,' +
      'Upload-Offset,Want-Repr-Digest,X-API-Key,X-Requested-With,traceparent,tracestate',
  );
  assert.equal(answer.headers['access-control-max-age'], '86400');
  assert.equal(answer.headers['access-control-allow-credentials'], 'true');
  assert.match(String(answer.headers.vary), /\bOrigin\b/);
  assert.ok(answer.headers.allow);
});

test('a preflight of another origin is answered without any permission', async () => {
  for (const other of ['https://evil.example', 'http://app.example', 'https://app.example:444', 'null']) {
    const answer = await preflight(named, other, 'POST');
    assert.equal(answer.status, 204, other);
    assert.match(String(answer.headers.vary), /\bOrigin\b/);
    const granted = Object.keys(answer.headers).filter((name) => name.startsWith('access-control-'));
    assert.deepEqual(granted, [], other);
  }
});

test('a preflight of a path where no resource can be lets the page read the 404 of its request', async () => {
  for (const target of ['/api/v1/nothing', '/nothing', '/api/v1/products/'])
    for (const method of ['GET', 'QUERY', 'DELETE']) {
      const headers = { Origin: origin, 'Access-Control-Request-Method': method };
      const answer = await options(target, headers);
      assert.equal(answer.status, 204, target);
      assert.equal(answer.headers['access-control-allow-origin'], origin);
      assert.ok(list(answer.headers['access-control-allow-methods']).includes(method), method);
      assert.match(String(answer.headers['access-control-allow-headers']), /\bAuthorization\b/);
      assert.equal(answer.headers.allow, undefined, 'there is no resource that allows it');
      const real = await named.send(method, target, { anonymous: true, headers: { Origin: origin } });
      assert.equal(real.status, 404);
      assert.equal(real.headers['access-control-allow-origin'], origin);
    }
  for (const [target, status] of [
    ['/api/v1/products/%zz', 400],
    [`/${'x'.repeat(8001)}`, 414],
  ] as const) {
    const headers = { Origin: origin, 'Access-Control-Request-Method': 'GET' };
    const answer = await options(target, headers);
    assert.deepEqual([answer.status, answer.headers['access-control-allow-origin']], [204, origin]);
    const real = await named.send('GET', target, { anonymous: true, headers: { Origin: origin } });
    assert.deepEqual([real.status, real.headers['access-control-allow-origin']], [status, origin]);
  }
  const server = await options('*', { Origin: origin, 'Access-Control-Request-Method': 'GET' });
  assert.ok(server.headers.allow, 'about the server as a whole');
  const foreign = { Origin: 'https://evil.example', 'Access-Control-Request-Method': 'GET' };
  const granted = Object.keys((await options('/api/v1/nothing', foreign)).headers);
  assert.deepEqual(
    granted.filter((name) => name.startsWith('access-control-')),
    [],
  );
  assert.equal((await options('/api/v1/nothing', { Origin: origin })).status, 404, 'is no preflight');
});

test('an answer to an allowed origin names it, exposes what scripts need, and varies by origin', async () => {
  const answer = await named.send('GET', path, { anonymous: true, headers: { Origin: origin } });
  assert.equal(answer.headers['access-control-allow-origin'], origin);
  assert.equal(answer.headers['access-control-allow-credentials'], 'true');
  const exposed = list(answer.headers['access-control-expose-headers']);
  for (const name of [
    'ETag',
    'Location',
    'Link',
    'Retry-After',
    'RateLimit',
    'RateLimit-Policy',
    'X-RateLimit-Remaining',
  ]) {
    assert.ok(exposed.includes(name), name);
  }
  assert.match(String(answer.headers.vary), /\bOrigin\b/);
});

test('refusals and 304 carry the CORS fields too, so that a script can read them', async () => {
  const headers = { Origin: origin };
  const refused = await named.send('POST', path, { anonymous: true, headers, json: {} });
  assert.equal(refused.status, 401);
  assert.equal(refused.headers['access-control-allow-origin'], origin);
  const { etag } = (await named.send('GET', path, { headers })).headers;
  const unchanged = await named.send('GET', path, { headers: { ...headers, 'If-None-Match': String(etag) } });
  assert.equal(unchanged.status, 304);
  assert.equal(unchanged.headers['access-control-allow-origin'], origin);
});

test('an answer exposes every field that the API describes', async () => {
  const answers = await Promise.all(
    ['application', 'operator'].map((part) => named.send('GET', `/openapi.json?part=${part}`)),
  );
  const described = new Set(
    answers.flatMap(({ body, json }) => [
      ...[...body.matchAll(/"#\/components\/headers\/([A-Za-z-]+)/g)].map(([, name = '']) => name),
      ...Object.keys(json()['x-headers'] as object),
    ]),
  );
  assert.ok(described.has('WWW-Authenticate'));
  const exposed = list(
    (await named.send('GET', path, { headers: { Origin: origin } })).headers['access-control-expose-headers'],
  );
  // Readable without it, or of the browser's own use.
  const others =
    /^(Access-Control-.*|Sec-.*|Set-Cookie|Upgrade|Cache-Control|Last-Modified|Content-Security-Policy|X-Accel-Buffering|X-Content-Type-Options)$/;
  assert.deepEqual(
    [...described].filter((name) => !others.test(name) && !exposed.includes(name)),
    [],
  );
  assert.ok(exposed.includes('Date'));
});

test('an answer without Origin, or to another one, still varies by origin and permits nothing', async () => {
  for (const headers of [{}, { Origin: 'https://evil.example' }]) {
    const answer = await named.send('GET', path, { anonymous: true, headers });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers['access-control-allow-origin'], undefined);
    assert.match(String(answer.headers.vary), /\bOrigin\b/);
  }
});

test('where every origin is allowed the answer is *, never with credentials', async () => {
  const answer = await any.send('GET', path, {
    anonymous: true,
    headers: { Origin: 'https://evil.example' },
  });
  assert.equal(answer.headers['access-control-allow-origin'], '*');
  assert.equal(answer.headers['access-control-allow-credentials'], undefined);
  const asked = await preflight(any, 'https://evil.example', 'PATCH');
  assert.equal(asked.headers['access-control-allow-origin'], '*');
  assert.equal(asked.headers['access-control-allow-credentials'], undefined);
});

test('fields of the settings are allowed and exposed besides those of the API, each once', async (t) => {
  const env = {
    COMITY_CORS_ORIGINS: '*',
    COMITY_CORS_HEADERS: 'X-Trace, prefer, *',
    COMITY_CORS_EXPOSE: 'X-Own',
  };
  const program = await startServer({ env });
  t.after(() => program.stop());
  const allowed = list((await preflight(program, origin, 'GET')).headers['access-control-allow-headers']);
  assert.deepEqual(
    allowed.filter((name) => /^(\*|x-trace|prefer)$/i.test(name)),
    ['*', 'Prefer', 'X-Trace'],
  );
  const answer = await program.send('GET', path, { headers: { Origin: origin } });
  assert.match(String(answer.headers['access-control-expose-headers']), /, X-Own$/);
});

const start = 'Host: a\r\nOrigin: https://app.example\r\n';
for (const [what, text, status] of [
  ['a target over the limit of the program', `GET /${'x'.repeat(8001)} HTTP/1.1\r\n${start}\r\n`, 414],
  ['a field section over the limit', `GET / HTTP/1.1\r\n${start}X: ${'x'.repeat(17_000)}\r\n\r\n`, 431],
  ['a method that no server has', `FETCH / HTTP/1.1\r\n${start}\r\n`, 501],
  ['a method that this one has not', `PROPFIND / HTTP/1.1\r\n${start}\r\n`, 501],
  ['a broken field', `GET / HTTP/1.1\r\n${start}: x\r\n\r\n`, 400],
  ['two Hosts', `GET / HTTP/1.1\r\nHost: b\r\n${start}\r\n`, 400],
  ['an unknown version', `GET / HTTP/1.1\r\n${start}\r\n`.replace('1.1', '2.0'), 505],
  [
    'content over the limit',
    `POST ${path} HTTP/1.1\r\n${start}Content-Length: 9999999\r\nContent-Type: application/json\r\nX-API-Key: ${adminKey}\r\n\r\n`,
    413,
  ],
  [
    'content that does not come',
    `POST ${path} HTTP/1.1\r\n${start}Content-Length: 9\r\nContent-Type: application/json\r\nX-API-Key: ${adminKey}\r\n\r\n{`,
    408,
  ],
] as const)
  test(`the refusal of ${what} carries the CORS fields`, async (t) => {
    const client = await openRaw(named.port);
    t.after(() => client.destroy());
    client.send(text);
    const head = await client.until('\r\n\r\n');
    assert.match(head, new RegExp(`^HTTP/1.1 ${status} `));
    assert.match(head, /\r\nAccess-Control-Allow-Origin: https:\/\/app.example\r\n/);
    assert.match(head, /\r\nAccess-Control-Expose-Headers: /);
  });

for (const [what, fields, status] of [
  ['a target over the limit', { ':path': `/${'x'.repeat(8001)}` }, 414],
  ['a field section over the limit', { x: 'x'.repeat(17_000) }, 431],
  ['an unknown method', { ':method': 'FETCH' }, 501],
  ['a scheme that is not HTTP', { ':scheme': 'ftp' }, 400],
] as const)
  test(`the refusal of ${what} carries the CORS fields over HTTP/2`, async (t) => {
    const got = await ask(openSession(t, named.port), { ':path': '/', origin, ...fields });
    assert.equal(got.status, status);
    assert.equal(field(got, 'access-control-allow-origin'), origin);
  });

test('a malformed Origin is 400', async () => {
  const answer = await named.send('GET', path, { anonymous: true, headers: { Origin: 'app.example' } });
  assert.equal(answer.status, 400);
  assert.equal(answer.json().code, 'field_invalid');
});

const account = { password: 'correct horse battery staple' };
let accounts = 0;

/** Registers somebody, and logs in for a cookie with these fields. */
async function logIn(program: RunningServer, headers: Record<string, string>) {
  accounts += 1;
  const json = { ...account, email: `cors-${accounts}@shop.example` };
  const registered = await program.send('POST', '/api/v1/auth/register', { anonymous: true, json });
  assert.equal(registered.status, 201, registered.body);
  return program.send('POST', '/api/v1/auth/login', {
    anonymous: true,
    headers,
    json: { ...json, cookie: true },
  });
}

const cookieOf = (answer: Awaited<ReturnType<typeof logIn>>) =>
  String(answer.headers['set-cookie']?.[0]?.split(';', 1)[0]);

test('without credentials a named origin reads answers, and neither a preflight nor an answer lets it send cookies', async () => {
  const asked = await preflight(withoutCredentials, origin, 'PATCH');
  const read = await withoutCredentials.send('GET', path, { anonymous: true, headers: { Origin: origin } });
  for (const { headers } of [asked, read]) {
    assert.equal(headers['access-control-allow-origin'], origin);
    assert.equal(headers['access-control-allow-credentials'], undefined);
    assert.match(String(headers.vary), /\bOrigin\b/);
  }
});

test('an origin that may send credentials gets a cookie by logging in, and changes things with it', async () => {
  const headers = { Origin: origin, 'Sec-Fetch-Site': 'cross-site' };
  const login = await logIn(named, headers);
  assert.equal(login.status, 200, login.body);
  assert.equal(login.headers['access-control-allow-origin'], origin);
  assert.equal(login.headers['access-control-allow-credentials'], 'true');
  const withCookie = { ...headers, Cookie: cookieOf(login) };
  const json = { text: 'from a page' };
  const made = await named.send('POST', '/api/v1/notes', { anonymous: true, headers: withCookie, json });
  assert.equal(made.status, 201, made.body);
});

test('an origin that may not send credentials gets no cookie, and changes nothing with one', async () => {
  const allowedToRead = { Origin: origin, 'Sec-Fetch-Site': 'cross-site' };
  const foreign = { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' };
  const older = { Origin: 'https://evil.example' };
  const hidden = { 'Sec-Fetch-Site': 'same-site' };
  for (const [program, headers] of [
    [withoutCredentials, allowedToRead],
    [any, foreign],
    [named, foreign],
    [named, older],
    [named, hidden],
  ] as const) {
    const planted = await logIn(program, headers);
    assert.equal(planted.status, 403, planted.body);
    assert.equal(planted.json().code, 'cross_site_request');
    assert.equal(planted.headers['set-cookie'], undefined);
    const Cookie = cookieOf(await logIn(program, {}));
    const json = { text: 'forged' };
    const forged = { anonymous: true, headers: { ...headers, Cookie }, json };
    const refused = await program.send('POST', '/api/v1/notes', forged);
    assert.equal(refused.status, 403, refused.body);
    assert.equal(refused.json().code, 'cross_site_request');
    assert.equal(refused.headers['www-authenticate'], undefined);
    const read = await program.send('GET', '/api/v1/notes', {
      anonymous: true,
      headers: { ...headers, Cookie },
    });
    assert.equal(read.status, 200, 'what is read by a foreign page the browser keeps from it');
    assert.deepEqual(read.json().items, []);
  }
});

test('a page that brings a key of its own needs no cookie, and is not taken for a forgery', async () => {
  const headers = { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' };
  const answer = await any.send('POST', '/api/v1/notes', { headers, json: { text: 'x' } });
  assert.equal(answer.status, 201, answer.body);
});

test('a session that is over keeps nobody from reading what is public, nor from logging in again', async () => {
  const Cookie = '__Host-comity_session=ses_0123456789abcdefghjkmnpqrs.' + 'x'.repeat(43);
  const send = (method: string, target: string) =>
    named.send(method, target, { anonymous: true, headers: { Cookie } });
  assert.equal((await send('GET', path)).status, 200);
  const refused = await send('GET', '/api/v1/notes');
  assert.equal(refused.status, 401);
  assert.equal(refused.json().error, 'no token provided');
  const login = await logIn(named, { Cookie });
  assert.equal(login.status, 200);
  const again = { anonymous: true, headers: { Cookie: cookieOf(login) } };
  assert.equal((await named.send('GET', '/api/v1/notes', again)).status, 200);
});
