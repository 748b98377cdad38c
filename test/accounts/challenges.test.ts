/** Challenges (§5.1; RFC 6750 §3, RFC 7617 §2.1). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { challengesFor, proxyChallengesFor } from '../../src/accounts/authenticate.ts';

const rest = 'ApiKey realm="comity", Basic realm="comity", charset="UTF-8"';

test('lists every scheme that would be accepted, whichever was tried', () => {
  for (const problem of [
    'no_token_provided',
    'invalid_api_key',
    'api_key_required',
    'invalid_credentials',
  ] as const) {
    assert.equal(challengesFor(problem), `Bearer realm="comity", ${rest}`, problem);
  }
});

test('tells the bearer of a bad token, and nobody else, that it is invalid', () => {
  assert.equal(challengesFor('invalid_token'), `Bearer realm="comity", error="invalid_token", ${rest}`);
});

test('a proxy takes Basic and Bearer', () => {
  const basic = 'Basic realm="comity", charset="UTF-8"';
  assert.equal(proxyChallengesFor('no_token_provided'), `${basic}, Bearer realm="comity"`);
  assert.equal(proxyChallengesFor('invalid_credentials'), `${basic}, Bearer realm="comity"`);
  assert.equal(proxyChallengesFor('invalid_token'), `${basic}, Bearer realm="comity", error="invalid_token"`);
});
