import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import fc from 'fast-check';
import { decodeContent } from '../../../src/kernel/content/decode-content.ts';
import { bounds } from './bounds.ts';

const encoders: Readonly<Record<string, (bytes: Uint8Array) => Buffer>> = {
  gzip: (bytes) => gzipSync(bytes),
  deflate: (bytes) => deflateSync(bytes),
  br: (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 3 } }),
  zstd: (bytes) => zstdCompressSync(bytes),
};
const codings = fc.array(fc.constantFrom(...Object.keys(encoders)), { minLength: 1, maxLength: 3 });
const content = fc.tuple(fc.uint8Array({ maxLength: 300 }), fc.nat({ max: 300 })).map(([seed, times]) => {
  return Buffer.concat(new Array(times + 1).fill(seed));
});
const bytesMax = 50_000;

function encode(bytes: Buffer, names: readonly string[]): Buffer {
  return names.reduce((coded, name) => encoders[name]?.(coded) ?? coded, bytes);
}

test('what was coded is decoded, or is too large exactly when it is', async () => {
  await fc.assert(
    fc.asyncProperty(content, codings, async (bytes, names) => {
      const decoded = await decodeContent(encode(bytes, names), names, { bytesMax });
      if (decoded.ok) assert.ok(bytes.equals(decoded.bytes));
      else assert.equal(decoded.code, 'content_too_large');
      if (bytes.length > bytesMax) assert.equal(decoded.ok, false);
      else if (names.length === 1) assert.equal(decoded.ok, true);
    }),
    bounds,
  );
});

test('damaged content is decoded or refused, within the cap, and nothing is thrown', async () => {
  const damage = fc.tuple(fc.nat(), fc.nat({ max: 4 }), fc.uint8Array({ maxLength: 4 }));
  await fc.assert(
    fc.asyncProperty(content, codings, damage, async (bytes, names, [at, length, inserted]) => {
      const coded = encode(bytes, names);
      const from = at % (coded.length + 1);
      const damaged = Buffer.concat([coded.subarray(0, from), inserted, coded.subarray(from + length)]);
      const decoded = await decodeContent(damaged, names, { bytesMax });
      if (decoded.ok) assert.ok(decoded.bytes.length <= bytesMax);
      else assert.match(decoded.code, /^content_(malformed|too_large)$/);
    }),
    bounds,
  );
});

test('random octets are no coded content, and nothing is thrown', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 64 }), codings, async (bytes, names) => {
      const decoded = await decodeContent(bytes, names, { bytesMax });
      if (decoded.ok) assert.ok(decoded.bytes.length <= bytesMax);
    }),
    bounds,
  );
});
