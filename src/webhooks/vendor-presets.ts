/**
 * Senders of webhooks by the names of their vendors, as data (§4.14, §5.6): how each signs, where its messages have their id and type, and
 * the questions that it asks before it sends. presets.ts has the schemes that are Comity's own, and those of the first vendors.
 */
import type { SenderRule } from './sender-rule.ts';
import type { HmacRule, KeyPairRule } from './signature/signature-rule.ts';

/** One HMAC-SHA256 of the body, keyed with the text of the secret. A preset replaces what differs. */
const ofBody: Omit<HmacRule, 'header'> = {
  kind: 'hmac',
  hash: 'sha256',
  encoding: 'hex',
  prefix: '',
  separator: null,
  signed: '{body}',
  key: 'text',
  toleranceSeconds: 0,
};
/** The same of the body and a time. */
const timed = { ...ofBody, toleranceSeconds: 300 } as const;
const byKeyPair: Omit<KeyPairRule, 'kind' | 'header' | 'encoding' | 'signed' | 'timestamp'> = {
  prefix: '',
  separator: null,
  toleranceSeconds: 300,
};

/**
 * Asana: the first request brings the secret, which must be returned. Its messages are lists of events without an id; an empty list, its
 * heartbeat, is a repetition after the first.
 */
const asana: SenderRule = {
  signature: { ...ofBody, header: 'x-hook-signature' },
  dedupe: [],
  type: [[{ json: '/events/0/resource/resource_type' }, { json: '/events/0/action' }]],
  challenge: { kind: 'header-echo', method: 'POST', header: 'x-hook-secret', setsSecret: true },
  answers: { accepted: 200, refused: 401 },
  keep: [],
};

/** Bitbucket Cloud: the plain scheme in `X-Hub-Signature`. */
const bitbucket: SenderRule = {
  signature: { ...ofBody, header: 'x-hub-signature', prefix: 'sha256=' },
  dedupe: [{ header: 'x-request-uuid' }],
  type: [[{ header: 'x-event-key' }]],
  keep: ['x-event-key', 'x-request-uuid', 'x-hook-uuid', 'x-attempt-number'],
};

/** Calendly: as Stripe, in its own field. */
const calendly: SenderRule = {
  signature: {
    ...timed,
    ...{ header: 'calendly-webhook-signature', prefix: 'v1=', separator: ',' },
    ...{ signed: '{timestamp}.{body}', timestamp: { prefix: 't=' } },
  },
  dedupe: [],
  type: [[{ json: '/event' }]],
  keep: [],
};

/**
 * Discord: Ed25519 over the time and the body, by the public key of the application, in hexadecimal. It pings with a signed message of type
 * 1, and now and then with an invalid signature, which must get 401.
 */
const discord: SenderRule = {
  signature: {
    ...byKeyPair,
    ...{ kind: 'ed25519', header: 'x-signature-ed25519', encoding: 'hex' },
    ...{ signed: '{timestamp}{body}', timestamp: { header: 'x-signature-timestamp' } },
  },
  dedupe: [{ json: '/id' }],
  type: [[{ json: '/event/type' }], [{ json: '/data/name' }], [{ json: '/type' }]],
  challenge: { json: '/type', is: '1', answer: 'type', echo: '/type' },
  answers: { refused: 401 },
  keep: [],
};

/** Dropbox: one notification for many changes, without an id; it asks by GET with `challenge`. */
const dropbox: SenderRule = {
  signature: { ...ofBody, header: 'x-dropbox-signature' },
  dedupe: [],
  type: [],
  challenge: { kind: 'query-echo', query: 'challenge' },
  keep: [],
};

/**
 * Google Cloud Pub/Sub, push with authentication: an OpenID Connect token of the service account of the subscription. Anyone may push with
 * a token of their own service account, so the declaration must name the audience and the e-mail address. The body is not signed.
 */
