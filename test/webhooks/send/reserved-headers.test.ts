/** Header fields that an endpoint may add to its deliveries, and those that it may not. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { headerNameCharactersMax, refuseHeaders } from '../../../src/webhooks/sent-headers.ts';

const bounds = { headersMax: 3, valueCharactersMax: 16 };

test('an endpoint may add fields that are not ours, up to the bounds', () => {
  const good = [
    {},
    { Authorization: 'Bearer abc', 'X-Team': '', 'x-1': 'a b\tc' },
    { 'X-Value': 'x'.repeat(16) },
    { ['x'.repeat(headerNameCharactersMax)]: '1' },
  ];
  for (const headers of good) assert.equal(refuseHeaders(headers, bounds), undefined);
  const bad: readonly (readonly [Record<string, string>, RegExp])[] = [
    [{ a: '1', b: '2', c: '3', d: '4' }, /at most 3/],
    [{ 'X-Value': 'x'.repeat(17) }, /"X-Value" has more than 16 characters/],
    [{ ['x'.repeat(headerNameCharactersMax + 1)]: '1' }, /not the name/],
    ...['', 'X Team', 'X-Team:', 'Ä', 'a\r\nb', ':path'].map(
      (name) => [{ [name]: '1' }, /not the name/] as const,
    ),
    ...['a\r\nb', 'a\nb', 'a\rb', 'a\0b', 'é', ' a', 'a ', '\t', '\x7f'].map(
      (value) => [{ 'X-Team': value }, /has a character/] as const,
    ),
    [{ 'X-Team': '1', 'x-team': '2' }, /declared twice/],
    ...['Host', 'content-length', 'Transfer-Encoding', 'CONNECTION', 'Content-Type', 'User-Agent'].map(
      (name) => [{ [name]: '1' }, /Comity sets itself/] as const,
    ),
    ...[
      'Service-Signature',
      'X-Hub-Signature-256',
      'X-Service-Event',
      'X-Service-Delivery',
      'Webhook-Id',
    ].map((name) => [{ [name]: '1' }, /Comity sets itself/] as const),
  ];
  for (const [headers, why] of bad) assert.match(refuseHeaders(headers, bounds) ?? '', why);
});
