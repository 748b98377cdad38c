import assert from 'node:assert/strict';
import { test } from 'node:test';
import { preferredMediaType, prefersHtml } from '../../src/http/syntax/accept.ts';

const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8';

test('ranks as the table of RFC 9110 §12.5.1', () => {
  const accept =
    'text/*;q=0.3, text/plain;q=0.7, text/plain;format=flowed, text/plain;format=fixed;q=0.4, */*;q=0.5';
  const ranked = [
    'text/plain;format=flowed',
    'text/plain',
    'image/jpeg',
    'text/plain;format=fixed',
    'text/html',
  ];
  for (let from = 0; from < ranked.length; from += 1) {
    const offers = ranked.slice(from).reverse();
    assert.equal(preferredMediaType(accept, offers), ranked[from]);
  }
});

test('takes the audio example of RFC 9110 §12.5.1', () => {
  const accept = 'audio/*; q=0.2, audio/basic';
  assert.equal(preferredMediaType(accept, ['audio/mp4', 'audio/basic']), 'audio/basic');
  assert.equal(preferredMediaType(accept, ['audio/mp4']), 'audio/mp4');
  assert.equal(preferredMediaType(accept, ['text/html']), undefined);
});

test('treats a missing, empty or malformed header as no preference', () => {
  const offers = ['application/json', 'text/html'];
  const bad = [
    'text',
    'text/html;q=2',
    'text/html;q=x',
    'text/html;q=0.1234',
    '*/html',
    'text/html text/plain',
  ];
  for (const accept of [undefined, '', ' ', ',', '*/*', ...bad]) {
    assert.equal(preferredMediaType(accept, offers), 'application/json', String(accept));
  }
  assert.equal(preferredMediaType('*/*', []), undefined);
});

test('compares without case, and takes q of either case in any place', () => {
  const offers = ['application/json', 'text/html'];
  assert.equal(preferredMediaType('TEXT/HTML', offers), 'text/html');
  assert.equal(
    preferredMediaType('application/json;Q=0.1, text/html;q=0.2;charset=UTF-8', offers),
    'text/html',
  );
});

test('refuses with q=0, and a specific refusal beats a wildcard', () => {
  const offers = ['application/json', 'text/html'];
  assert.equal(preferredMediaType('*/*, application/json;q=0', offers), 'text/html');
  assert.equal(preferredMediaType('*/*;q=0', offers), undefined);
  assert.equal(preferredMediaType('application/*;q=0, */*;q=0.1', offers), 'text/html');
});

test('of equal weights takes what was named over what a wildcard covers, then the order of the offers', () => {
  const offers = ['application/problem+json', 'application/json', 'text/csv'];
  assert.equal(preferredMediaType('application/json, text/plain, */*', offers), 'application/json');
  assert.equal(preferredMediaType('text/csv, application/json', offers), 'application/json');
  assert.equal(preferredMediaType('text/csv, */*', offers), 'text/csv');
});

test('matches parameters of a range, and lets charset=utf-8 pass for a type without one', () => {
  assert.equal(
    preferredMediaType('text/html;level=1', ['text/html', 'text/html;level=1']),
    'text/html;level=1',
  );
  assert.equal(preferredMediaType('text/html;level=3', ['text/html;level=1']), undefined);
  assert.equal(
    preferredMediaType('application/json; charset=utf-8', ['application/json']),
    'application/json',
  );
  assert.equal(preferredMediaType('application/json; charset=utf-16', ['application/json']), undefined);
});

test('sees a browser by text/html named with a weight not below that of JSON', () => {
  assert.equal(prefersHtml(browser), true);
  assert.equal(prefersHtml('Text/HTML, application/json'), true);
  assert.equal(prefersHtml('text/html;q=0.5, application/json'), false);
  assert.equal(prefersHtml('text/html;q=0.5, */*'), false);
  for (const accept of [
    undefined,
    '',
    '*/*',
    'text/*',
    'application/json',
    'text/html;q=0',
    'text/html;q=x',
  ]) {
    assert.equal(prefersHtml(accept), false, String(accept));
  }
});

test('lets the range with the most matching parameters give the weight', () => {
  const accept = 'a/b;x=1;q=0.9, a/b;x=1;y=2;q=0.1, c/d;q=0.5';
  assert.equal(preferredMediaType(accept, ['a/b;x=1;y=2', 'c/d']), 'c/d');
});