const googlePubsub: SenderRule = {
  signature: {
    ...{ kind: 'jwt', header: 'authorization', prefix: 'Bearer ', algorithm: 'RS256' },
    issuer: ['https://accounts.google.com', 'accounts.google.com'],
    ...{ audience: '', email: '', signsContent: false, toleranceSeconds: 0 },
    keysUrl: 'https://www.googleapis.com/oauth2/v3/certs',
  },
  dedupe: [{ json: '/message/messageId' }],
  type: [[{ json: '/message/attributes/eventType' }], [{ json: '/subscription' }]],
  keep: [],
};

/** HubSpot, version 3: the method, the URL, the body and a time in milliseconds; several events in an array. */
const hubspot: SenderRule = {
  signature: {
    ...timed,
    ...{ header: 'x-hubspot-signature-v3', encoding: 'base64', signed: 'POST{url}{body}{timestamp}' },
    timestamp: { header: 'x-hubspot-request-timestamp', unit: 'ms' },
  },
  dedupe: [],
  type: [[{ json: '/0/subscriptionType' }]],
  keep: [],
};

/** Intercom: SHA-1, in `X-Hub-Signature`; it asks by HEAD. */
const intercom: SenderRule = {
  signature: { ...ofBody, header: 'x-hub-signature', hash: 'sha1', prefix: 'sha1=' },
  dedupe: [{ json: '/id' }],
  type: [[{ json: '/topic' }]],
  challenge: { kind: 'query-echo', method: 'HEAD' },
  keep: [],
};

/** LINE: base64 of the body, keyed with the secret of the channel; several events in an array. */
const line: SenderRule = {
  signature: { ...ofBody, header: 'x-line-signature', encoding: 'base64' },
  dedupe: [{ json: '/events/0/webhookEventId' }],
  type: [[{ json: '/events/0/type' }]],
  answers: { accepted: 200 },
  keep: [],
};

/** Linear. The time of its messages is in the body, and so is signed, but not checked here. */
const linear: SenderRule = {
  signature: { ...ofBody, header: 'linear-signature' },
  dedupe: [{ header: 'linear-delivery' }],
  type: [[{ json: '/type' }, { json: '/action' }]],
  answers: { accepted: 200 },
  keep: ['linear-delivery', 'linear-event'],
};

/**
 * Mailgun: an HMAC of a time and a token, all three in the body, which is itself not signed: who sees one message can post others for
 * five minutes. The token identifies a message.
 */
const mailgun: SenderRule = {
  signature: {
    ...timed,
    ...{ header: '/signature/signature', signed: '{timestamp}{id}', signsContent: false },
    ...{ timestamp: { header: '/signature/timestamp' }, id: '/signature/token' },
  },
  dedupe: [{ json: '/signature/token' }],
  type: [[{ json: '/event-data/event' }]],
  answers: { accepted: 200, refused: 406 },
  keep: [],
};

/** Mandrill: SHA-1 of the URL and the parameters of its form, as Twilio; it asks by HEAD. */
const mandrill: SenderRule = {
  signature: {
    ...ofBody,
    ...{ header: 'x-mandrill-signature', hash: 'sha1', encoding: 'base64', signed: '{url}{form}' },
  },
  dedupe: [],
  type: [[{ json: '/0/event' }]],
  challenge: { kind: 'query-echo', method: 'HEAD' },
  answers: { accepted: 200 },
  jsonInForm: 'mandrill_events',
  keep: [],
};

/** Meta (Facebook, Instagram, WhatsApp): the plain scheme; it asks by GET with `hub.challenge` and its verify token. */
const meta: SenderRule = {
  signature: { ...ofBody, header: 'x-hub-signature-256', prefix: 'sha256=' },
  dedupe: [],
  type: [[{ json: '/object' }, { json: '/entry/0/changes/0/field' }], [{ json: '/object' }]],
  challenge: { kind: 'query-echo', query: 'hub.challenge', token: 'hub.verify_token' },
  answers: { accepted: 200 },
  keep: [],
};

/** Microsoft Graph: the secret itself, as `clientState` of each notification; it asks by POST with `validationToken` in the URL. */
const microsoftGraph: SenderRule = {
  signature: { kind: 'token', header: '/value/0/clientState' },
  dedupe: [{ json: '/value/0/id' }],
  type: [[{ json: '/value/0/changeType' }]],
  challenge: { kind: 'query-echo', method: 'POST', query: 'validationToken' },
  keep: [],
};

