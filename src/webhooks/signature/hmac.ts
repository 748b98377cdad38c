/** HMAC-SHA256 (RFC 2104) by Web Crypto, which every runtime has. */

type Key = { readonly type: string };

declare const crypto: {
  readonly subtle: {
    importKey(
      format: 'raw',
      key: Uint8Array,
      algorithm: { readonly name: 'HMAC'; readonly hash: 'SHA-256' },
      extractable: false,
      usages: readonly ['sign'],
    ): Promise<Key>;
    sign(algorithm: 'HMAC', key: Key, content: Uint8Array): Promise<ArrayBuffer>;
  };
};

/** Octets of a signature. */
export const hmacBytes = 32;

export async function hmacSha256(key: Uint8Array, content: Uint8Array): Promise<Uint8Array> {
  const imported = await crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, [
    'sign',
  ]);
  return new Uint8Array(await crypto.subtle.sign('HMAC', imported, content));
}

/** The content signed with each key. */
export function hmacWithEach(keys: readonly Uint8Array[], content: Uint8Array): Promise<Uint8Array[]> {
  return Promise.all(keys.map((key) => hmacSha256(key, content)));
}
