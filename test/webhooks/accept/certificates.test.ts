/** Senders that name the URL of a certificate in each message (§4.14.2): which URLs are fetched, and which certificates verify. */
import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { describe, test } from 'node:test';
import { crc32 } from 'node:zlib';
import type { DeclaredSender } from '../../../src/config/senders.ts';
import { presets } from '../../../src/webhooks/presets.ts';
import {
  certificatesMax,
  newCertificatesMinuteMax,
} from '../../../src/webhooks/receiving/sender-certificates.ts';
import type { FetchKeys } from '../../../src/webhooks/signature/trusted-keys.ts';
import { openEmbedded } from '../../harness/stores.ts';
import { receivers, snsContent } from '../presets/vendor-messages.ts';
import { declared, walkSenders } from './walked-senders.ts';

const store = await openEmbedded();
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const shortRsa = generateKeyPairSync('rsa', { modulusLength: 1024 });
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });

/** DER (X.690 §8.1) of one value. */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const octets = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...octets]), content]);
}

/** A certificate (RFC 5280 §4.1) of the key, signed by another key: nobody but the host vouches for it. */
function certificateOf(key: KeyObject, years: readonly [from: number, to: number] = [2000, 2100]): string {
  const algorithm = der(0x30, der(0x06, Buffer.from('2a864886f70d01010b', 'hex')), der(0x05));
  const name = der(
    0x30,
    der(0x31, der(0x30, der(0x06, Buffer.from('550403', 'hex')), der(0x0c, Buffer.from('sender')))),
  );
  const validity = der(0x30, ...years.map((year) => der(0x18, Buffer.from(`${year}0101000000Z`))));
  const keyInfo = key.export({ type: 'spki', format: 'der' });
  const content = der(0x30, der(0x02, Buffer.from([1])), algorithm, name, validity, name, keyInfo);
  const signature = sign('sha256', content, rsa.privateKey);
  const whole = der(0x30, content, algorithm, der(0x03, Buffer.from([0]), signature)).toString('base64');
  return `-----BEGIN CERTIFICATE-----\n${whole.match(/.{1,64}/g)?.join('\n')}\n-----END CERTIFICATE-----\n`;
}

function withReceiver(name: 'sns' | 'paypal'): DeclaredSender {
  const { signature, ...rule } = presets[name];
  assert.ok(signature.kind === 'rsa');
  return declared(name, name, { rule: { ...rule, signature: { ...signature, receiver: receivers[name] } } });
}

const host = 'https://sns.eu-central-1.amazonaws.com';
const good = `${host}/SimpleNotificationService-1.pem`;
const served: Readonly<Record<string, string>> = {
  [good]: certificateOf(rsa.publicKey),
  [`${host}/old.pem`]: certificateOf(rsa.publicKey, [2000, 2001]),
  [`${host}/early.pem`]: certificateOf(rsa.publicKey, [2099, 2100]),
  [`${host}/short.pem`]: certificateOf(shortRsa.publicKey),
  [`${host}/ec.pem`]: certificateOf(ec.publicKey),
  [`${host}/none.pem`]: 'not a certificate',
  [`${host}/long.pem`]: certificateOf(rsa.publicKey) + ' '.repeat(65_536),
  'https://api.sandbox.paypal.com/v1/notifications/certs/CERT-1': certificateOf(rsa.publicKey),
};

function room() {
  const asked: string[] = [];
  const fetchKeys: FetchKeys = async (url) => {
    asked.push(url);
    const { status, body } = new Response(served[url] ?? 'gone', {
      status: served[url] === undefined ? 404 : 200,
    });
    return { status, body: body as never };
  };
  return {
    asked,
    walked: walkSenders(store, { fetchKeys, senders: [withReceiver('sns'), withReceiver('paypal')] }),
  };
}

let number = 0;
/** @param changed members after the signature was made */
function snsMessage(url: string, given: object = {}, changed: object = {}): string {
  number += 1;
  const message = {
    ...{ Type: 'Notification', MessageId: `m-${number}`, TopicArn: receivers.sns, Message: 'line\n"é"' },
    ...{ Timestamp: '2026-12-01T10:00:00.000Z', SignatureVersion: '2', SigningCertURL: url, ...given },
  };
  const signature = sign('sha256', Buffer.from(snsContent(message)), rsa.privateKey).toString('base64');
  return JSON.stringify({ ...message, Signature: signature, ...changed });
}