/** Notion: the plain scheme in its own field. Its first message brings the secret, unsigned: read it at Notion, which shows it too. */
const notion: SenderRule = {
  signature: { ...ofBody, header: 'x-notion-signature', prefix: 'sha256=' },
  dedupe: [{ json: '/id' }],
  type: [[{ json: '/type' }]],
  keep: [],
};

/** Nylas, version 3; it asks by GET with `challenge`. */
const nylas: SenderRule = {
  signature: { ...ofBody, header: 'x-nylas-signature' },
  dedupe: [{ json: '/id' }],
  type: [[{ json: '/type' }]],
  challenge: { kind: 'query-echo', query: 'challenge' },
  answers: { accepted: 200 },
  keep: [],
};

/** Okta event hooks: a secret in a field, which the declaration names if it is not Authorization; it asks by GET with a field. */
const okta: SenderRule = {
  signature: { kind: 'token', header: 'authorization' },
  dedupe: [{ json: '/eventId' }],
  type: [[{ json: '/data/events/0/eventType' }], [{ json: '/eventType' }]],
  challenge: { kind: 'header-echo', header: 'x-okta-verification-challenge', answer: 'verification' },
  keep: [],
};

/** Paddle Billing: as Stripe, but for `ts=`, `h1=` and semicolons. */
const paddle: SenderRule = {
  signature: {
    ...timed,
    ...{ header: 'paddle-signature', prefix: 'h1=', separator: ';' },
    ...{ signed: '{timestamp}:{body}', timestamp: { prefix: 'ts=' } },
  },
  dedupe: [{ json: '/event_id' }],
  type: [[{ json: '/event_type' }]],
  keep: [],
};

/** PagerDuty, version 3: up to two signatures while a secret is replaced. */
const pagerduty: SenderRule = {
  signature: { ...ofBody, header: 'x-pagerduty-signature', prefix: 'v1=', separator: ',' },
  dedupe: [{ json: '/event/id' }],
  type: [[{ json: '/event/event_type' }]],
  keep: ['x-webhook-id'],
};

/**
 * PayPal: RSA by a certificate whose URL is in each message, over the id, the time, the id of the webhook, which the declaration must give, and
 * the CRC-32 of the body. A forger who has one signed message could make another body of that checksum.
 */
const paypal: SenderRule = {
  signature: {
    ...byKeyPair,
    ...{ kind: 'rsa', header: 'paypal-transmission-sig', encoding: 'base64', toleranceSeconds: 0 },
    ...{ signed: '{id}|{timestamp}|{receiver}|{crc32}', signsContent: false, receiver: '' },
    id: 'paypal-transmission-id',
    timestamp: { header: 'paypal-transmission-time', unit: 'rfc3339' },
    certificateUrl: 'paypal-cert-url',
    certificateHosts: ['api.paypal.com', 'api.sandbox.paypal.com'],
  },
  dedupe: [{ json: '/id' }],
  type: [[{ json: '/event_type' }]],
  answers: { accepted: 200 },
  keep: ['paypal-transmission-id', 'paypal-transmission-time'],
};

/**
 * Plaid: a JWT with the digest of the body. Its keys are got by a request with credentials (`/webhook_verification_key/get`), so the
 * declaration has them as JWKs. Bodies have no id, and equal ones are different messages: the token identifies a message.
 */
const plaid: SenderRule = {
  signature: {
    ...{ kind: 'jwt', header: 'plaid-verification', algorithm: 'ES256', toleranceSeconds: 300 },
    contentDigest: { claim: 'request_body_sha256', encoding: 'hex' },
  },
  dedupe: [{ header: 'plaid-verification' }],
  type: [[{ json: '/webhook_type' }, { json: '/webhook_code' }]],
  answers: { accepted: 200 },
  keep: [],
};

