/** HMAC-SHA256 (RFC 2104) of one content with each of several keys: what the three schemes send. */
import { webPrimitives } from './web-primitives.ts';

export function hmacWithEach(keys: readonly Uint8Array[], content: Uint8Array): Promise<Uint8Array[]> {
  const { importKey, mac } = webPrimitives;
  return Promise.all(keys.map((key) => mac(importKey(key, 'sha256'), 'sha256', [content])));
}
