/**
 * Two SETTINGS payloads as one (RFC 9113 §6.5): those of HTTP2-Settings, and those of the client's first frame, which came later and therefore
 * win. One frame, because each is acknowledged: two acknowledgements where the client sent one frame end the connection (measured with
 * nghttp and curl).
 */
const settingBytes = 6;

/** @param first and `later`: payloads whose length is a multiple of six */
export function mergeSettings(first: Uint8Array, later: Uint8Array): Uint8Array {
  const values = new Map<number, Uint8Array>();
  for (const payload of [first, later]) {
    for (let at = 0; at + settingBytes <= payload.length; at += settingBytes) {
      const id = ((payload[at] ?? 0) << 8) | (payload[at + 1] ?? 0);
      // The order in which a value is applied is that of its last coming (RFC 9113 §6.5.3).
      values.delete(id);
      values.set(id, payload.subarray(at, at + settingBytes));
    }
  }
  const merged = new Uint8Array(values.size * settingBytes);
  let at = 0;
  for (const setting of values.values()) {
    merged.set(setting, at);
    at += settingBytes;
  }
  return merged;
}
