/**
 * Standard Webhooks 1.0 (§5.6): `webhook-signature` is a list, with spaces between, of `v1,<base64>` (HMAC-SHA256 keyed with the decoded
 * secret) and `v1a,<base64>` (Ed25519), each over `<webhook-id>.<webhook-timestamp>.<body>`. Other versions are ignored.
 */
import { decodeBase64, encodeBase64 } from './base64.ts';
import type { KeyDiscovery } from './discover-keys.ts';
import {
  anyEd25519,
  type Ed25519PrivateJwk,
  type Ed25519PublicJwk,
  ed25519SignatureBytes,
  publicKeyOf,
  seedOf,
  signEd25519,
} from './ed25519.ts';
import { hmacBytes, hmacWithEach } from './hmac.ts';
import { type Body, octetsOf, sameOctets, withPrefix } from './octets.ts';
import { type FieldValue, type Refused, refused, refuseField, signaturesMax } from './refusal.ts';
import { keysOf, standardKey } from './secret.ts';
import { readTimestamp, refuseTime, type TimeWindow, timestampOf } from './time-window.ts';

/** What is signed before the body. */
export function standardPrefix(id: string, timestamp: number | string): string {
  return `${id}.${timestamp}.`;
}

/** One entry of the list. @param signature in base64 */
export function standardSignature(version: StandardVersion, signature: string): string {
  return `${version},${signature}`;
}

export type StandardVersion = 'v1' | 'v1a';

const idCharactersMax = 512;
/** Each is tried with each public key, at some 100 us: what a stranger sends must not cost more than this. */
const asymmetricMax = 4;
/** Visible ASCII without the full stop, which would let the id end elsewhere than where it was signed to end. */
const idForm = /^[!-\-/-~]+$/;

export type SignStandard = {
  /** The same each time that a message is sent. Visible ASCII without a full stop. */
  readonly id: string;
  readonly body: Body;
  /** One signature `v1` is made with each: `whsec_` and base64. */
  readonly secrets?: readonly string[] | undefined;
  /** One signature `v1a` is made with each: `whsk_` and base64, or a JWK. */
  readonly privateKeys?: readonly (string | Ed25519PrivateJwk)[] | undefined;
  /** Unix seconds; now if not said. */
  readonly timestamp?: number | undefined;
};

/** The fields of a message. */
export type StandardHeaders = {
  readonly 'webhook-id': string;
  readonly 'webhook-timestamp': string;
  readonly 'webhook-signature': string;
};

/** @throws TypeError for what can be no id, secret, key, body or timestamp, and without a secret or a key */
export async function signStandard(options: SignStandard): Promise<StandardHeaders> {
  const { id, body, secrets, privateKeys = [], timestamp } = options;
  if (!isId(id)) throw new TypeError('the id of a message must be visible ASCII without a full stop');
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
  /** As it came: bytes that were parsed and written again are other bytes. */
  readonly body: Body;
  /** The value of `webhook-id`. */
  readonly id: FieldValue;
  /** The value of `webhook-timestamp`. */
  readonly timestamp: FieldValue;
  /** The value of `webhook-signature`. */
  readonly signature: FieldValue;
  /** It is enough that one of them fits: `whsec_` and base64. */
  readonly secrets?: readonly string[] | undefined;
  /** Keys whose signatures `v1a` are taken: `whpk_` and base64, or JWKs. */
  readonly publicKeys?: readonly (string | Ed25519PublicJwk)[] | undefined;
  /** Keys that the sender publishes, besides. */
  readonly discovery?: KeyDiscovery | undefined;
};

/** What was signed: the id that tells duplicates (§6.3), the Unix seconds, and by which version it was believed. */
export type StandardVerdict =
  | { readonly ok: true; readonly id: string; readonly timestamp: number; readonly version: StandardVersion }
  | Refused;

