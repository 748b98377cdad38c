/** Cross-site requests (§5.4, §5.5): Fetch Metadata and Origin decide, and what sends neither is no browser. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCrossSiteCheck, isSafeMethod } from '../../src/accounts/sessions/cookie.ts';
import { requestWith } from './fixtures/requests.ts';

const publicUrl = 'https://public.example';
const partner = 'https://app.example:8443';
const check = createCrossSiteCheck(publicUrl, new Set([partner]));
const withoutUrl = createCrossSiteCheck(undefined, new Set());

/** `api.example` is the Host of every request. */
const cases: readonly (readonly [site: string | undefined, origin: string | undefined, refused: boolean])[] =
  [
    // No browser.
    [undefined, undefined, false],
    // The browser says that it was our own page, or the user.
    ['same-origin', undefined, false],
    ['same-origin', 'https://api.example', false],
    ['same-origin', 'null', false],
    ['none', undefined, false],
    // It says that it was not, and the origin is not one that may.
    ['cross-site', undefined, true],
    ['same-site', undefined, true],
    ['cross-site', 'https://evil.example', true],
    ['same-site', 'https://other.api.example', true],
    ['cross-site', 'null', true],
    // A page of our host over plain HTTP, where anybody on the way could have written it.
    ['cross-site', 'http://api.example', true],
    ['a word of the future', 'https://evil.example', true],
    ['', undefined, true],
    // It says so of an origin that may send credentials, or of ours under its public name.
    ['cross-site', partner, false],
    ['same-site', partner, false],
    ['cross-site', publicUrl, false],
    // An older browser, or plain HTTP, where it says nothing.
    [undefined, 'https://api.example', false],
    [undefined, 'https://api.example:443', false],
    [undefined, 'http://api.example', false],
    [undefined, 'http://API.example:80', false],
    [undefined, publicUrl, false],
    [undefined, partner, false],
    [undefined, 'https://api.example:444', true],
    [undefined, 'https://evil.example', true],
    [undefined, 'https://api.example.evil.example', true],
    [undefined, 'https://evilapi.example', true],
    [undefined, 'https://app.example', true],
    [undefined, 'null', true],
    [undefined, 'ftp://api.example', true],
    [undefined, 'chrome-extension://api.example', true],
  ];

for (const [site, origin, refused] of cases) {
  test(`${refused ? 'refuses' : 'lets through'} Sec-Fetch-Site ${site ?? '-'} with Origin ${origin ?? '-'}`, () => {
    const fields = [
      ...(site === undefined ? [] : ['Sec-Fetch-Site', site]),
      ...(origin === undefined ? [] : ['Origin', origin]),
    ];
    assert.equal(check(requestWith(fields, 'POST')), refused);
  });
}

test('a page of the public host counts as ours by its scheme too, once that is known', () => {
  const fields = ['Origin', 'http://public.example'];
  const request = { fields: { ...requestWith(fields).fields, host: 'public.example' } };
  assert.equal(check(request), true);
  assert.equal(withoutUrl(request), false);
});

test('without a public URL the Host alone tells what is ours, whatever its letters and default port', () => {
  for (const [host, origin, refused] of [
    ['API.example', 'https://api.example', false],
    ['api.example:80', 'http://api.example', false],
    ['api.example:443', 'https://api.example', false],
    ['api.example:80', 'https://api.example', true],
    ['[::1]:4000', 'http://[::1]:4000', false],
    ['127.0.0.1:4000', 'http://localhost:4000', true],
  ] as const) {
    const request = { fields: { ...requestWith(['Origin', origin]).fields, host } };
    assert.equal(withoutUrl(request), refused, `${host} ${origin}`);
  }
});

test('QUERY is a safe method, as GET is; methods are told by their letters', () => {
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'QUERY', 'TRACE']) assert.ok(isSafeMethod(method), method);
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'get']) assert.ok(!isSafeMethod(method), method);
});

test('a public URL with a path stands for its origin', () => {
  const rooted = createCrossSiteCheck(`${publicUrl}/backend`, new Set());
  const request = (origin: string) => requestWith(['Sec-Fetch-Site', 'cross-site', 'Origin', origin]);
  assert.deepEqual([rooted(request(publicUrl)), rooted(request('https://evil.example'))], [false, true]);
});
