/**
 * Known senders of webhooks, as data (§4.14, §5.6, §6): how each signs, and where its messages have their id and type.
 * Another sender is another value, not another program. Comity itself sends by the scheme of an endpoint (sent-headers.ts).
 */
import type { SenderRule } from './sender-rule.ts';
import { plainRule, standardRule, timestampedRule } from './signature/schemes.ts';
import { vendorPresets } from './vendor-presets.ts';

/**
 * The timestamped scheme of §5.6, as a program such as Comity sends it. Stripe's is the same with another field name.
 */
const timestamped: SenderRule = {
  signature: timestampedRule,
  dedupe: [{ json: '/id' }],
  type: [[{ json: '/type' }]],
  keep: ['user-agent'],
};

/**
 * The plain scheme of §5.6. The id of a delivery is the same when it is sent again (§6.3), but it is not signed: it
 * identifies the sender's repetitions, but does not stop an attacker from sending a recorded message with another id.
 */
const plain: SenderRule = {
  signature: plainRule,
  dedupe: [{ header: 'x-service-delivery' }],
  type: [[{ header: 'x-service-event' }], [{ json: '/type' }]],
  keep: ['x-service-event', 'x-service-delivery', 'user-agent'],
};

/** Standard Webhooks 1.0 (§5.6), which dozens of services use; GitLab does if a signing token is set. */
const standard: SenderRule = {
  signature: standardRule,
  dedupe: [{ header: 'webhook-id' }],
  type: [[{ json: '/type' }]],
  keep: ['webhook-id', 'webhook-timestamp', 'user-agent'],
};

/**
 * The minimal scheme: an HMAC-SHA256 of the body in hexadecimal. The declaration overrides what differs: the field, the
 * hash, the encoding, a prefix.
 *
 * The bodies of such a sender are unknown. A member `id` may be that of an order that changes ten times, and nine
 * changes would be dropped as repetitions: unless the declaration gives the place of a message's id, only the same body
 * is the same message.
 */
const hmac: SenderRule = {
  signature: {
    kind: 'hmac',
    header: 'x-signature',
    hash: 'sha256',
    encoding: 'hex',
    prefix: '',
    separator: null,
    signed: '{body}',
    key: 'text',
    toleranceSeconds: 0,
  },
  dedupe: [],
  type: [[{ json: '/type' }]],
  keep: ['user-agent'],
};

/**
 * Stripe: the timestamped scheme in `Stripe-Signature`. The whole `whsec_...` is the key. Thin events have `id` and
 * `type` too.
 */
const stripe: SenderRule = {
  signature: { ...timestampedRule, header: 'stripe-signature' },
  dedupe: [{ json: '/id' }],
  type: [[{ json: '/type' }]],
  keep: ['user-agent'],
};

/**
 * GitHub: the plain scheme, with one signature. `X-Hub-Signature`, which comes with it, is the same with SHA-1, and
 * ignored.
 *
 * The id of a delivery is the same when a person redelivers it: to process it again, replay it from the inbox.
 */
const github: SenderRule = {
  signature: { ...plainRule, separator: null },
  dedupe: [{ header: 'x-github-delivery' }],
  // Its default content type is a form.
  jsonInForm: 'payload',
  type: [[{ header: 'x-github-event' }, { json: '/action' }], [{ header: 'x-github-event' }]],
  keep: [
    'x-github-event',
    'x-github-delivery',
    'x-github-hook-id',
    'x-github-hook-installation-target-id',
    'x-github-hook-installation-target-type',
    'user-agent',
  ],
};

/**
 * Svix, and services that send by it without their own field names: Standard Webhooks in fields that begin with
 * `svix-`. Its newer customers send `webhook-id` and so on: declare those as `standard`.
 */
const svix: SenderRule = {
  signature: {
    ...standardRule,
    header: 'svix-signature',
    timestamp: { header: 'svix-timestamp' },
    id: 'svix-id',
  },
  dedupe: [{ header: 'svix-id' }],
  type: [[{ json: '/type' }]],
  keep: ['svix-id', 'svix-timestamp', 'user-agent'],
};

/**
 * Slack: `v0=` and the HMAC of `v0:<timestamp>:<body>`. Events are JSON, with an id that is the same when Slack
 * retries; slash commands and interactions are forms, both with a `trigger_id`, which interactions have in the JSON of
 * `payload`. Slack checks a URL once, by a signed challenge.
 */
