/**
 * The keys that verify by a rule, prepared once for each set of secrets. The caller supplies the cryptography: Node's
 * is synchronous, that of Web Crypto (`webPrimitives`) returns promises.
 */

import { decodeBase64, decodeHexOfAny, joinOctets, octetsOf } from './octets.ts';
import {
  type Hash,
  type HmacRule,
  isKeyPair,
  type JwtRule,
  type SignatureRule,
  usesSecrets,
} from './signature-rule.ts';
import { readTemplate, type SignedTemplate } from './signed-content.ts';

export type MaybePromise<Value> = Value | Promise<Value>;

export type MacPrimitives<Key> = {
  /** Imports a key into the runtime's form. */
  importKey(octets: Uint8Array, hash: Hash): Key;
  /** Computes the HMAC (RFC 2104) over the concatenated parts. */
  mac(key: Key, hash: Hash, parts: readonly Uint8Array[]): MaybePromise<Uint8Array>;
  sha256(content: Uint8Array): MaybePromise<Uint8Array>;
};

export type PreparedKeys<Key> =
  /** Without keys: only signatures of a key pair count. */
  | { readonly kind: 'signed'; readonly template: SignedTemplate; readonly keys: readonly Key[] }
  /** Without keys: the token is signed by a key pair. */
  | { readonly kind: 'jwt'; readonly keys: readonly Key[] }
  | { readonly kind: 'token'; readonly tokens: readonly Uint8Array[] };

/**
 * @param secrets at least one, unless the rule also accepts Ed25519 signatures
 * @throws TypeError for an invalid secret or rule; the message contains nothing of a secret
 */
export function prepareKeys<Key>(
  rule: SignatureRule,
  secrets: readonly string[],
  primitives: MacPrimitives<Key>,
): PreparedKeys<Key> {
  if (rule.kind === 'token') return { kind: 'token', tokens: keysOf(secrets, textKey) };
  if (rule.kind === 'jwt') {
    checkNamed(rule);
    const texts = usesSecrets(rule) ? keysOf(secrets, textKey) : [];
    return { kind: 'jwt', keys: texts.map((each) => primitives.importKey(each, 'sha256')) };
  }
  const template = readTemplate(rule);
  if (isKeyPair(rule) || (secrets.length === 0 && rule.asymmetricPrefix !== undefined))
    return { kind: 'signed', template, keys: [] };
  const octets = keysOf(secrets, keyBy[rule.key]);
  return { kind: 'signed', template, keys: octets.map((each) => primitives.importKey(each, rule.hash)) };
}

/** Presets leave empty what only the declaration knows, and without which messages for others would be accepted. */
function checkNamed(rule: JwtRule): void {
  for (const name of ['audience', 'subject', 'email'] as const) {
    if ([rule[name]].flat().includes(''))
      throw new TypeError(`the rule of this sender must name its ${name}`);
  }
}

/*
 * The key of a secret `whsec_...`. The timestamped and the plain scheme use its text; Standard Webhooks uses the octets
 * that it holds as base64 (§5.6). An invalid secret is a mistake of the program, not of a sender: it throws, and no
 * message contains any of it.
 */

const prefix = 'whsec_';

/** @throws TypeError for an empty one */
export function textKey(secret: string): Uint8Array {
  if (typeof secret !== 'string' || secret === '')
    throw new TypeError('a secret must be a string that is not empty');
  return octetsOf(secret);
}

/**
 * Returns the octets after `whsec_`, which is optional.
 * @throws TypeError for invalid base64, missing padding, and an empty secret
 */
export function standardKey(secret: string): Uint8Array {
  if (typeof secret !== 'string') throw new TypeError('a secret must be a string');
  const plain = secret.startsWith(`${versionMark}${prefix}`) ? secret.slice(versionMark.length) : secret;
  const key = decodeBase64(plain.startsWith(prefix) ? plain.slice(prefix.length) : plain);
  if (key === undefined || key.length === 0) {
    throw new TypeError('a secret of Standard Webhooks must be "whsec_" and base64 with its padding');
  }
  return key;
}

/** @throws TypeError for anything but hexadecimal digits in pairs */
export function hexKey(secret: string): Uint8Array {
  const key = typeof secret === 'string' ? decodeHexOfAny(secret) : undefined;
  if (key === undefined || key.length === 0)
    throw new TypeError('a secret must be hexadecimal digits in pairs');
  return key;
}

/** Supabase writes the version before the secret: `v1,whsec_...`. */
const versionMark = 'v1,';

/**
 * Returns the keys of all secrets, in order.
 * @throws TypeError for a single text, whose characters would be taken for secrets, and for an empty array
 */
export function keysOf(secrets: readonly string[], keyOf: (secret: string) => Uint8Array): Uint8Array[] {
  if (!Array.isArray(secrets) || secrets.length === 0) {
    throw new TypeError('secrets must be an array of at least one secret');
  }
  return secrets.map(keyOf);
}

const keyBy: Readonly<Record<HmacRule['key'], (secret: string) => Uint8Array>> = {
  text: textKey,
  base64: standardKey,
  hex: hexKey,
};

/** A key of Web Crypto; this folder uses the types of no runtime. */
export type WebKey = { readonly type: string };
type WebHash = 'SHA-1' | 'SHA-256' | 'SHA-512';

declare const crypto: {
  readonly subtle: {
    importKey(
      format: 'raw',
      key: Uint8Array,
      algorithm: { readonly name: 'HMAC'; readonly hash: WebHash },
      extractable: false,
      usages: readonly ['sign'],
    ): Promise<WebKey>;
    sign(algorithm: 'HMAC', key: WebKey, content: Uint8Array): Promise<ArrayBuffer>;
    digest(algorithm: 'SHA-256', content: Uint8Array): Promise<ArrayBuffer>;
  };
};

const webHashes: Readonly<Record<Hash, WebHash>> = { sha1: 'SHA-1', sha256: 'SHA-256', sha512: 'SHA-512' };

/** Web Crypto, which every runtime has; importing a key is asynchronous. */
export const webPrimitives: MacPrimitives<Promise<WebKey>> = {
  importKey(octets, hash) {
    return crypto.subtle.importKey('raw', octets, { name: 'HMAC', hash: webHashes[hash] }, false, ['sign']);
  },
  async mac(key, _hash, parts) {
    return new Uint8Array(await crypto.subtle.sign('HMAC', await key, joinOctets(parts)));
  },
  async sha256(content) {
    return new Uint8Array(await crypto.subtle.digest('SHA-256', content));
  },
};

/** Computes the HMAC-SHA256 (RFC 2104) of one content with each key, as the three schemes need it. */
export function hmacWithEach(keys: readonly Uint8Array[], content: Uint8Array): Promise<Uint8Array[]> {
  const { importKey, mac } = webPrimitives;
  return Promise.all(keys.map((key) => mac(importKey(key, 'sha256'), 'sha256', [content])));
}