/**
 * Whether the sender signed this message, and did so now. `stale` and `ahead` are said only of what a secret or a key did sign.
 * Whatever stands in the headers, it does not throw.
 * @throws TypeError for what can be no secret, key, body or tolerance, and without any secret or key
 * @throws KeyDiscoveryError where only published keys could tell and they cannot be had: no reason to answer 400
 */
export async function verifyStandard(options: VerifyStandard): Promise<StandardVerdict> {
  const trusted = readTrusted(options);
  octetsOf(options.body);
  const read = readHeaders(options);
  if (typeof read === 'string') return refused(read);
  const content = withPrefix(standardPrefix(read.id, read.text), options.body);
  const version = await findVersion(trusted, read, content);
  if (version === undefined) return refused('no-match');
  const reason = refuseTime(read.timestamp, options);
  if (reason !== undefined) return refused(reason);
  return { ok: true, id: read.id, timestamp: read.timestamp, version };
}

type Trusted = {
  readonly secrets: readonly Uint8Array[];
  readonly publicKeys: readonly Uint8Array[];
  readonly discovery: KeyDiscovery | undefined;
};

function readTrusted({ secrets, publicKeys = [], discovery }: VerifyStandard): Trusted {
  const keys = publicKeys.map(publicKeyOf);
  const hasKeys = keys.length > 0 || discovery !== undefined;
  return {
    secrets: secrets === undefined && hasKeys ? [] : keysOf(secrets ?? [], standardKey),
    publicKeys: keys,
    discovery,
  };
}

type Headers = {
  readonly id: string;
  readonly timestamp: number;
  /** The timestamp as it was written, which is how it was signed. */
  readonly text: string;
  readonly v1: readonly Uint8Array[];
  readonly v1a: readonly Uint8Array[];
};

function readHeaders({ id, timestamp, signature }: VerifyStandard): Headers | 'missing' | 'malformed' {
  const reasons = [id, timestamp, signature].map(refuseField);
  if (reasons.includes('missing')) return 'missing';
  if (reasons.includes('malformed')) return 'malformed';
  const [idText, text] = [String(id), String(timestamp)];
  const seconds = readTimestamp(text);
  const signatures = readSignatures(String(signature));
  if (!isId(idText) || seconds === undefined || signatures === undefined) return 'malformed';
  return { id: idText, timestamp: seconds, text, ...signatures };
}

function readSignatures(list: string): Pick<Headers, 'v1' | 'v1a'> | undefined {
  const v1: Uint8Array[] = [];
  const v1a: Uint8Array[] = [];
  const items = list.split(' ').filter((item) => item !== '');
  if (items.length > signaturesMax) return undefined;
  for (const item of items) {
    const at = item.indexOf(',');
    if (at < 0) return undefined;
    const version = item.slice(0, at);
    if (version !== 'v1' && version !== 'v1a') continue;
    const octets = decodeBase64(item.slice(at + 1));
    if (version === 'v1' && octets?.length === hmacBytes) v1.push(octets);
    if (version === 'v1a' && octets?.length === ed25519SignatureBytes) v1a.push(octets);
  }
  return v1a.length > asymmetricMax ? undefined : { v1, v1a };
}

async function findVersion(
  { secrets, publicKeys, discovery }: Trusted,
  { v1, v1a }: Headers,
  content: Uint8Array,
): Promise<StandardVersion | undefined> {
  if (v1.length > 0 && secrets.length > 0) {
    const expected = await hmacWithEach(secrets, content);
    if (v1.some((signature) => expected.some((each) => sameOctets(each, signature)))) return 'v1';
  }
  if (v1a.length === 0) return undefined;
  if (await anyEd25519(publicKeys, v1a, content)) return 'v1a';
  if (discovery === undefined) return undefined;
  if (await anyEd25519(await discovery.keys(), v1a, content)) return 'v1a';
  const renewed = await discovery.renew();
  return (await anyEd25519(renewed, v1a, content)) ? 'v1a' : undefined;
}

function isId(id: string): boolean {
  return id.length <= idCharactersMax && idForm.test(id);
}
