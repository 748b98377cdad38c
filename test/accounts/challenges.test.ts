/** Challenges (§5.1; RFC 6750 §3, RFC 7617 §2.1), each for a line of its own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { challengesFor, proxyChallengesFor } from '../../src/accounts/authenticate.ts';

const bearer = 'Bearer realm="comity"';
const basic = 'Basic realm="comity", charset="UTF-8"';
const others = ['ApiKey realm="comity"', basic];

test('lists every scheme that would be accepted, whichever was tried', () => {
  for (const problem of [
    'no_token_provided',
    'invalid_api_key',
    'api_key_required',
    'invalid_credentials',
  ] as const) {
    assert.deepEqual(challengesFor(problem), [bearer, ...others], problem);
  }
});

test('tells the bearer of a bad token, and nobody else, that it is invalid', () => {
  assert.deepEqual(challengesFor('invalid_token'), [`${bearer}, error="invalid_token"`, ...others]);
});

test('a proxy takes Basic and Bearer, in one line', () => {
  assert.equal(proxyChallengesFor('no_token_provided'), `${basic}, ${bearer}`);
  assert.equal(proxyChallengesFor('invalid_credentials'), `${basic}, ${bearer}`);
  assert.equal(proxyChallengesFor('invalid_token'), `${basic}, ${bearer}, error="invalid_token"`);
});
