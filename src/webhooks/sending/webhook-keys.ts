/**
 * The Ed25519 keys with which all processes on one store sign `v1a` (§5.6). accounts/tokens/rotating-keys.ts creates,
 * replaces and removes them. A key signs from `signsFrom` until one lead after the next key's, so that each delivery is
 * signed with both for that long, and receivers configured by hand have time to take the next one. It stays published
 * for as long as a receiver may verify its last signature; then it is removed.
 *
 * The whole instance has one ring, unlike secrets: a signature authenticates the sender of a delivery, not its
 * recipient.
 */
import { createPrivateKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { leadMs, openRotatingKeys, type Ring } from '../../accounts/tokens/rotating-keys.ts';
import type { Services } from '../../store/capabilities.ts';
import { webhookKeysTable } from './sending-tables.ts';

export type WebhookKeys = {
  /**
   * Returns one signature in base64 for each key that signs now, the current key first. Runs in the thread pool: 57 µs
   * per key.
   */
  sign(content: Uint8Array): Promise<readonly string[]>;
  /** The public keys, for `/.well-known/jwks.json`. */
  published(): readonly PublishedKey[];
  /** Cache lifetime of the JWK set, in seconds: shorter than the time for which a key is published before it signs. */
  readonly publishedSeconds: number;
  /** Creates and removes keys that are due now; a timer does the same. @throws StoreUnavailable */
  look(): Promise<void>;
  /** Stops following and waits for the look under way. */
  close(): Promise<void>;
};

/** After its last signature: the tolerance of receivers, and differing clocks of processes and receivers. */
const graceMs = 600_000;

/** Loads the ring, or creates the first key. @throws StoreUnavailable */
export async function createWebhookKeys(services: Services): Promise<WebhookKeys> {
  const { clock, newId, settings } = services;
  const { signingKeySeconds } = settings;
  const rotating = await openRotatingKeys<Ring<StoredKey>, StoredKey, WebhookKey>(services, {
    table: webhookKeysTable,
    what: 'following the keys of webhooks',
    keptMs: keptMs(signingKeySeconds),
    algorithm: 'EdDSA',
    newRing: { keys: [] },
    create: (signsFrom, now) => makeWebhookKey(`whk_${newId()}`, now, signsFrom),
    load: importWebhookKey,
  });
  return {
    publishedSeconds: rotating.publishedSeconds,
    sign(content) {
      const signing = signingAt(rotating.keys, signingKeySeconds, clock());
      return Promise.all(signing.map((key) => signWith(key, content)));
    },
    published: () => rotating.keys.map((key) => key.published),
    look: () => rotating.look(),
    close: () => rotating.close(),
  };
}

/** Milliseconds for which a key stays after the next one began to sign. */
export function keptMs(signingKeySeconds: number): number {
  return leadMs(signingKeySeconds) + graceMs;
}

/** Returns the keys that sign at this time, the current one first. The first key of all may sign before its time. */
export function signingAt<K extends Pick<StoredKey, 'signsFrom'>>(
  keys: readonly K[],
  signingKeySeconds: number,
  now: number,
): readonly K[] {
  const lead = leadMs(signingKeySeconds);
  const signing = keys.filter((key, at) => {
    const next = keys[at + 1];
    return key.signsFrom <= now && (next === undefined || next.signsFrom + lead > now);
  });
  return signing.length === 0 ? keys.slice(0, 1) : signing.reverse();
}

/*
 * A key pair of the signature version `v1a` (Ed25519, RFC 8032), as stored; published by RFC 8037 §2. The private key
 * is in the store, because every process must sign with it.
 */

type StoredKey = {
  /** `whk_...` */
  readonly kid: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** Milliseconds since the epoch. */
  readonly signsFrom: number;
  readonly privateJwk: { readonly x: string; readonly d: string };
};

/** An entry of the JWK set (RFC 7517 §4): the public key. */
type PublishedKey = {
  readonly kty: 'OKP';
  readonly crv: 'Ed25519';
  readonly x: string;
  readonly kid: string;
  readonly use: 'sig';
  readonly alg: 'EdDSA';
  readonly key_ops: string[];
};

type WebhookKey = Pick<StoredKey, 'kid' | 'signsFrom'> & {
  readonly privateKey: KeyObject;
  readonly published: PublishedKey;
};

/** Times in milliseconds since the epoch. @param kid a name that no other key has */
function makeWebhookKey(kid: string, createdAt: number, signsFrom: number): StoredKey {
  const { x, d } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  if (x === undefined || d === undefined)
    throw new Error('a private key of the curve Ed25519 must have the members x and d');
  return { kid, createdAt, signsFrom, privateJwk: { x, d } };
}

function importWebhookKey({ kid, signsFrom, privateJwk: { x, d } }: StoredKey): WebhookKey {
  const curve = { kty: 'OKP', crv: 'Ed25519' } as const;
  const privateKey = createPrivateKey({ key: { ...curve, x, d }, format: 'jwk' });
  const published: PublishedKey = { ...curve, x, kid, use: 'sig', alg: 'EdDSA', key_ops: ['verify'] };
  return { kid, signsFrom, privateKey, published };
}

/**
 * Returns the signature in base64. Runs in the thread pool: it takes 57 µs on the reference machine, of which 3 µs
 * here; the HMAC of `v1` takes 3 µs.
 */
function signWith({ privateKey }: WebhookKey, content: Uint8Array): Promise<string> {
  return new Promise((resolve, reject) => {
    sign(null, content, privateKey, (error, signature) => {
      if (error === null) resolve(signature.toString('base64'));
      else reject(error);
    });
  });
}
