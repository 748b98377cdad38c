/** A message of each preset as its sender would send it, signed by node:crypto beside the code that is tested. */
import { createHash, createHmac } from 'node:crypto';
import type { PresetName } from '../../../src/webhooks/presets.ts';

export const nowSeconds = 1_900_000_000;
export const secret = 'whsec_b2xkIHNlY3JldCBvZiBhbiBlbmRwb2ludA==';
export const otherSecret = 'whsec_bmV3IHNlY3JldCBvZiBhbiBlbmRwb2ludA==';

export type Sent = {
  readonly body: Uint8Array;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly url: string;
};

export type ToSend = {
  readonly body: Uint8Array;
  /** One signature is made with each, where the sender can. */
  readonly secrets: readonly string[];
  readonly timestamp: number;
};

/** Which fields hold what, and what the sender can do. */
export type Conduct = {
  readonly signature: string;
  readonly timestamp?: string;
  readonly id?: string;
  /** Whether the time is signed, in whatever field. */
  readonly timed: boolean;
  /** Whether a field holds a list of signatures. */
  readonly lists: boolean;
  /** A signature of another version, as an entry that stands beside. */
  readonly otherVersion?: string;
  readonly send: (message: ToSend) => Sent;
};

const id = 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W';
const url = 'https://shop.example/webhooks/sender?place=1';

type Keyed = (secret: string) => string | Uint8Array;

const macs = (
  { secrets, body }: ToSend,
  before: string,
  encoding: 'hex' | 'base64',
  key: Keyed = (text) => text,
) => secrets.map((each) => createHmac('sha256', key(each)).update(before).update(body).digest(encoding));

const decoded: Keyed = (text) => Buffer.from(text.slice('whsec_'.length), 'base64');

function sent(message: ToSend, headers: Sent['headers']): Sent {
  return { body: message.body, headers: { 'content-type': 'application/json', ...headers }, url };
}

function timestamped(signature: string): Conduct {
  return {
    signature,
    timed: true,
    lists: true,
    otherVersion: `v0=${'0'.repeat(64)}`,
    send(message) {
      const list = macs(message, `${message.timestamp}.`, 'hex').map((mac) => `,v1=${mac}`);
      return sent(message, { [signature]: `t=${message.timestamp}${list.join('')}` });
    },
  };
}

function standard(prefix: string): Conduct {
  const [signature, timestamp, idField] = ['signature', 'timestamp', 'id'].map((name) => `${prefix}-${name}`);
  const names = { signature: String(signature), timestamp: String(timestamp), id: String(idField) };
  return {
    ...names,
    timed: true,
    lists: true,
    otherVersion: 'v2,AAAA',
    send(message) {
      const list = macs(message, `${id}.${message.timestamp}.`, 'base64', decoded).map((mac) => `v1,${mac}`);
      return sent(message, {
        [names.id]: id,
        [names.timestamp]: String(message.timestamp),
        [names.signature]: list.join(' '),
      });
    },
  };
}

function overBody(
  signature: string,
  prefix: string,
  encoding: 'hex' | 'base64',
  otherVersion?: string,
): Conduct {
  return {
    signature,
    timed: false,
    lists: false,
    ...(otherVersion === undefined ? {} : { otherVersion }),
    send: (message) => sent(message, { [signature]: `${prefix}${macs(message, '', encoding)[0]}` }),
  };
}

const slack: Conduct = {
  signature: 'x-slack-signature',
  timestamp: 'x-slack-request-timestamp',
  timed: true,
  lists: false,
  otherVersion: `v1=${'0'.repeat(64)}`,
  send: (message) =>
    sent(message, {
      'x-slack-signature': `v0=${macs(message, `v0:${message.timestamp}:`, 'hex')[0]}`,
      'x-slack-request-timestamp': String(message.timestamp),
    }),
};

/** With a body that is no form: the URL holds its digest. Forms are in twilio.test.ts. */
const twilio: Conduct = {
  signature: 'x-twilio-signature',
  timed: false,
  lists: false,
  send(message) {
    const signed = `${url}&bodySHA256=${createHash('sha256').update(message.body).digest('hex')}`;
    const mac = createHmac('sha1', message.secrets[0] ?? '')
      .update(signed)
      .digest('base64');
    return { ...sent(message, { 'x-twilio-signature': mac }), url: signed };
  },
};

const gitlab: Conduct = {
  signature: 'x-gitlab-token',
  timed: false,
  lists: false,
  send: (message) => sent(message, { 'x-gitlab-token': message.secrets[0] ?? '' }),
};

/** Of the presets in presets.ts; vendor-presets.test.ts has the others. */
export const conducts = {
  timestamped: timestamped('service-signature'),
  stripe: timestamped('stripe-signature'),
  standard: standard('webhook'),
  svix: standard('svix'),
  plain: { ...overBody('x-hub-signature-256', 'sha256=', 'hex', 'sha1=00'), lists: true },
  github: overBody('x-hub-signature-256', 'sha256=', 'hex', 'sha1=00'),
  hmac: overBody('x-signature', '', 'hex'),
  shopify: overBody('x-shopify-hmac-sha256', '', 'base64'),
  slack,
  twilio,
  gitlab,
} as const satisfies Partial<Readonly<Record<PresetName, Conduct>>>;

export type SignedPreset = keyof typeof conducts;
