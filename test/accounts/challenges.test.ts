/** Challenges (§5.1; RFC 6750 §3, RFC 7617 §2.1), each for a line of its own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { challengesFor, proxyChallengesFor } from '../../src/accounts/authenticate.ts';
import { readRequestFields } from '../../src/http/request-fields.ts';

const bearer = 'Bearer realm="comity"';
const basic = 'Basic realm="comity", charset="UTF-8"';
const noFields = readRequestFields([]);
const others = ['ApiKey realm="comity"', basic];

test('lists every scheme that would be accepted, whichever was tried', () => {
  for (const problem of [
    'no_token_provided',
    'invalid_api_key',
    'api_key_required',
    'invalid_credentials',
  ] as const) {
    assert.deepEqual(challengesFor(problem, noFields), [bearer, ...others], problem);
  }
});

test('tells the bearer of a bad token, and nobody else, that it is invalid', () => {
  assert.deepEqual(challengesFor('invalid_token', noFields), [`${bearer}, error="invalid_token"`, ...others]);
});

test('challenges a script of a page by no Basic, for which a browser would ask its user', () => {
  for (const raw of [
    ['Sec-Fetch-Dest', 'empty'],
    ['sec-fetch-dest', 'empty', 'sec-fetch-mode', 'cors'],
    ['X-Requested-With', 'XMLHttpRequest'],
  ]) {
    const fields = readRequestFields(raw);
    assert.deepEqual(challengesFor('no_token_provided', fields), [bearer, 'ApiKey realm="comity"']);
    assert.deepEqual(challengesFor('invalid_token', fields), [
      `${bearer}, error="invalid_token"`,
      'ApiKey realm="comity"',
    ]);
  }
});

test('offers Basic to the address bar of a browser, and to programs with fields that look alike', () => {
  for (const raw of [
    ['Sec-Fetch-Dest', 'document', 'Sec-Fetch-Mode', 'navigate'],
    ['Sec-Fetch-Mode', 'cors'],
    ['X-Requested-With', 'com.example.app'],
  ])
    assert.deepEqual(challengesFor('no_token_provided', readRequestFields(raw)), [bearer, ...others]);
});

test('a proxy takes Basic and Bearer, in one line', () => {
  assert.equal(proxyChallengesFor('no_token_provided'), `${basic}, ${bearer}`);
  assert.equal(proxyChallengesFor('invalid_credentials'), `${basic}, ${bearer}`);
  assert.equal(proxyChallengesFor('invalid_token'), `${basic}, ${bearer}, error="invalid_token"`);
});
