/** What only Twilio signs: a URL, and the parameters of a form. Its published vectors, and what its own library says. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import twilioWebhooks from 'twilio/lib/webhooks/webhooks.js';
import { presets } from '../../../src/webhooks/presets.ts';
import { verdictOf } from './verdict-of.ts';

const { getExpectedTwilioSignature, validateRequest, validateRequestWithBody } = twilioWebhooks;

const token = '12345';
const url = 'https://mycompany.com/myapp.php?foo=1&bar=2';
const form =
  'CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&To=%2B18005551212';
const formSignature = 'RSOYDt4T1cUTdK1PDd93/VVr8B8=';
const digestUrl = `${url}&bodySHA256=0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620`;
const json = '{"property": "value", "boolean": true}';
const jsonSignature = 'a9nBmqA0ju/hNViExpshrM61xv4=';

type Request = { url?: string; body?: string | Uint8Array; signature?: string; type?: string | string[] };

function judge({ url: called = url, body = form, signature = formSignature, type }: Request) {
  const contentType = type ?? 'application/x-www-form-urlencoded';
  const headers = { 'x-twilio-signature': signature, 'content-type': contentType };
  return verdictOf(presets.twilio.signature, { url: called, body: Buffer.from(body), headers }, [token]);
}
const good = { ok: true, timestamp: null, id: null, secret: 0 };
const noMatch = { ok: false, reason: 'no-match' };
const sign = (content: string | Uint8Array) => createHmac('sha1', token).update(content).digest('base64');

test('believes the published vectors of a form, of repeated parameters, and of a body that is no form', async () => {
  assert.deepEqual(await judge({}), good);
  const repeated = 'Sid=CA123&SidAccount=AC123&Digits=5678&Digits=1234&Digits=1234';
  assert.deepEqual(await judge({ body: repeated, signature: 'IK+Dwps556ElfBT0I3Rgjkr1wJU=' }), good);
  const other = { url: digestUrl, signature: jsonSignature };
  assert.deepEqual(await judge({ ...other, body: json, type: 'application/json' }), good);
});

test('is of one mind with the library of Twilio', async () => {
  const forms = [
    '',
    'a=1',
    'b=2&a=1',
    'a=ä&a=%C3%A4&B=x+y&b=%26',
    'Body=Hi%21&From=%2B1&empty=',
    'a=%F0%9F%A7%80&z',
  ];
  for (const body of forms) {
    const parameters: Record<string, string[]> = {};
    for (const [name, value] of new URLSearchParams(body))
      parameters[name] = [...(parameters[name] ?? []), value];
    const signature = getExpectedTwilioSignature(token, url, parameters);
    assert.deepEqual(await judge({ body, signature }), good, body);
    assert.ok(validateRequest(token, signature, url, parameters));
    for (const changed of [`${body}&z=1`, body === '' ? 'x' : body.slice(1)]) {
      assert.deepEqual(await judge({ body: changed, signature }), noMatch, changed);
    }
  }
  assert.ok(validateRequestWithBody(token, jsonSignature, digestUrl, json));
});

test('takes the URL with the port of its scheme and without, as the library does, and no other URL', async () => {
  const withPort = url.replace('.com/', '.com:443/');
  const strangePort = url.replace('.com/', '.com:8443/');
  for (const [called, signed] of [
    [url, withPort],
    [withPort, url],
    [strangePort, url],
    [strangePort, strangePort],
    ['http://[::1]/x', 'http://[::1]:80/x'],
    ['http://[::1]:80/x', 'http://[::1]/x'],
  ] as const) {
    assert.deepEqual(await judge({ url: called, body: '', signature: sign(signed) }), good, called);
  }
  for (const other of [url.replace('https', 'http'), `${url}&`, url.replace('foo', 'Foo'), 'no URL', '']) {
    assert.deepEqual(await judge({ url: other }), noMatch, other);
  }
  // Stricter than the library, which falls back to the URL as a parser of URLs would write it.
  const apostrophe = `${url}&n=O'Neil`;
  const escaped = sign(new URL(apostrophe).href);
  assert.ok(validateRequest(token, escaped, apostrophe, {}));
  assert.deepEqual(await judge({ url: apostrophe, body: '', signature: escaped }), noMatch);
  assert.deepEqual(await judge({ url: apostrophe, body: '', signature: sign(apostrophe) }), good);
});

test("a body beside a signed URL is nobody's, unless it is the form or the digest stands in the URL", async () => {
  const signature = sign(url);
  assert.deepEqual(await judge({ body: '', signature }), good);
  assert.deepEqual(await judge({ body: '', signature, type: 'application/json' }), good);
  assert.deepEqual(await judge({ body: '{}', signature, type: 'application/json' }), noMatch);
  assert.deepEqual(await judge({ body: 'a=1', type: 'text/plain', signature: sign(`${url}a1`) }), noMatch);
  assert.deepEqual(await judge({ type: ['application/json', 'application/x-www-form-urlencoded'] }), noMatch);
  // Calling another body a form does not take the digest's place, and neither does a second digest.
  for (const type of ['application/json', 'application/x-www-form-urlencoded']) {
    assert.deepEqual(await judge({ url: digestUrl, body: '&', signature: jsonSignature, type }), noMatch);
  }
  const twice = `${digestUrl}&bodySHA256=${'0'.repeat(64)}`;
  assert.deepEqual(
    await judge({ url: twice, body: json, signature: sign(twice), type: 'application/json' }),
    noMatch,
  );
  const short = `${url}&bodySHA256=0a1f`;
  assert.deepEqual(await judge({ url: short, body: json, signature: sign(short) }), noMatch);
});

test('names and values that are no UTF-8 are signed as the octets they are', async () => {
  const octets = Buffer.concat([Buffer.from(`${url}a`), Buffer.from([0xff, 0x25]), Buffer.from('b%4')]);
  assert.deepEqual(await judge({ body: 'a=%FF%25&b=%4', signature: sign(octets) }), good);
  assert.deepEqual(await judge({ body: 'a=%FE%25&b=%4', signature: sign(octets) }), noMatch);
});

test('a form of more than 1000 parameters is malformed, before it is sorted', async () => {
  const many = (count: number) => Array.from({ length: count }, () => 'a=1').join('&');
  assert.deepEqual(await judge({ body: many(1000), signature: sign(`${url}a1`) }), good);
  assert.deepEqual(await judge({ body: many(1001), signature: sign(`${url}a1`) }), {
    ok: false,
    reason: 'malformed',
  });
});

test('a program that does not say which URL was called has made a mistake', async () => {
  const message = {
    body: Buffer.from(form),
    headers: { 'x-twilio-signature': formSignature },
    url: undefined,
  };
  await assert.rejects(verdictOf(presets.twilio.signature, message as never, [token]), TypeError);
});