const slack: SenderRule = {
  signature: {
    kind: 'hmac',
    header: 'x-slack-signature',
    hash: 'sha256',
    encoding: 'hex',
    prefix: 'v0=',
    separator: null,
    signed: 'v0:{timestamp}:{body}',
    timestamp: { header: 'x-slack-request-timestamp' },
    key: 'text',
    toleranceSeconds: 300,
  },
  dedupe: [{ json: '/event_id' }, { json: '/trigger_id' }, { form: 'trigger_id' }],
  type: [[{ json: '/event/type' }], [{ json: '/type' }], [{ form: 'command' }]],
  challenge: { json: '/type', is: 'url_verification', answer: 'challenge', echo: '/challenge' },
  jsonInForm: 'payload',
  keep: ['x-slack-request-timestamp', 'x-slack-retry-num', 'x-slack-retry-reason', 'user-agent'],
};

/**
 * Shopify: the HMAC of the body in base64, keyed with the client secret of the app.
 *
 * `X-Shopify-Webhook-Id` identifies deliveries. `X-Shopify-Event-Id` identifies the cause, which is sent once for each
 * of its topics (`orders/create` and `orders/paid`): with it as the key, only the first would be accepted. It is used
 * if the other is missing, and it is stored.
 *
 * Newer subscriptions have the same fields without `X-`, which a declaration can set.
 */
const shopify: SenderRule = {
  signature: {
    kind: 'hmac',
    header: 'x-shopify-hmac-sha256',
    hash: 'sha256',
    encoding: 'base64',
    prefix: '',
    separator: null,
    signed: '{body}',
    key: 'text',
    toleranceSeconds: 0,
  },
  dedupe: [{ header: 'x-shopify-webhook-id' }, { header: 'x-shopify-event-id' }],
  type: [[{ header: 'x-shopify-topic' }]],
  keep: [
    'x-shopify-topic',
    'x-shopify-webhook-id',
    'x-shopify-event-id',
    'x-shopify-shop-domain',
    'x-shopify-api-version',
    'x-shopify-triggered-at',
    'x-shopify-name',
  ],
};

/**
 * Twilio: the HMAC-SHA1 of the URL that it called, followed by the parameters of a form body, keyed with the auth
 * token. The SHA-256 of a body that is not a form is in the parameter `bodySHA256` of the URL. There is no separator
 * between names and values, so an attacker with a signed message can move the border between a name and its value:
 * Twilio's scheme allows it.
 *
 * The URL is the one configured at Twilio, with its query: a proxy that changes scheme or path changes the signed
 * content.
 */
const twilio: SenderRule = {
  signature: {
    kind: 'hmac',
    header: 'x-twilio-signature',
    hash: 'sha1',
    encoding: 'base64',
    prefix: '',
    separator: null,
    signed: '{url}{form}',
    key: 'text',
    toleranceSeconds: 0,
    bodyDigestParameter: 'bodySHA256',
  },
  // The same when Twilio retries. A MessageSid identifies a message, each status of which is sent.
  dedupe: [{ header: 'i-twilio-idempotency-token' }, { json: '/0/id' }],
  type: [
    [{ form: 'EventType' }],
    [{ form: 'MessageStatus' }],
    [{ form: 'CallStatus' }],
    // Event Streams send arrays of CloudEvents.
    [{ json: '/0/type' }],
  ],
  keep: ['i-twilio-idempotency-token', 'user-agent'],
};

/**
 * GitLab with a secret token, which it sends in clear: it authenticates the sender but not the content. If a signing
 * token can be set, GitLab also signs by Standard Webhooks: declare it as `standard`, with `X-Gitlab-Event` as its
 * type.
 *
 * `Idempotency-Key` is the same when GitLab retries. `X-Gitlab-Event-UUID` is not used for that: events that a webhook
 * caused have the one of their cause, and would be dropped as repetitions of it. Before GitLab 17.4 both are missing,
 * and the digest of the body is used.
 */
const gitlab: SenderRule = {
  signature: { kind: 'token', header: 'x-gitlab-token' },
  dedupe: [{ header: 'idempotency-key' }],
  type: [[{ header: 'x-gitlab-event' }], [{ json: '/object_kind' }]],
  keep: [
    'x-gitlab-event',
    'x-gitlab-event-uuid',
    'x-gitlab-webhook-uuid',
    'x-gitlab-instance',
    'idempotency-key',
    'user-agent',
  ],
};

export const presetNames = [
  'timestamped',
  'plain',
  'standard',
  'hmac',
  'stripe',
  'github',
  'svix',
  'slack',
  'shopify',
  'twilio',
  'gitlab',
  ...(Object.keys(vendorPresets) as (keyof typeof vendorPresets)[]),
] as const;
export type PresetName = (typeof presetNames)[number];

export const presets: Readonly<Record<PresetName, SenderRule>> = {
  timestamped,
  plain,
  standard,
  hmac,
  stripe,
  github,
  svix,
  slack,
  shopify,
  twilio,
  gitlab,
  ...vendorPresets,
};
