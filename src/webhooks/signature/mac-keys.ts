/**
 * The keys that verify by a rule, made once for each set of secrets. The cryptography is the caller's: that of Node answers at once, Web
 * Crypto (`webPrimitives`) with promises.
 */

import { decodeBase64, joinOctets, octetsOf } from './octets.ts';
import type { Hash, SignatureRule } from './signature-rule.ts';
import { readTemplate, type SignedTemplate } from './signed-content.ts';

export type MaybePromise<Value> = Value | Promise<Value>;

export type MacPrimitives<Key> = {
  /** A key as the runtime keeps it. */
  importKey(octets: Uint8Array, hash: Hash): Key;
  /** HMAC (RFC 2104) over the parts, one after the other. */
  mac(key: Key, hash: Hash, parts: readonly Uint8Array[]): MaybePromise<Uint8Array>;
  sha256(content: Uint8Array): MaybePromise<Uint8Array>;
};

export type PreparedKeys<Key> =
  | { readonly kind: 'hmac'; readonly template: SignedTemplate; readonly keys: readonly Key[] }
  | { readonly kind: 'token'; readonly tokens: readonly Uint8Array[] };

/**
 * @param secrets at least one, unless the rule also takes signatures by Ed25519
 * @throws TypeError for what can be no secret and for a rule that cannot be verified by; it names nothing of a secret
 */
export function prepareKeys<Key>(
  rule: SignatureRule,
  secrets: readonly string[],
  primitives: MacPrimitives<Key>,
): PreparedKeys<Key> {
  if (rule.kind === 'token') return { kind: 'token', tokens: keysOf(secrets, textKey) };
  const template = readTemplate(rule);
  if (secrets.length === 0 && rule.asymmetricPrefix !== undefined)
    return { kind: 'hmac', template, keys: [] };
  const octets = keysOf(secrets, rule.key === 'base64' ? standardKey : textKey);
  return { kind: 'hmac', template, keys: octets.map((each) => primitives.importKey(each, rule.hash)) };
}

/*
 * What a secret `whsec_...` is as a key. The timestamped and the plain scheme take its text as it is; Standard Webhooks take the octets
 * that stand in it as base64 (§5.6). A secret that cannot be one is a mistake of the program, not of a sender: it throws, and no message
 * holds any of it.
 */

const prefix = 'whsec_';

/** @throws TypeError for an empty one */
export function textKey(secret: string): Uint8Array {
  if (typeof secret !== 'string' || secret === '')
    throw new TypeError('a secret must be a text, and not empty');
  return octetsOf(secret);
}

/**
 * The octets behind `whsec_`, which may be missing.
 * @throws TypeError for what is no base64 with its padding, and for an empty one
 */
export function standardKey(secret: string): Uint8Array {
  if (typeof secret !== 'string') throw new TypeError('a secret must be a text');
  const key = decodeBase64(secret.startsWith(prefix) ? secret.slice(prefix.length) : secret);
  if (key === undefined || key.length === 0) {
    throw new TypeError('a secret of Standard Webhooks must be "whsec_" and base64 with its padding');
  }
  return key;
}

/**
 * All of them, in order.
 * @throws TypeError for a single text, whose characters would be taken for secrets, and for no secret at all
 */
export function keysOf(secrets: readonly string[], keyOf: (secret: string) => Uint8Array): Uint8Array[] {
  if (!Array.isArray(secrets) || secrets.length === 0) {
    throw new TypeError('secrets must be an array of at least one');
  }
  return secrets.map(keyOf);
}

/* The cryptography of the signatures by Web Crypto, which every runtime has. */

/** A key of Web Crypto: this folder knows the type of no runtime. */
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

/** Web Crypto makes a key by and by. */
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

/* HMAC-SHA256 (RFC 2104) of one content with each of several keys: what the three schemes send. */

export function hmacWithEach(keys: readonly Uint8Array[], content: Uint8Array): Promise<Uint8Array[]> {
  const { importKey, mac } = webPrimitives;
  return Promise.all(keys.map((key) => mac(importKey(key, 'sha256'), 'sha256', [content])));
}
