/** HMAC by node:crypto, which makes it at once: for a message of 1 KiB a fifth of what a turn through Web Crypto costs. */
import { createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto';
import type { MacPrimitives } from '../../signature/prepared-keys.ts';

export const nodeMac: MacPrimitives<KeyObject> = {
  importKey: (octets) => createSecretKey(octets),
  mac(key, algorithm, parts) {
    const hmac = createHmac(algorithm, key);
    for (const part of parts) hmac.update(part);
    return hmac.digest();
  },
  sha256: (content) => hash('sha256', content, 'buffer'),
};
