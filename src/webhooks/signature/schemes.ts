/** The three schemes of §5.6 that Comity signs by: standard, timestamped and plain. */
import { type Ed25519PrivateJwk, type Ed25519PublicJwk, seedOf, signEd25519 } from './ed25519.ts';
import { publicKeyOf } from './key-pair.ts';
import { hmacWithEach, keysOf, prepareKeys, standardKey, textKey, webPrimitives } from './mac-keys.ts';
import { type Body, encodeBase64, encodeHex, octetsOf, withPrefix } from './octets.ts';
import { type FieldValue, type HmacRule, type Refused, refused } from './signature-rule.ts';
import { isSignedId, type TimeWindow, timestampOf, toleranceSecondsDefault } from './signed-content.ts';
import { type KeyDiscovery, verifyingBy } from './trusted-keys.ts';
import { verifyByRule } from './verify-by-rule.ts';

export const standardRule: HmacRule = {
  kind: 'hmac',
  header: 'webhook-signature',
  hash: 'sha256',
  encoding: 'base64',
  prefix: 'v1,',
  separator: ' ',
  signed: '{id}.{timestamp}.{body}',
  timestamp: { header: 'webhook-timestamp' },
  id: 'webhook-id',
  key: 'base64',
  toleranceSeconds: toleranceSecondsDefault,
  asymmetricPrefix: 'v1a,',
};

/** Returns the signed text before the body. */
export function standardPrefix(id: string, timestamp: number | string): string {
  return `${id}.${timestamp}.`;
}

/** Returns one entry of the list. @param signature in base64 */
export function standardSignature(version: StandardVersion, signature: string): string {
  return `${version},${signature}`;
}

export type StandardVersion = 'v1' | 'v1a';

export type SignStandard = {
  /** The same for each attempt at a message. Visible ASCII without a full stop. */
  readonly id: string;
  readonly body: Body;
  /** Each makes one signature `v1`: `whsec_` and base64. */
  readonly secrets?: readonly string[] | undefined;
  /** Each makes one signature `v1a`: `whsk_` and base64, or a JWK. */
  readonly privateKeys?: readonly (string | Ed25519PrivateJwk)[] | undefined;
  /** Unix seconds; default: now. */
  readonly timestamp?: number | undefined;
};

/** The fields of a message. */
export type StandardHeaders = {
  readonly 'webhook-id': string;
  readonly 'webhook-timestamp': string;
  readonly 'webhook-signature': string;
};

/** @throws TypeError for an invalid id, secret, key, body or timestamp, and without any secret or key */
export async function signStandard(options: SignStandard): Promise<StandardHeaders> {
  const { id, body, secrets, privateKeys = [], timestamp } = options;
  if (!isSignedId(id, '.'))
    throw new TypeError('the id of a message must be visible ASCII without a full stop');
  const seconds = timestampOf(timestamp);
  const seeds = privateKeys.map(seedOf);
  const keys = secrets === undefined && seeds.length > 0 ? [] : keysOf(secrets ?? [], standardKey);
  const content = withPrefix(standardPrefix(id, seconds), body);
  const symmetric = await hmacWithEach(keys, content);
  const asymmetric = await Promise.all(seeds.map((seed) => signEd25519(seed, content)));
  const list = [
    ...symmetric.map((signature) => standardSignature('v1', encodeBase64(signature))),
    ...asymmetric.map((signature) => standardSignature('v1a', encodeBase64(signature))),
  ];
  return { 'webhook-id': id, 'webhook-timestamp': String(seconds), 'webhook-signature': list.join(' ') };
}

export type VerifyStandard = TimeWindow & {
  /** As received: parsing and serialising changes the octets. */
  readonly body: Body;
  /** The value of `webhook-id`. */
  readonly id: FieldValue;
  /** The value of `webhook-timestamp`. */
  readonly timestamp: FieldValue;
  /** The value of `webhook-signature`. */
  readonly signature: FieldValue;
  /** One match is enough: `whsec_` and base64. */
  readonly secrets?: readonly string[] | undefined;
  /** Public keys whose signatures `v1a` are accepted: `whpk_` and base64, or JWKs. */
  readonly publicKeys?: readonly (string | Ed25519PublicJwk)[] | undefined;
  /** Keys that the sender publishes, accepted too. */
  readonly discovery?: KeyDiscovery | undefined;
};

/**
 * The signed values: the id that identifies duplicates (§6.3) and the Unix seconds; and the version of the matching
 * signature.
 */
export type StandardVerdict =
  | { readonly ok: true; readonly id: string; readonly timestamp: number; readonly version: StandardVersion }
  | Refused;

/**
 * Verifies that the sender signed this message, within the tolerance. Reports `stale` and `ahead` only for valid
 * signatures. Never throws because of the headers.
 * @throws TypeError for an invalid secret, key, body or tolerance, and without any secret or key
 * @throws KeyDiscoveryError if published keys are needed and unavailable: not a reason to respond with 400
 */
export async function verifyStandard(options: VerifyStandard): Promise<StandardVerdict> {
  const { id, timestamp, signature, publicKeys = [], discovery, toleranceSeconds, nowMs } = options;
  const byKeys = verifyingBy(
    publicKeys.map((key) => publicKeyOf(key)),
    discovery,
  );
  const keys = prepareKeys(standardRule, secretsOf(options, byKeys !== undefined), webPrimitives);
  const fields: Readonly<Record<string, FieldValue>> = {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signature,
  };
  const message = { body: octetsOf(options.body), header: (name: string) => fields[name] ?? undefined };
  const asked = { primitives: webPrimitives, byKeys, toleranceSeconds, nowMs };
  const verdict = await verifyByRule(standardRule, message, keys, asked);
  if (!verdict.ok) return verdict;
  if (verdict.id === null || verdict.timestamp === null) return refused('malformed');
  const version = verdict.secret === null ? 'v1a' : 'v1';
  return { ok: true, id: verdict.id, timestamp: verdict.timestamp, version };
}

