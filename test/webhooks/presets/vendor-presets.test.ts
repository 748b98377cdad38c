/**
 * Each vendor's preset believes a message that is signed here as the vendor documents it, and nothing that was changed since. The SDKs of
 * vendors judge the same in the full tier (full/webhooks/vendor-sdks).
 */
import assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { describe, test } from 'node:test';
import { presets } from '../../../src/webhooks/presets.ts';
import { memberReader } from '../../../src/webhooks/receive/message-facts.ts';
import { publicKeyOf } from '../../../src/webhooks/signature/key-pair.ts';
import { prepareKeys, webPrimitives } from '../../../src/webhooks/signature/mac-keys.ts';
import { keyAlgorithmOf } from '../../../src/webhooks/signature/signature-rule.ts';
import { verifyingBy } from '../../../src/webhooks/signature/trusted-keys.ts';
import { verifyByRule } from '../../../src/webhooks/signature/verify-by-rule.ts';
import type { vendorPresets } from '../../../src/webhooks/vendor-presets.ts';

const secret = 'a secret of the vendor 0123456789';
const seconds = 1_900_000_000;
const ms = seconds * 1000 + 123;
const iso = new Date(seconds * 1000).toISOString().replace('.000Z', '.123456789Z');
const url = 'https://shop.example/webhooks/vendor?place=1';
const json = '{"id":"evt_1","type":"a.b","name":"Käse"}';
const form = 'mandrill_events=%5B%7B%22event%22%3A%22send%22%7D%5D&a=1';

type Sent = { readonly body: string; readonly fields: Readonly<Record<string, string>> };
type Vendor = {
  readonly send: (body: string, key: string) => Sent;
  readonly body?: string;
  /** The public key, in the form in which the vendor shows it. */
  readonly publicKey?: string;
  readonly isTimed?: boolean;
  readonly signsNoContent?: boolean;
};

const mac = (hash: string, key: string, text: string, encoding: 'hex' | 'base64' | 'base64url') =>
  createHmac(hash, key).update(text).digest(encoding);
const hex = (key: string, text: string) => mac('sha256', key, text, 'hex');
const base64 = (key: string, text: string) => mac('sha256', key, text, 'base64');
const inField =
  (name: string, made: (key: string, body: string) => string): Vendor['send'] =>
  (body, key) => ({ body, fields: { [name]: made(key, body) } });

const ed25519 = generateKeyPairSync('ed25519');
const ecdsa = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const rawEd25519 = (key: KeyObject) =>
  Buffer.from(key.export({ format: 'jwk' }).x ?? '', 'base64url').toString('hex');
const otherEd25519 = generateKeyPairSync('ed25519').privateKey;
const otherEcdsa = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;