describe('a message of Amazon SNS', () => {
  for (const [title, status, body, fetched] of [
    ['with a certificate of its region', 204, () => snsMessage(good), true],
    ['with a subject', 204, () => snsMessage(good, { Subject: 'New order' }), true],
    [
      'that asks for a confirmation',
      204,
      () =>
        snsMessage(good, { Type: 'SubscriptionConfirmation', Token: 't', SubscribeURL: `${host}/?Action=x` }),
      true,
    ],
    ['whose text was changed', 400, () => snsMessage(good, {}, { Message: 'another' }), true],
    ['whose subject was added', 400, () => snsMessage(good, {}, { Subject: 'added' }), true],
    ['whose type was changed', 400, () => snsMessage(good, {}, { Type: 'SubscriptionConfirmation' }), true],
    ['of another topic', 400, () => snsMessage(good, { TopicArn: `${receivers.sns}-2` }), true],
    [
      'with a certificate of a bucket',
      400,
      () => snsMessage('https://sns.eu.amazonaws.com.evil.example/a.pem'),
      false,
    ],
    [
      'with a certificate of a host that ends like it',
      400,
      () => snsMessage('https://sns.a.b.amazonaws.com/a.pem'),
      false,
    ],
    ['with a certificate over http', 400, () => snsMessage(good.replace('https', 'http')), false],
    ['with a certificate at another port', 400, () => snsMessage(good.replace('.com/', '.com:8443/')), false],
    ['with a certificate by a user', 400, () => snsMessage(good.replace('//', '//a@')), false],
    ['with a certificate by a query', 400, () => snsMessage(`${good}?a=1`), false],
    ['with no URL', 400, () => snsMessage('none'), false],
    ['with a certificate that has expired', 503, () => snsMessage(`${host}/old.pem`), true],
    ['with a certificate of the future', 503, () => snsMessage(`${host}/early.pem`), true],
    ['with a short key', 503, () => snsMessage(`${host}/short.pem`), true],
    ['with a key of another kind', 503, () => snsMessage(`${host}/ec.pem`), true],
    ['with something else for a certificate', 503, () => snsMessage(`${host}/none.pem`), true],
    ['with a certificate beyond the bound', 503, () => snsMessage(`${host}/long.pem`), true],
    ['with a certificate that is gone', 503, () => snsMessage(`${host}/gone.pem`), true],
  ] as const) {
    test(`${title}: ${status}`, async () => {
      const { asked, walked } = room();
      const answered = await walked.post('sns', { body: body() });
      assert.deepEqual([answered.status, asked.length], [status, fetched ? 1 : 0]);
    });
  }

  test('is verified without another request by a certificate that is known', async () => {
    const { asked, walked } = room();
    for (let count = 0; count < 5; count += 1)
      assert.equal((await walked.post('sns', { body: snsMessage(good) })).status, 204);
    assert.deepEqual(asked, [good]);
  });

  test(`costs at most ${newCertificatesMinuteMax} requests a minute, and forgets none that verified`, async () => {
    const { asked, walked } = room();
    assert.equal((await walked.post('sns', { body: snsMessage(good) })).status, 204);
    for (let count = 0; count < 2 * certificatesMax; count += 1)
      assert.equal((await walked.post('sns', { body: snsMessage(`${host}/${count}.pem`) })).status, 503);
    assert.equal(asked.length, newCertificatesMinuteMax);
    assert.equal((await walked.post('sns', { body: snsMessage(good) })).status, 204);
    assert.equal(asked.length, newCertificatesMinuteMax);
    walked.moveClock(61);
    assert.equal((await walked.post('sns', { body: snsMessage(`${host}/later.pem`) })).status, 503);
    assert.equal(asked.length, newCertificatesMinuteMax + 1);
  });
});

describe('a message of PayPal', () => {
  const send = async (body: string, { webhook = receivers.paypal, sent = body } = {}) => {
    number += 1;
    const [id, at] = [`t-${number}`, '2026-12-01T10:00:00Z'];
    const signed = `${id}|${at}|${webhook}|${crc32(body)}`;
    const signature = sign('sha256', Buffer.from(signed), rsa.privateKey).toString('base64');
    const fields = [
      ...['PayPal-Transmission-Id', id, 'PayPal-Transmission-Time', at, 'PayPal-Transmission-Sig', signature],
      ...['PayPal-Cert-Url', 'https://api.sandbox.paypal.com/v1/notifications/certs/CERT-1'],
    ];
    return room().walked.post('paypal', { body: sent, fields });
  };
  const body = '{"id":"WH-1","event_type":"PAYMENT.SALE.COMPLETED"}';

  test('is verified by the id of the webhook and the checksum of the body', async () => {
    assert.equal((await send(body)).status, 200);
    assert.equal((await send(body, { webhook: 'another' })).status, 400);
    assert.equal((await send(body, { sent: `${body} ` })).status, 400);
  });

  test('is refused beyond a mebibyte, before its checksum is made', async () => {
    const MiB = 1024 * 1024;
    assert.equal((await send(body.padEnd(MiB))).status, 200);
    assert.equal((await send(body.padEnd(MiB + 1))).status, 400);
  });
});
