/** Open redirects and header injection by `redirect` (RFC 9700 §4.11). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { redirectTarget } from '../../../src/accounts/oauth/oauth-routes.ts';

const allowed = new Set(['https://app.example', 'http://localhost:5173']);
const base = 'https://api.example/api/v1/auth/oauth/google/callback';

const good: readonly (readonly [asked: string, leadsTo: string])[] = [
  ['/', 'https://api.example/'],
  ['/welcome?from=google#top', 'https://api.example/welcome?from=google#top'],
  ['/a/../b', 'https://api.example/b'],
  ['/caf\u00e9', 'https://api.example/caf%C3%A9'],
  ['/%2f/evil.example', 'https://api.example/%2f/evil.example'],
  ['/@evil.example', 'https://api.example/@evil.example'],
  ['https://app.example', 'https://app.example/'],
  ['https://app.example/in?x=1#y', 'https://app.example/in?x=1#y'],
  ['HTTPS://APP.EXAMPLE:443/', 'https://app.example/'],
  ['https:app.example/x', 'https://app.example/x'],
  ['http://localhost:5173/', 'http://localhost:5173/'],
];

for (const [asked, leadsTo] of good) {
  test(`leads to ${leadsTo} for ${JSON.stringify(asked)}`, () => {
    const target = redirectTarget(asked, allowed);
    assert.notEqual(target, undefined);
    assert.match(target ?? '', /^[\x21-\x7e]+$/);
    assert.equal(new URL(target ?? '', base).href, leadsTo);
  });
}

const bad = [
  '',
  'welcome',
  './welcome',
  '?x',
  '#x',
  '//evil.example',
  '///evil.example',
  '/.//evil.example',
  '/..//evil.example',
  '/a/..//evil.example',
  '/%2e//evil.example',
  '/\\evil.example',
  '\\\\evil.example',
  '/\t/evil.example',
  '/\n/evil.example',
  '\t//evil.example',
  ' //evil.example',
  '/ok\r\nSet-Cookie: a=b',
  '/ok\u2028',
  '/\u0000',
  'https://evil.example',
  'https://app.example.evil.example/',
  'https://app.example@evil.example/',
  'https://user@app.example/',
  'https://app.example:8443/',
  'http://app.example/',
  'https:/evil.example',
  'javascript:alert(1)',
  'data:text/html,x',
  'blob:https://app.example/x',
  'file:///etc/passwd',
  'null',
  `/${'a'.repeat(2000)}`,
];

for (const asked of bad) {
  test(`leads nowhere for ${JSON.stringify(asked.slice(0, 60))}`, () => {
    assert.equal(redirectTarget(asked, allowed), undefined);
  });
}