const vendors: Readonly<Record<keyof typeof vendorPresets, Vendor>> = {
  bitbucket: { send: inField('x-hub-signature', (key, body) => `sha256=${hex(key, body)}`) },
  calendly: {
    isTimed: true,
    send: inField(
      'calendly-webhook-signature',
      (key, body) => `t=${seconds},v1=${hex(key, `${seconds}.${body}`)}`,
    ),
  },
  discord: {
    isTimed: true,
    publicKey: rawEd25519(ed25519.publicKey),
    send: (body, key) => ({
      body,
      fields: {
        'x-signature-ed25519': sign(
          null,
          Buffer.from(`${seconds}${body}`),
          key === secret ? ed25519.privateKey : otherEd25519,
        ).toString('hex'),
        'x-signature-timestamp': String(seconds),
      },
    }),
  },
  dropbox: { send: inField('x-dropbox-signature', hex) },
  hubspot: {
    isTimed: true,
    send: (body, key) => ({
      body,
      fields: {
        'x-hubspot-signature-v3': base64(key, `POST${url}${body}${ms}`),
        'x-hubspot-request-timestamp': String(ms),
      },
    }),
  },
  intercom: { send: inField('x-hub-signature', (key, body) => `sha1=${mac('sha1', key, body, 'hex')}`) },
  line: { send: inField('x-line-signature', base64) },
  linear: { send: inField('linear-signature', hex) },
  mailgun: {
    isTimed: true,
    signsNoContent: true,
    send: (_body, key) => ({
      body: JSON.stringify({
        signature: { token: 'tok_1', timestamp: String(seconds), signature: hex(key, `${seconds}tok_1`) },
        'event-data': { event: 'opened' },
      }),
      fields: {},
    }),
  },
  mandrill: {
    body: form,
    send: (body, key) => {
      const pairs = [...new URLSearchParams(body)].sort(([one], [other]) => (one < other ? -1 : 1));
      return {
        body,
        fields: {
          'x-mandrill-signature': mac('sha1', key, `${url}${pairs.flat().join('')}`, 'base64'),
          'content-type': 'application/x-www-form-urlencoded',
        },
      };
    },
  },
  meta: { send: inField('x-hub-signature-256', (key, body) => `sha256=${hex(key, body)}`) },
  'microsoft-graph': {
    signsNoContent: true,
    send: (_body, key) => ({
      body: JSON.stringify({ value: [{ id: 'n1', changeType: 'updated', clientState: key }] }),
      fields: {},
    }),
  },
  notion: { send: inField('x-notion-signature', (key, body) => `sha256=${hex(key, body)}`) },
  nylas: { send: inField('x-nylas-signature', hex) },
  okta: { signsNoContent: true, send: inField('authorization', (key) => key) },
  paddle: {
    isTimed: true,
    send: inField('paddle-signature', (key, body) => `ts=${seconds};h1=${hex(key, `${seconds}:${body}`)}`),
  },
  pagerduty: {
    send: inField('x-pagerduty-signature', (key, body) => `v1=${hex('old', body)},v1=${hex(key, body)}`),
  },
  sanity: {
    isTimed: true,
    send: inField(
      'sanity-webhook-signature',
      (key, body) => `t=${ms},v1=${mac('sha256', key, `${ms}.${body}`, 'base64url')}`,
    ),
  },
  sendgrid: {
    isTimed: true,
    publicKey: ecdsa.publicKey.export({ format: 'der', type: 'spki' }).toString('base64'),
    send: (body, key) => ({
      body,
      fields: {
        'x-twilio-email-event-webhook-signature': sign(
          'sha256',
          Buffer.from(`${seconds}${body}`),
          key === secret ? ecdsa.privateKey : otherEcdsa,
        ).toString('base64'),
        'x-twilio-email-event-webhook-timestamp': String(seconds),
      },
    }),
  },
  square: { send: inField('x-square-hmacsha256-signature', (key, body) => base64(key, `${url}${body}`)) },
  trello: { send: inField('x-trello-webhook', (key, body) => mac('sha1', key, `${body}${url}`, 'base64')) },
  twitch: {
    isTimed: true,
    send: (body, key) => ({
      body,
      fields: {
        'twitch-eventsub-message-id': 'm-1',
        'twitch-eventsub-message-timestamp': iso,
        'twitch-eventsub-message-signature': `sha256=${hex(key, `m-1${iso}${body}`)}`,
      },
    }),
  },
  typeform: { send: inField('typeform-signature', (key, body) => `sha256=${base64(key, body)}`) },
  workos: {
    isTimed: true,
    send: inField('workos-signature', (key, body) => `t=${ms}, v1=${hex(key, `${ms}.${body}`)}`),
  },
  x: { send: inField('x-twitter-webhooks-signature', (key, body) => `sha256=${base64(key, body)}`) },
  xero: { send: inField('x-xero-signature', base64) },
  zendesk: {
    isTimed: true,
    send: (body, key) => ({
      body,
      fields: {
        'x-zendesk-webhook-signature': base64(key, `2030-03-17T17:46:40Z${body}`),
        'x-zendesk-webhook-signature-timestamp': '2030-03-17T17:46:40Z',
      },
    }),
  },
  zoom: {
    isTimed: true,
    send: (body, key) => ({
      body,
      fields: {
        'x-zm-signature': `v0=${hex(key, `v0:${seconds}:${body}`)}`,
        'x-zm-request-timestamp': String(seconds),
      },
    }),
  },
};

function judge(name: keyof typeof vendors, { body, fields }: Sent, at = seconds) {
  const rule = presets[name].signature;
  const message = { body: Buffer.from(body), header: (field: string) => fields[field] };
  const { publicKey } = vendors[name];
  const algorithm = keyAlgorithmOf(rule);
  const byKeys =
    publicKey === undefined || algorithm === undefined
      ? undefined
      : verifyingBy([publicKeyOf(publicKey, algorithm)], undefined, algorithm);
  return verifyByRule(
    rule,
    { ...message, url, member: memberReader(message) },
    prepareKeys(rule, [secret], webPrimitives),
    { primitives: webPrimitives, nowMs: at * 1000, byKeys },
  );
}
const refused = (reason: string) => ({ ok: false, reason });

describe('the preset of a vendor', () => {
  for (const [name, vendor] of Object.entries(vendors) as [keyof typeof vendors, Vendor][]) {
    const { body = json, isTimed = false, signsNoContent = false } = vendor;
    const sent = vendor.send(body, secret);
    const rule = presets[name].signature;
    test(`believes what it signed, and nothing else: ${name}`, async () => {
      const verdict = await judge(name, sent);
      assert.ok(verdict.ok, JSON.stringify(verdict));
      assert.equal(verdict.timestamp, isTimed ? seconds : null);
      assert.deepEqual(await judge(name, vendor.send(body, 'another secret')), refused('no-match'));
      for (const field of Object.keys(sent.fields)) {
        const { [field]: _, ...others } = sent.fields;
        if (field !== 'content-type')
          assert.equal((await judge(name, { ...sent, fields: others })).ok, false, field);
      }
      if (signsNoContent) return;
      assert.deepEqual(await judge(name, { ...sent, body: `${sent.body} ` }), refused('no-match'));
    });
    if (isTimed && rule.kind !== 'token') {
      test(`lets its time lie as far off as its rule says, and not one second more: ${name}`, async () => {
        const { toleranceSeconds } = rule;
        assert.ok((await judge(name, sent, seconds + toleranceSeconds)).ok);
        assert.ok((await judge(name, sent, seconds - toleranceSeconds)).ok);
        assert.deepEqual(await judge(name, sent, seconds + toleranceSeconds + 1), refused('stale'));
        assert.deepEqual(await judge(name, sent, seconds - toleranceSeconds - 1), refused('ahead'));
      });
    }
  }
});