/** No secrets are needed if there are keys; an empty list is a mistake even then. */
function secretsOf({ secrets }: VerifyStandard, hasKeys: boolean): readonly string[] {
  if (secrets === undefined && hasKeys) return [];
  if (!Array.isArray(secrets) || secrets.length === 0) {
    throw new TypeError('secrets must be an array of at least one secret');
  }
  return secrets;
}

export const timestampedRule: HmacRule = {
  kind: 'hmac',
  header: 'service-signature',
  hash: 'sha256',
  encoding: 'hex',
  prefix: 'v1=',
  separator: ',',
  signed: '{timestamp}.{body}',
  timestamp: { prefix: 't=' },
  key: 'text',
  toleranceSeconds: toleranceSecondsDefault,
};

/** Returns the signed text before the body. */
export function timestampedPrefix(timestamp: number | string): string {
  return `${timestamp}.`;
}

/** Returns the field value. @param signatures in lower-case hexadecimal */
export function timestampedHeader(timestamp: number, signatures: readonly string[]): string {
  return `t=${timestamp},v1=${signatures.join(',v1=')}`;
}

export type SignTimestamped = {
  readonly body: Body;
  /** Each makes one signature. */
  readonly secrets: readonly string[];
  /** Unix seconds; default: now. */
  readonly timestamp?: number | undefined;
};

/**
 * Returns the value of the field `Service-Signature` (§5.6). @throws TypeError for an invalid secret, body or timestamp
 */
export async function signTimestamped({ body, secrets, timestamp }: SignTimestamped): Promise<string> {
  const seconds = timestampOf(timestamp);
  const content = withPrefix(timestampedPrefix(seconds), body);
  const signatures = await hmacWithEach(keysOf(secrets, textKey), content);
  return timestampedHeader(seconds, signatures.map(encodeHex));
}

export type VerifyTimestamped = TimeWindow & {
  /** As received: parsing and serialising changes the octets. */
  readonly body: Body;
  /** The value of `Service-Signature`, or of another sender's field, such as `Stripe-Signature`. */
  readonly header: FieldValue;
  /** One match is enough; several during a rotation. */
  readonly secrets: readonly string[];
};

/** `timestamp`: the signed Unix seconds. */
export type TimestampedVerdict = { readonly ok: true; readonly timestamp: number } | Refused;

/**
 * Verifies that the sender signed this body, within the tolerance. Reports `stale` and `ahead` only for valid
 * signatures. Never throws because of the header.
 * @throws TypeError for an invalid secret, body or tolerance
 */
export async function verifyTimestamped(options: VerifyTimestamped): Promise<TimestampedVerdict> {
  const { header, secrets } = options;
  const body = octetsOf(options.body);
  const keys = prepareKeys(timestampedRule, secrets, webPrimitives);
  const message = { body, header: () => header ?? undefined };
  const { toleranceSeconds, nowMs } = options;
  const verdict = await verifyByRule(timestampedRule, message, keys, {
    primitives: webPrimitives,
    toleranceSeconds,
    nowMs,
  });
  if (!verdict.ok) return verdict;
  return verdict.timestamp === null ? refused('malformed') : { ok: true, timestamp: verdict.timestamp };
}

export const plainRule: HmacRule = {
  kind: 'hmac',
  header: 'x-hub-signature-256',
  hash: 'sha256',
  encoding: 'hex',
  prefix: 'sha256=',
  separator: ',',
  signed: '{body}',
  key: 'text',
  toleranceSeconds: 0,
};

/** Returns the field value. @param signature in lower-case hexadecimal */
export function plainHeader(signature: string): string {
  return `sha256=${signature}`;
}

export type SignPlain = {
  readonly body: Body;
  /** Each makes one signature. */
  readonly secrets: readonly string[];
};

/**
 * Returns values for the field `X-Hub-Signature-256` (§5.6), one for each secret in order; a request holds only one.
 * @throws TypeError for an invalid secret or body
 */
export async function signPlain({ body, secrets }: SignPlain): Promise<readonly string[]> {
  const signatures = await hmacWithEach(keysOf(secrets, textKey), octetsOf(body));
  return signatures.map((signature) => plainHeader(encodeHex(signature)));
}

export type VerifyPlain = {
  /** As received: parsing and serialising changes the octets. */
  readonly body: Body;
  /** The value of `X-Hub-Signature-256`. */
  readonly header: FieldValue;
  /** One match is enough; several during a rotation. */
  readonly secrets: readonly string[];
};

export type PlainVerdict = { readonly ok: true } | Refused;

/**
 * Verifies that the sender signed this body, at any time. Never throws because of the header.
 * @throws TypeError for an invalid secret or body
 */
export async function verifyPlain({ body, header, secrets }: VerifyPlain): Promise<PlainVerdict> {
  const message = { body: octetsOf(body), header: () => header ?? undefined };
  const keys = prepareKeys(plainRule, secrets, webPrimitives);
  const verdict = await verifyByRule(plainRule, message, keys, { primitives: webPrimitives });
  return verdict.ok ? { ok: true } : verdict;
}
