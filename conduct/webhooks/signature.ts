/**
 * Signatures of webhooks in the forms that most senders have: Standard Webhooks 1.0, a time and a signature in one field, and a plain
 * signature of the content. All are HMAC-SHA256.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';

/** A scheme: how it signs, and the names of its fields. */
const rules = {
  standard: { kind: 'standard', prefix: 'webhook' },
  svix: { kind: 'standard', prefix: 'svix' },
  timestamped: { kind: 'timestamped', header: 'Service-Signature' },
  stripe: { kind: 'timestamped', header: 'Stripe-Signature' },
  plain: { kind: 'plain', service: 'X-Service' },
  github: { kind: 'plain', service: 'X-GitHub' },
} as const;

export type Scheme = keyof typeof rules;
export const schemes = Object.keys(rules) as readonly Scheme[];

export type Signed = {
  readonly scheme: Scheme;
  readonly secret: string;
  /** Of the message; schemes without ids leave it out. */
  readonly id: string;
  /** Seconds since 1970. */
  readonly seconds: number;
  readonly content: Uint8Array;
};

type Fields = Readonly<Record<string, string>>;

export function kindOf(scheme: Scheme): 'standard' | 'timestamped' | 'plain' {
  return rules[scheme].kind;
}

/** Fields of a delivery. @param before signatures that stand before the valid one, as while a secret is changed */
export function signatureFields(
  { scheme, secret, id, seconds, content }: Signed,
  before: readonly string[] = [],
): Fields {
  const rule = rules[scheme];
  if (rule.kind === 'plain')
    return {
      'X-Hub-Signature-256': `sha256=${hmac(secret, content, 'hex')}`,
      [`${rule.service}-Delivery`]: id,
      [`${rule.service}-Event`]: 'ping',
    };
  if (rule.kind === 'timestamped') {
    const valid = hmac(secret, Buffer.concat([Buffer.from(`${seconds}.`), content]), 'hex');
    return { [rule.header]: [`t=${seconds}`, ...[...before, valid].map((each) => `v1=${each}`)].join(',') };
  }
  const valid = hmac(keyOf(secret), Buffer.concat([Buffer.from(`${id}.${seconds}.`), content]), 'base64');
  return {
    [`${rule.prefix}-id`]: id,
    [`${rule.prefix}-timestamp`]: String(seconds),
    [`${rule.prefix}-signature`]: [...before, valid].map((each) => `v1,${each}`).join(' '),
  };
}

export type Verified = {
  readonly kind: 'standard' | 'timestamped' | 'plain';
  readonly isValid: boolean;
  readonly id: string | undefined;
  readonly seconds: number | undefined;
};

/** Verifies the fields of a delivery in whichever scheme they are. @returns undefined where they have no signature */
export function verifyDelivery(fields: Fields, content: Buffer, secret: string): Verified | undefined {
  const get = (pattern: RegExp): string | undefined =>
    Object.entries(fields).find(([name]) => pattern.test(name))?.[1];
  const id = get(/^(?:webhook|svix)-id$/i);
  const timestamp = get(/^(?:webhook|svix)-timestamp$/i);
  const standard = get(/^(?:webhook|svix)-signature$/i);
  if (id !== undefined && timestamp !== undefined && standard !== undefined) {
    const expected = hmac(
      keyOf(secret),
      Buffer.concat([Buffer.from(`${id}.${timestamp}.`), content]),
      'base64',
    );
    const isValid = standard
      .split(' ')
      .some((each) => each.startsWith('v1,') && isEqual(each.slice(3), expected));
    return { kind: 'standard', isValid, id, seconds: Number(timestamp) };
  }
  const own = get(/-id$|^x-.*delivery$/i);
  const combined = get(/signature$/i);
  const [, seconds] = /(?:^|,)t=(\d+)/.exec(combined ?? '') ?? [];
  if (combined !== undefined && seconds !== undefined) {
    const expected = hmac(secret, Buffer.concat([Buffer.from(`${seconds}.`), content]), 'hex');
    const isValid = combined.split(',').some((each) => isEqual(each.trim().replace(/^v1=/, ''), expected));
    return { kind: 'timestamped', isValid, id: own, seconds: Number(seconds) };
  }
  const plain = get(/signature(?:-256)?$/i);
  if (plain === undefined) return undefined;
  const isValid = isEqual(plain.replace(/^sha256=/, ''), hmac(secret, content, 'hex'));
  return { kind: 'plain', isValid, id: own, seconds: undefined };
}

/** A secret of Standard Webhooks is the base64 of its key, after `whsec_`. */
function keyOf(secret: string): Uint8Array {
  return Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
}

function hmac(key: string | Uint8Array, content: Uint8Array, encoding: 'hex' | 'base64'): string {
  return createHmac('sha256', key).update(content).digest(encoding);
}

function isEqual(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));
}