/** QStash of Upstash: a JWT by the current or the next signing key, with the URL and the digest of the body. */
const qstash: SenderRule = {
  signature: {
    ...{ kind: 'jwt', header: 'upstash-signature', algorithm: 'HS256', toleranceSeconds: 0 },
    ...{ issuer: 'Upstash', subject: '{url}' },
    contentDigest: { claim: 'body', encoding: 'base64url' },
  },
  dedupe: [{ header: 'upstash-message-id' }],
  type: [[{ json: '/type' }]],
  keep: ['upstash-message-id', 'upstash-retried', 'upstash-schedule-id'],
};

/** Sanity: a time in milliseconds, and base64url. */
const sanity: SenderRule = {
  signature: {
    ...timed,
    ...{ header: 'sanity-webhook-signature', prefix: 'v1=', separator: ',', encoding: 'base64url' },
    ...{ signed: '{timestamp}.{body}', timestamp: { prefix: 't=', unit: 'ms' } },
  },
  dedupe: [{ header: 'idempotency-key' }],
  type: [[{ header: 'sanity-operation' }]],
  keep: [
    'sanity-transaction-id',
    'sanity-document-id',
    'sanity-dataset',
    'sanity-project-id',
    'idempotency-key',
  ],
};

/** SendGrid: ECDSA over the time and the body, by the public key that its settings show; many events in an array. */
const sendgrid: SenderRule = {
  signature: {
    ...byKeyPair,
    ...{ kind: 'ecdsa', header: 'x-twilio-email-event-webhook-signature', encoding: 'base64' },
    ...{ signed: '{timestamp}{body}', timestamp: { header: 'x-twilio-email-event-webhook-timestamp' } },
  },
  dedupe: [],
  type: [[{ json: '/0/event' }]],
  keep: [],
};

/**
 * Amazon SNS with `SignatureVersion` 2 (SHA-256): RSA by a certificate whose URL is in each message, over its members. Any account of AWS can
 * post messages that are signed so: the declaration must give the ARN of the topic, which is signed too.
 */
const sns: SenderRule = {
  signature: {
    ...byKeyPair,
    ...{ kind: 'rsa', header: '/Signature', encoding: 'base64', toleranceSeconds: 0 },
    signed: '{lines}TopicArn\n{receiver}\nType\n{/Type}\n',
    lines: ['Message', 'MessageId', 'Subject', 'SubscribeURL', 'Timestamp', 'Token'],
    receiver: '',
    certificateUrl: '/SigningCertURL',
    certificateHosts: ['sns.*.amazonaws.com', 'sns.*.amazonaws.com.cn'],
  },
  dedupe: [{ json: '/MessageId' }],
  type: [[{ json: '/Type' }]],
  keep: ['x-amz-sns-topic-arn'],
};

/** Square: the URL as it is registered, and the body. */
const square: SenderRule = {
  signature: {
    ...ofBody,
    ...{ header: 'x-square-hmacsha256-signature', encoding: 'base64', signed: '{url}{body}' },
  },
  dedupe: [{ json: '/event_id' }],
  type: [[{ json: '/type' }]],
  keep: ['square-retry-number', 'square-retry-reason', 'square-environment'],
};

/** Trello: SHA-1 of the body and the URL as it is registered; it asks by HEAD. */
const trello: SenderRule = {
  signature: {
    ...ofBody,
    ...{ header: 'x-trello-webhook', hash: 'sha1', encoding: 'base64', signed: '{body}{url}' },
  },
  dedupe: [{ json: '/action/id' }],
  type: [[{ json: '/action/type' }]],
  challenge: { kind: 'query-echo', method: 'HEAD' },
  answers: { accepted: 200 },
  keep: [],
};

/** Twitch EventSub: id, time and body without anything between them; it asks by a signed message, and wants its value as text. */
const twitch: SenderRule = {
  signature: {
    ...timed,
    ...{ header: 'twitch-eventsub-message-signature', prefix: 'sha256=', signed: '{id}{timestamp}{body}' },
    ...{ id: 'twitch-eventsub-message-id', toleranceSeconds: 600 },
    timestamp: { header: 'twitch-eventsub-message-timestamp', unit: 'rfc3339' },
  },
  dedupe: [{ header: 'twitch-eventsub-message-id' }],
  type: [[{ json: '/subscription/type' }]],
  challenge: {
    json: '/subscription/status',
    is: 'webhook_callback_verification_pending',
    echo: '/challenge',
  },
  keep: [
    'twitch-eventsub-message-id',
    'twitch-eventsub-message-type',
    'twitch-eventsub-message-retry',
    'twitch-eventsub-subscription-version',
  ],
};

