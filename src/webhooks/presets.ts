/**
 * Known senders of webhooks, as data (§4.14, §5.6, §6): how each signs, and where the id and the type of its messages stand. A sender of another
 * kind is another value, not another program.
 */

import { plainRule } from './signature/plain.ts';
import type { SignatureRule } from './signature/signature-rule.ts';
import { standardRule } from './signature/standard.ts';
import { timestampedRule } from './signature/timestamped.ts';

export type SenderRule = {
  readonly signature: SignatureRule;
  /**
   * Where the id of a message stands, by which a repetition is known (§6.3): the first of these places that holds a text. Where none does,
   * the digest of the body stands for it, so that the same octets are one message.
   */
  readonly dedupe: readonly Place[];
  /** Where its type stands: the first list of which each place holds a text; these texts with full stops between. */
  readonly type: readonly (readonly Place[])[];
  /** How the sender finds out whether somebody listens; most do not ask. */
  readonly challenge?: Challenge | undefined;
  /** Header fields that are kept with the message besides Content-Type and Content-Encoding, by name in lower case. */
  readonly keep: readonly string[];
};

/** Where a text stands in a message. */
export type Place =
  /** Name of a header field in lower case. */
  | { readonly header: string }
  /** JSON Pointer (RFC 6901) into a JSON body. */
  | { readonly json: string }
  /** Name in a body of application/x-www-form-urlencoded. */
  | { readonly form: string };

/** A signed message that asks for one of its own members back instead of telling anything. It is answered 200, and not kept. */
export type Challenge = {
  /** It is one where this member of the JSON body ... */
  readonly json: string;
  /** ... is this text. */
  readonly is: string;
  /** The answer is a JSON object with one member: this name, ... */
  readonly answer: string;
  /** ... and the member that stands here. */
  readonly echo: string;
};

/** The timestamped scheme of §5.6, as a program such as Comity sends it. Stripe's is the same under another name. */
const timestamped: SenderRule = {
  signature: timestampedRule,
  dedupe: [{ json: '/id' }],
  type: [[{ json: '/type' }]],
  keep: ['user-agent'],
};

/**
 * The plain scheme of §5.6. The id of a delivery is the same when it is sent again (§6.3), but it is not signed: it tells repetitions of
 * the sender, and keeps nobody who got hold of a message from sending it under another id.
 */
const plain: SenderRule = {
  signature: plainRule,
  dedupe: [{ header: 'x-service-delivery' }],
  type: [[{ header: 'x-service-event' }], [{ json: '/type' }]],
  keep: ['x-service-event', 'x-service-delivery', 'user-agent'],
};

/** Standard Webhooks 1.0 (§5.6), which dozens of services send by, GitLab among them where a signing token is set. */
const standard: SenderRule = {
  signature: standardRule,
  dedupe: [{ header: 'webhook-id' }],
  type: [[{ json: '/type' }]],
  keep: ['webhook-id', 'webhook-timestamp', 'user-agent'],
};

/**
 * The least that a sender can do: an HMAC-SHA256 of the body in hexadecimal. What differs is replaced in the declaration: the field, the
 * hash, the encoding, a prefix.
 *
 * Nothing is known of such a sender's bodies. A member `id` may be that of an order that changes ten times, and nine changes would be
 * taken for repetitions: unless the declaration says where the id of a message stands, only the same body is the same message.
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

/** Stripe: the timestamped scheme in `Stripe-Signature`. The whole `whsec_...` is the key. Thin events have `id` and `type` as well. */
const stripe: SenderRule = {
  signature: { ...timestampedRule, header: 'stripe-signature' },
  dedupe: [{ json: '/id' }],
  type: [[{ json: '/type' }]],
  keep: ['user-agent'],
};

/**
 * GitHub: the plain scheme, with one signature. `X-Hub-Signature`, which comes beside it, is the same with SHA-1, and not looked at.
 * The id of a delivery is the same when somebody has it delivered again: to process such a one, replay it from the inbox.
 */
const github: SenderRule = {
  signature: { ...plainRule, separator: null },
  dedupe: [{ header: 'x-github-delivery' }],
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
 * Svix, and whoever sends by it without a name of their own: Standard Webhooks in fields that begin with `svix-`. Its newer customers send
 * `webhook-id` and so on: those are `standard`.
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
 * Slack: `v0=` and the HMAC of `v0:<timestamp>:<body>`. Events are JSON, with an id that is the same when Slack tries again; slash commands
 * and interactions are forms, of which commands have a `trigger_id` of their own. A URL is asked once, by a signed message, for its challenge.
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
  dedupe: [{ json: '/event_id' }, { form: 'trigger_id' }],
  type: [[{ json: '/event/type' }], [{ json: '/type' }], [{ form: 'command' }]],
  challenge: { json: '/type', is: 'url_verification', answer: 'challenge', echo: '/challenge' },
  keep: ['x-slack-request-timestamp', 'x-slack-retry-num', 'x-slack-retry-reason', 'user-agent'],
};

/**
 * Shopify: the HMAC of the body in base64, keyed with the client secret of the app.
 *
 * `X-Shopify-Webhook-Id` tells deliveries. `X-Shopify-Event-Id` is that of what happened, which is told once for each topic that it belongs
 * to (`orders/create` and `orders/paid`): by it, only the first of them would be taken. It stands in where the other is missing, and is kept.
 * Subscriptions of the newer kind have the same fields without `X-`, which a declaration can say.
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
 * Twilio: the HMAC-SHA1 of the URL that it called, followed by the parameters of a form body, keyed with the auth token. A body that is no
 * form is covered by its SHA-256 in the parameter `bodySHA256` of the URL. Nothing stands between names and values, so that whoever holds a
 * signed message may move the border between a name and its value: Twilio's scheme allows it.
 *
 * The URL is the one that is configured at Twilio, with its query: a proxy that changes scheme or path changes what was signed.
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
  // The same when Twilio tries again. A MessageSid is that of a message, of which each status is told.
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
 * GitLab with a secret token, which it sends as it is: it proves who sent a message, and nothing of what is in it. Where a signing token can
 * be set, GitLab signs by Standard Webhooks besides: declare it as `standard`, with `X-Gitlab-Event` as its type.
 *
 * `Idempotency-Key` is the same when GitLab tries again. `X-Gitlab-Event-UUID` is not looked at for that: events that a webhook caused have
 * the one of their cause, and would be taken for repetitions of it. Before GitLab 17.4 there is neither, and the body tells.
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
};
