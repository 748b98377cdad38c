/** Signs by Ed25519 (RFC 8032) with Web Crypto; the text forms of private keys: `whsk_...`, or a JWK (RFC 8037 §2). */
import { decodeBase64, decodeBase64Url } from './octets.ts';

/** A public key as a JWK; other members are ignored. */
export type Ed25519PublicJwk = { readonly kty: string; readonly crv?: string; readonly x?: string };
export type Ed25519PrivateJwk = Ed25519PublicJwk & { readonly d?: string };

type Key = { readonly type: string };

declare const crypto: {
  readonly subtle: {
    importKey(
      format: 'pkcs8',
      key: Uint8Array,
      algorithm: 'Ed25519',
      extractable: false,
      usages: readonly ['sign'],
    ): Promise<Key>;
    sign(algorithm: 'Ed25519', key: Key, content: Uint8Array): Promise<ArrayBuffer>;
  };
};

export const ed25519SignatureBytes = 64;
export const ed25519KeyBytes = 32;

/** PrivateKeyInfo (RFC 8410 §7) up to the seed, because Web Crypto imports no raw private key. */
const pkcs8Head = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/**
 * Returns the seed, 32 octets, of a private key: `whsk_` (optional) and base64 of the seed, with or without the public
 * key after it, or a JWK.
 * @throws TypeError, whose message contains nothing of the key
 */
export function seedOf(key: string | Ed25519PrivateJwk): Uint8Array {
  const octets = typeof key === 'string' ? decodeBase64(withoutPrefix(key, 'whsk_')) : memberOf(key, key.d);
  if (octets?.length !== ed25519KeyBytes && octets?.length !== 2 * ed25519KeyBytes) {
    throw new TypeError(
      'a private key must be "whsk_" and base64 of 32 or 64 octets, or a JWK of the curve Ed25519',
    );
  }
  return octets.subarray(0, ed25519KeyBytes);
}

export async function signEd25519(seed: Uint8Array, content: Uint8Array): Promise<Uint8Array> {
  const pkcs8 = Uint8Array.from([...pkcs8Head, ...seed]);
  const key = await crypto.subtle.importKey('pkcs8', pkcs8, 'Ed25519', false, ['sign']);
  return new Uint8Array(await crypto.subtle.sign('Ed25519', key, content));
}

export function withoutPrefix(text: string, prefix: string): string {
  return text.startsWith(prefix) ? text.slice(prefix.length) : text;
}

function memberOf({ kty, crv }: Ed25519PublicJwk, member: string | undefined): Uint8Array | undefined {
  if (kty !== 'OKP' || crv !== 'Ed25519' || typeof member !== 'string') return undefined;
  return decodeBase64Url(member);
}
