/**
 * Encrypts texts under a secret that is not stored: AES-256-GCM, with key and nonce derived by HKDF (RFC 5869) from the
 * secret and a fresh salt. A reader of the store learns nothing without the secret, which must be too long to guess.
 */
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';

export type Seal = {
  /** A key, a token or other text with at least 128 random bits. */
  readonly secret: string;
  /** Separates different uses of one secret. */
  readonly purpose: string;
  /** The row that holds the text; the text cannot be opened in another. */
  readonly id: string;
};

const cipher = 'aes-256-gcm';
const saltBytes = 16;
const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;

/** @param random returns that many random octets */
export function sealText(text: string, seal: Seal, random: (count: number) => Buffer): string {
  const salt = random(saltBytes);
  const { key, nonce } = derive(seal, salt);
  const sealing = createCipheriv(cipher, key, nonce).setAAD(Buffer.from(seal.id));
  const sealed = Buffer.concat([sealing.update(text, 'utf8'), sealing.final()]);
  return Buffer.concat([salt, sealed, sealing.getAuthTag()]).toString('base64url');
}

/** Decrypts the text; undefined if it was sealed with another secret or has been changed. */
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
    // The tag does not match: another key, or changed octets.
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
