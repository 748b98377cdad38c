/** Properties of all carriers, over texts that nobody would think of (§5.2). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  authorizationCarrier,
  type CarrierFields,
  proxyAuthorizationCarrier,
  queryParameterCarrier,
  sessionCookieCarrier,
  xApiKeyCarrier,
} from '../../src/accounts/authenticate.ts';
import { parseQueryString } from '../../src/http/syntax/query-string.ts';
import { codePoint } from '../harness/code-point.ts';
import { roundsOf } from '../harness/rounds.ts';

const carriers = [
  authorizationCarrier,
  xApiKeyCarrier,
  queryParameterCarrier,
  sessionCookieCarrier,
  proxyAuthorizationCarrier,
];

const absent: CarrierFields = {
  authorization: undefined,
  xApiKey: undefined,
  cookie: undefined,
  proxyAuthorization: undefined,
};

const base64 = fc
  .tuple(fc.string(), fc.constantFrom(':', ''), fc.string())
  .map((parts) => Buffer.from(parts.join('')).toString('base64'));
const text = fc.oneof(
  fc.string({ unit: codePoint }),
  fc
    .tuple(
      fc.constantFrom('', ' ', '\t', '\n', '\u00a0', '\ufeff'),
      fc.constantFrom('Basic', 'basic', 'BASIC', 'bASIC', 'Bearer', 'ApiKey', 'Api-Key', 'Digest'),
      fc.constantFrom(' ', '  ', '\t', ',', ''),
      fc.oneof(base64, fc.string({ unit: codePoint }), fc.constantFrom('YTpi', 'a=b', 'a, b')),
    )
    .map((parts) => parts.join('')),
);

const numRuns = roundsOf(1000, 3000);

test('no text makes a carrier throw, and the same text always says the same', () => {
  fc.assert(
    fc.property(text, (value) => {
      for (const carrier of carriers) {
        assert.deepEqual(carrier.read(value), carrier.read(value));
        const fields = { authorization: value, xApiKey: value, cookie: value, proxyAuthorization: value };
        carrier.find(fields, value);
        assert.equal(carrier.find(absent, undefined), undefined);
      }
    }),
    { numRuns },
  );
});

test('whatever is read as a password is remembered as a digest alone', () => {
  const basic = fc
    .tuple(fc.constantFrom('Basic ', 'basic ', 'BASIC  '), base64)
    .map((parts) => parts.join(''));
  let passwords = 0;
  fc.assert(
    fc.property(fc.oneof(text, basic), (value) => {
      for (const carrier of carriers) {
        if (carrier.read(value).kind !== 'password') continue;
        passwords += 1;
        assert.ok(carrier.holdsPassword(value), value);
      }
    }),
    { numRuns },
  );
  assert.ok(passwords > numRuns / 20, `only ${passwords} passwords were tried`);
});

test('a carrier is a place of its own', () => {
  assert.equal(new Set(carriers.map(({ mark }) => mark)).size, carriers.length);
  for (const { mark } of carriers) assert.equal(mark.length, 1);
});

test('api_key is found in a query exactly where the query as a whole has it', () => {
  const name = fc.constantFrom(
    'api_key',
    'api%5Fkey',
    '%61pi_key',
    'api_key%',
    'api_keys',
    'q',
    '',
    'api+key',
  );
  const value = fc.string({ unit: fc.constantFrom(...'abk_%2=+&é') });
  const query = fc
    .array(fc.tuple(name, fc.constantFrom('=', '', '=='), value).map((parts) => parts.join('')))
    .map((pieces) => pieces.join('&'));
  fc.assert(
    fc.property(query, (given) => {
      const pairs = parseQueryString(given);
      if (pairs === undefined) return;
      const values = pairs.filter(([key]) => key === 'api_key').map(([, found]) => found);
      const found = queryParameterCarrier.find(absent, given);
      if (values.length > 1) {
        assert.deepEqual(found, { kind: 'unreadable', problem: 'credentials_repeated' }, given);
      } else assert.equal(found, values[0], given);
    }),
    { numRuns },
  );
});
