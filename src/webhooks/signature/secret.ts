/**
 * What a secret `whsec_...` is as a key. The timestamped and the plain scheme take its text as it is; Standard Webhooks take the octets
 * that stand in it as base64 (§5.6). A secret that cannot be one is a mistake of the program, not of a sender: it throws, and no message
 * holds any of it.
 */
import { decodeBase64 } from './base64.ts';
import { octetsOf } from './octets.ts';

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
