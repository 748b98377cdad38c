/** A message of each vendor, signed by node:crypto as the vendor documents it, beside the code that is tested. */
import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import type { vendorPresets } from '../../../src/webhooks/vendor-presets.ts';

export const secret = 'a secret of the vendor 0123456789';
export const url = 'https://shop.example/webhooks/vendor?place=1';
const form = 'mandrill_events=%5B%7B%22event%22%3A%22send%22%7D%5D&a=1';

export type Sent = { readonly body: string; readonly fields: Readonly<Record<string, string>> };
export type Vendor = {
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

export type VendorName = keyof typeof vendorPresets;

type Vendors = Readonly<Partial<Record<VendorName, Vendor>>>;

/** Vendors that sign no time. */
const untimed = {
  bitbucket: { send: inField('x-hub-signature', (key, body) => `sha256=${hex(key, body)}`) },
  dropbox: { send: inField('x-dropbox-signature', hex) },
  intercom: { send: inField('x-hub-signature', (key, body) => `sha1=${mac('sha1', key, body, 'hex')}`) },
  line: { send: inField('x-line-signature', base64) },
  linear: { send: inField('linear-signature', hex) },
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
  pagerduty: {
    send: inField('x-pagerduty-signature', (key, body) => `v1=${hex('old', body)},v1=${hex(key, body)}`),
  },
  square: { send: inField('x-square-hmacsha256-signature', (key, body) => base64(key, `${url}${body}`)) },
  trello: { send: inField('x-trello-webhook', (key, body) => mac('sha1', key, `${body}${url}`, 'base64')) },
  typeform: { send: inField('typeform-signature', (key, body) => `sha256=${base64(key, body)}`) },
  x: { send: inField('x-twitter-webhooks-signature', (key, body) => `sha256=${base64(key, body)}`) },
  xero: { send: inField('x-xero-signature', base64) },
} as const satisfies Vendors;

/** @param seconds Unix time of the signatures */
export function vendorsAt(seconds: number): Readonly<Record<VendorName, Vendor>> {
  return { ...untimed, ...inOneField(seconds), ...inSeveralPlaces(seconds), ...byKeyPair(seconds) };
}

function inOneField(seconds: number) {
  const ms = seconds * 1000 + 123;
  return {
    calendly: {
      isTimed: true,
      send: inField(
        'calendly-webhook-signature',
        (key, body) => `t=${seconds},v1=${hex(key, `${seconds}.${body}`)}`,
      ),
    },
    paddle: {
      isTimed: true,
      send: inField('paddle-signature', (key, body) => `ts=${seconds};h1=${hex(key, `${seconds}:${body}`)}`),
    },
    sanity: {
      isTimed: true,
      send: inField(
        'sanity-webhook-signature',
        (key, body) => `t=${ms},v1=${mac('sha256', key, `${ms}.${body}`, 'base64url')}`,
      ),
    },
    workos: {
      isTimed: true,
      send: inField('workos-signature', (key, body) => `t=${ms}, v1=${hex(key, `${ms}.${body}`)}`),
    },
  } as const satisfies Vendors;
}

function inSeveralPlaces(seconds: number) {
  const ms = seconds * 1000 + 123;
  const iso = new Date(seconds * 1000).toISOString().replace('.000Z', '.123456789Z');
  const isoSeconds = iso.replace('.123456789', '');
  return {
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
    zendesk: {
      isTimed: true,
      send: (body, key) => ({
        body,
        fields: {
          'x-zendesk-webhook-signature': base64(key, `${isoSeconds}${body}`),
          'x-zendesk-webhook-signature-timestamp': isoSeconds,
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
  } as const satisfies Vendors;
}

function byKeyPair(seconds: number) {
  return {
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
  } as const satisfies Vendors;
}
