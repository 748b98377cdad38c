/** A message of each vendor, signed by node:crypto as the vendor documents it, beside the code that is tested. */
import { createHash, createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { PublicJwk } from '../../../src/webhooks/signature/key-pair.ts';
import type { JwtRule } from '../../../src/webhooks/signature/signature-rule.ts';
import type { vendorPresets } from '../../../src/webhooks/vendor-presets.ts';

export const secret = 'a secret of the vendor 0123456789';
export const url = 'https://shop.example/webhooks/vendor?place=1';
const form = 'mandrill_events=%5B%7B%22event%22%3A%22send%22%7D%5D&a=1';

export type Sent = { readonly body: string; readonly fields: Readonly<Record<string, string>> };
export type Vendor = {
  readonly send: (body: string, key: string) => Sent;
  readonly body?: string;
  /** The public key, in the form in which the vendor shows it. */
  readonly publicKey?: string | PublicJwk;
  /** What the declaration names beside the preset. */
  readonly rule?: Partial<JwtRule> | { readonly receiver: string };
  /** Seconds at which it was signed, whose age is not bounded. */
  readonly issued?: number;
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
  asana: { send: inField('x-hook-signature', hex) },
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
    ...jwts(seconds),
    ...certified(seconds),
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

/** A compact JWS (RFC 7515 §7.1) whose signature `signs` makes. */
export function jwtOf(header: object, claims: object, signs: (content: string) => string): string {
  const content = [header, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  return `${content}.${signs(content)}`;
}

const digestOf = (body: string, encoding: 'hex' | 'base64url') =>
  createHash('sha256').update(body).digest(encoding);
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const otherRsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
const jwkOf = (key: KeyObject, members: object) =>
  ({ ...key.export({ format: 'jwk' }), use: 'sig', ...members }) as PublicJwk;
const es256 = (key: KeyObject) => (content: string) =>
  sign('sha256', Buffer.from(content), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url');
const rs256 = (key: KeyObject) => (content: string) =>
  sign('sha256', Buffer.from(content), key).toString('base64url');

/** What the declaration names for Google: the audience and the service account. */
export const pushed = { audience: url, email: 'push@shop.iam.gserviceaccount.com' };

function jwts(seconds: number) {
  return {
    'google-pubsub': {
      signsNoContent: true,
      rule: pushed,
      issued: seconds,
      publicKey: jwkOf(rsa.publicKey, { kid: 'g1', alg: 'RS256' }),
      send: (body, key) => {
        const claims = {
          ...{ iss: 'https://accounts.google.com', aud: url, email: pushed.email, email_verified: true },
          ...{ sub: '1130', azp: '1130', iat: seconds, exp: seconds + 3600 },
        };
        const signs = rs256(key === secret ? rsa.privateKey : otherRsa);
        return {
          body,
          fields: {
            authorization: `Bearer ${jwtOf({ alg: 'RS256', kid: 'g1', typ: 'JWT' }, claims, signs)}`,
          },
        };
      },
    },
    plaid: {
      isTimed: true,
      publicKey: jwkOf(ecdsa.publicKey, { kid: 'p1', alg: 'ES256' }),
      send: (body, key) => {
        const claims = { iat: seconds, request_body_sha256: digestOf(body, 'hex') };
        const signs = es256(key === secret ? ecdsa.privateKey : otherEcdsa);
        return {
          body,
          fields: { 'plaid-verification': jwtOf({ alg: 'ES256', kid: 'p1', typ: 'JWT' }, claims, signs) },
        };
      },
    },
    qstash: {
      issued: seconds,
      send: (body, key) => {
        const claims = {
          ...{ iss: 'Upstash', sub: url, exp: seconds + 300, nbf: seconds, iat: seconds, jti: 'jwt_1' },
          body: digestOf(body, 'base64url'),
        };
        const signs = (content: string) => mac('sha256', key, content, 'base64url');
        return { body, fields: { 'upstash-signature': jwtOf({ alg: 'HS256', typ: 'JWT' }, claims, signs) } };
      },
    },
  } as const satisfies Vendors;
}

/** What the declaration gives for PayPal and SNS: the names that they have for the receiver. */
export const receivers = {
  paypal: '8PT597110X687430LKGECATA',
  sns: 'arn:aws:sns:eu-central-1:123456789012:orders',
};

/** What SNS signs of a message: its members in this order, each that it has. */
export function snsContent(message: Readonly<Record<string, string>>): string {
  const signed = [
    'Message',
    'MessageId',
    'Subject',
    'SubscribeURL',
    'Timestamp',
    'Token',
    'TopicArn',
    'Type',
  ];
  return signed
    .flatMap((name) => (message[name] === undefined ? [] : [`${name}\n${message[name]}\n`]))
    .join('');
}

function certified(seconds: number) {
  const iso = new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');
  const signs = (content: string, key: string) =>
    sign('sha256', Buffer.from(content), key === secret ? rsa.privateKey : otherRsa).toString('base64');
  const publicKey = jwkOf(rsa.publicKey, {});
  return {
    paypal: {
      ...{ issued: seconds, signsNoContent: true, rule: { receiver: receivers.paypal }, publicKey },
      send: (body, key) => ({
        body,
        fields: {
          'paypal-transmission-id': 't-1',
          'paypal-transmission-time': iso,
          'paypal-transmission-sig': signs(`t-1|${iso}|${receivers.paypal}|${crc32(body)}`, key),
        },
      }),
    },
    sns: {
      ...{ signsNoContent: true, rule: { receiver: receivers.sns }, publicKey },
      send: (body, key) => {
        const message = {
          ...{ Type: 'Notification', MessageId: 'm-1', TopicArn: receivers.sns },
          ...{ Message: body, Timestamp: iso, SignatureVersion: '2' },
          SigningCertURL: 'https://sns.eu-central-1.amazonaws.com/1.pem',
        };
        return {
          body: JSON.stringify({ ...message, Signature: signs(snsContent(message), key) }),
          fields: {},
        };
      },
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
