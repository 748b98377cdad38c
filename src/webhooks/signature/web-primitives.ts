/** The cryptography of the signatures by Web Crypto, which every runtime has. */
import { joinOctets } from './octets.ts';
import type { MacPrimitives } from './prepared-keys.ts';
import type { Hash } from './signature-rule.ts';

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
