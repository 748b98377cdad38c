/**
 * Texts that are kept encrypted under a secret which is not kept: AES-256-GCM, key and nonce derived by HKDF (RFC 5869) from the secret and a
 * fresh salt. Who reads the store learns nothing without the secret, which must therefore be too long to be guessed.
 */
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';

export type Seal = {
  /** A key, a token or other text with at least 128 random bits. */
  readonly secret: string;
  /** Keeps the uses of one secret apart. */
  readonly purpose: string;
  /** Of the row that holds the text: it opens in no other. */
  readonly id: string;
};

const cipher = 'aes-256-gcm';
const saltBytes = 16;
const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;

/** @param random that many octets of good randomness */
export function sealText(text: string, seal: Seal, random: (count: number) => Buffer): string {
  const salt = random(saltBytes);
  const { key, nonce } = derive(seal, salt);
  const sealing = createCipheriv(cipher, key, nonce).setAAD(Buffer.from(seal.id));
  const sealed = Buffer.concat([sealing.update(text, 'utf8'), sealing.final()]);
  return Buffer.concat([salt, sealed, sealing.getAuthTag()]).toString('base64url');
}

/** Undefined: it was sealed with another secret, or is not what was sealed. */
export function openText(sealed: string, seal: Seal): string | undefined {
  const octets = Buffer.from(sealed, 'base64url');
  if (octets.length < saltBytes + tagBytes) return undefined;
  const { key, nonce } = derive(seal, octets.subarray(0, saltBytes));
  const opening = createDecipheriv(cipher, key, nonce, { authTagLength: tagBytes })
    .setAAD(Buffer.from(seal.id))
    .setAuthTag(octets.subarray(-tagBytes));
  try {
    const text = Buffer.concat([opening.update(octets.subarray(saltBytes, -tagBytes)), opening.final()]);
    return text.toString('utf8');
  } catch {
    // The tag is that of another key.
    return undefined;
  }
}

function derive(
  { secret, purpose }: Seal,
  salt: Uint8Array,
): { readonly key: Buffer; readonly nonce: Buffer } {
  const derived = Buffer.from(hkdfSync('sha256', secret, salt, purpose, keyBytes + nonceBytes));
  return { key: derived.subarray(0, keyBytes), nonce: derived.subarray(keyBytes) };
}