/** Typeform: base64 behind `sha256=`. */
const typeform: SenderRule = {
  signature: { ...ofBody, header: 'typeform-signature', prefix: 'sha256=', encoding: 'base64' },
  dedupe: [{ json: '/event_id' }],
  type: [[{ json: '/event_type' }]],
  keep: [],
};

/** WorkOS: a time in milliseconds, and a space after the comma. */
const workos: SenderRule = {
  signature: {
    ...timed,
    ...{ header: 'workos-signature', prefix: 'v1=', separator: ',' },
    ...{ signed: '{timestamp}.{body}', timestamp: { prefix: 't=', unit: 'ms' } },
  },
  dedupe: [{ json: '/id' }],
  type: [[{ json: '/event' }]],
  keep: [],
};

/** X (Twitter) Account Activity: it asks by GET with `crc_token`, once an hour. */
const x: SenderRule = {
  signature: { ...ofBody, header: 'x-twitter-webhooks-signature', prefix: 'sha256=', encoding: 'base64' },
  dedupe: [],
  type: [],
  challenge: {
    ...{ kind: 'hmac', query: 'crc_token' },
    proof: { name: 'response_token', encoding: 'base64', prefix: 'sha256=' },
  },
  answers: { accepted: 200 },
  keep: [],
};

/** Xero: its intent to receive is a message, of which those with a wrong signature must get 401. */
const xero: SenderRule = {
  signature: { ...ofBody, header: 'x-xero-signature', encoding: 'base64' },
  dedupe: [],
  type: [[{ json: '/events/0/eventCategory' }, { json: '/events/0/eventType' }]],
  answers: { accepted: 200, refused: 401 },
  keep: [],
};

/** Zendesk: the time, in RFC 3339, and the body. */
const zendesk: SenderRule = {
  signature: {
    ...timed,
    ...{ header: 'x-zendesk-webhook-signature', encoding: 'base64', signed: '{timestamp}{body}' },
    timestamp: { header: 'x-zendesk-webhook-signature-timestamp', unit: 'rfc3339' },
  },
  dedupe: [{ header: 'x-zendesk-webhook-invocation-id' }],
  type: [[{ json: '/type' }]],
  keep: ['x-zendesk-webhook-id', 'x-zendesk-webhook-invocation-id', 'x-zendesk-account-id'],
};

/** Zoom: it asks by a signed message, and wants its text back with the HMAC of it. */
const zoom: SenderRule = {
  signature: {
    ...timed,
    ...{ header: 'x-zm-signature', prefix: 'v0=', signed: 'v0:{timestamp}:{body}' },
    timestamp: { header: 'x-zm-request-timestamp' },
  },
  dedupe: [],
  type: [[{ json: '/event' }]],
  challenge: {
    ...{ json: '/event', is: 'endpoint.url_validation', answer: 'plainToken', echo: '/payload/plainToken' },
    proof: { name: 'encryptedToken', encoding: 'hex', prefix: '' },
  },
  keep: [],
};

export const vendorPresets = {
  asana,
  bitbucket,
  calendly,
  discord,
  dropbox,
  'google-pubsub': googlePubsub,
  hubspot,
  intercom,
  line,
  linear,
  mailgun,
  mandrill,
  meta,
  'microsoft-graph': microsoftGraph,
  notion,
  nylas,
  okta,
  paddle,
  pagerduty,
  paypal,
  plaid,
  qstash,
  sanity,
  sendgrid,
  sns,
  square,
  trello,
  twitch,
  typeform,
  workos,
  x,
  xero,
  zendesk,
  zoom,
} as const satisfies Readonly<Record<string, SenderRule>>;
