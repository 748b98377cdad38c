import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodePathSegments, parseRequestTarget } from '../../src/http/syntax/request-target.ts';

test('reads the four forms with the examples of RFC 9112 §3.2', () => {
  assert.deepEqual(parseRequestTarget('GET', '/where?q=now'), {
    form: 'origin',
    path: '/where',
    query: 'q=now',
  });
  assert.deepEqual(parseRequestTarget('GET', 'http://www.example.org/pub/WWW/TheProject.html'), {
    form: 'absolute',
    scheme: 'http',
    authority: 'www.example.org',
    path: '/pub/WWW/TheProject.html',
    query: undefined,
  });
  const authority = { form: 'authority', host: 'www.example.com', port: 80 };
  assert.deepEqual(parseRequestTarget('CONNECT', 'www.example.com:80'), authority);
  assert.deepEqual(parseRequestTarget('CONNECT', '[::1]:443'), {
    form: 'authority',
    host: '[::1]',
    port: 443,
  });
  assert.deepEqual(parseRequestTarget('OPTIONS', '*'), { form: 'asterisk' });
  const server = { scheme: 'http', authority: 'www.example.org:8001', path: '*', query: undefined };
  assert.deepEqual(parseRequestTarget('OPTIONS', 'http://www.example.org:8001'), {
    form: 'absolute',
    ...server,
  });
});

test('keeps the first question mark as the separator, an empty query, and an empty path as /', () => {
  assert.deepEqual(parseRequestTarget('GET', '/a?b?c/d'), { form: 'origin', path: '/a', query: 'b?c/d' });
  assert.deepEqual(parseRequestTarget('GET', '/a?'), { form: 'origin', path: '/a', query: '' });
  assert.deepEqual(parseRequestTarget('GET', '//a'), { form: 'origin', path: '//a', query: undefined });
  const read = parseRequestTarget('GET', 'HTTPS://a:1?x');
  assert.deepEqual(read, { form: 'absolute', scheme: 'https', authority: 'a:1', path: '/', query: 'x' });
});

test('takes brackets in a query, not in a path', () => {
  const read = { form: 'origin', path: '/p', query: 'price[gte]=10' };
  assert.deepEqual(parseRequestTarget('GET', '/p?price[gte]=10'), read);
  assert.equal(parseRequestTarget('GET', '/p[1]'), undefined);
});

test('refuses a form that the method may not use', () => {
  for (const method of ['GET', 'POST', 'options', 'TRACE'])
    assert.equal(parseRequestTarget(method, '*'), undefined);
  assert.equal(parseRequestTarget('GET', 'www.example.com:80'), undefined);
  const bad = [
    '/',
    '*',
    'a',
    'a:',
    'a:0',
    'a:65536',
    ':80',
    'http://a:80',
    'u@a:80',
    'a:80/',
    'a:80?x',
    '::1:80',
  ];
  for (const target of bad) assert.equal(parseRequestTarget('CONNECT', target), undefined, target);
});

test('refuses fragments, bad escapes, stray characters, other schemes and user information', () => {
  const paths = [
    '',
    'a',
    '?a',
    '/#',
    '/a#b',
    '/a?b#c',
    '/a b',
    '/a%',
    '/a%2',
    '/a%gg',
    '/é',
    '/a\\b',
    '/a"b',
    '/<>',
  ];
  const queries = ['/a?{', '/a?b|c', '/a?%zz', '/a?é', '/a?\0', '/a^', '/a`', '/a?b\\', '**', '*?a'];
  const absolute = [
    'ftp://a/',
    'http:/a',
    'http://',
    'http:///a',
    'http://u:p@a/',
    'http://a#b',
    'http://a/ b',
    'http://a:x/',
  ];
  for (const target of [...paths, ...queries, ...absolute]) {
    assert.equal(parseRequestTarget('GET', target), undefined, target);
  }
});

test('decodes each segment on its own', () => {
  assert.deepEqual(decodePathSegments('/'), ['']);
  assert.deepEqual(decodePathSegments('/api/v1/products'), ['api', 'v1', 'products']);
  assert.deepEqual(decodePathSegments('/a//b/'), ['a', '', 'b', '']);
  assert.deepEqual(decodePathSegments('/a%2Fb/%C3%A9/%F0%9F%98%80/+'), ['a/b', 'é', '😀', '+']);
  assert.deepEqual(decodePathSegments('/.well-known/a.b/...'), ['.well-known', 'a.b', '...']);
  assert.deepEqual(decodePathSegments('/%252e'), ['%2e']);
});

test('refuses dot segments in every spelling, NUL, and what is not UTF-8', () => {
  const dots = ['/.', '/..', '/a/../b', '/a/./b', '/%2e', '/%2E%2e', '/.%2e', '/a/%2e./b'];
  const bytes = ['/%00', '/a\0', '/%ff', '/%c0%ae', '/%ed%a0%80', '/%c3', '/%', '/%4', '/%zz', '/a/%e2%82'];
  for (const path of [...dots, ...bytes, '', 'a', '*'])
    assert.equal(decodePathSegments(path), undefined, path);
});
