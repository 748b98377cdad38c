import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  brotliCompressSync,
  constants,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';
import { contentCodingsMax, decodeContent } from '../../src/kernel/content/decode-content.ts';

const brotli = (bytes: Uint8Array) =>
  brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } });
const encoders = { gzip: gzipSync, deflate: deflateSync, br: brotli, zstd: zstdCompressSync };
const codings = ['gzip', 'deflate', 'br', 'zstd'] as const;
const bytesMax = 1024 * 1024;
const short = Buffer.from('{"name":"Chair","price":12.5}');
/** Pseudo-random, so that it stays long when it is compressed. */
const long = Buffer.from(
  Array.from({ length: 100_000 }, (_, index) => (Math.imul(index, 2_654_435_761) >>> 13) & 0xff),
);

async function decode(bytes: Uint8Array, names: readonly string[], max = bytesMax): Promise<string> {
  const decoded = await decodeContent(bytes, names, { bytesMax: max });
  return decoded.ok ? Buffer.from(decoded.bytes).toString('latin1') : decoded.code;
}

for (const coding of codings) {
  const encode = encoders[coding];
  describe(coding, () => {
    test('is undone, at once for short content and by the thread pool for long', async () => {
      assert.equal(await decode(encode(short), [coding]), short.toString('latin1'));
      assert.ok(!(decodeContent(encode(short), [coding], { bytesMax }) instanceof Promise));
      const pooled = decodeContent(encode(long), [coding], { bytesMax });
      assert.ok(pooled instanceof Promise);
      assert.equal(await decode(encode(long), [coding]), long.toString('latin1'));
    });

    test('takes exactly bytesMax octets and refuses one more, short or long', async () => {
      for (const content of [short, long]) {
        const encoded = encode(content);
        assert.equal((await decode(encoded, [coding], content.length)).length, content.length);
        assert.equal(await decode(encoded, [coding], content.length - 1), 'content_too_large');
      }
    });

    test('stops a bomb at the cap', async () => {
      const bomb = encode(Buffer.alloc(20 * 1024 * 1024));
      assert.ok(bomb.length < 100_000, `${bomb.length} octets`);
      const before = process.memoryUsage().arrayBuffers;
      assert.equal(await decode(bomb, [coding]), 'content_too_large');
      const grown = process.memoryUsage().arrayBuffers - before;
      assert.ok(grown < 8 * bytesMax, `grew by ${grown} octets`);
    });

    test('leaves the event loop with a short bomb', async () => {
      const bomb = encode(Buffer.alloc(2 * 1024 * 1024));
      assert.ok(bomb.length < 8192);
      const decoding = decodeContent(bomb, [coding], { bytesMax: 64 * 1024 * 1024 });
      assert.ok(decoding instanceof Promise);
      const decoded = await decoding;
      assert.equal(decoded.ok ? decoded.bytes.length : decoded.code, 2 * 1024 * 1024);
    });

    test('refuses what is truncated anywhere', async () => {
      for (const content of [short, long]) {
        const encoded = encode(content);
        for (const length of [1, 2, encoded.length >> 1, encoded.length - 1]) {
          assert.equal(await decode(encoded.subarray(0, length), [coding]), 'content_malformed', `${length}`);
        }
      }
    });

    test('refuses octets after the end of the stream', async () => {
      for (const content of [short, long]) {
        for (const tail of ['garbage', '\0', '\0\0\0\0', '{}']) {
          const encoded = Buffer.concat([encode(content), Buffer.from(tail)]);
          assert.equal(await decode(encoded, [coding]), 'content_malformed', JSON.stringify(tail));
        }
      }
    });

    test('refuses content that is not coded so', async () => {
      assert.equal(await decode(short, [coding]), 'content_malformed');
      assert.equal(await decode(long, [coding]), 'content_malformed');
    });

    test('leaves empty content empty', async () => {
      assert.equal(await decode(new Uint8Array(), [coding]), '');
    });
  });
}

test('undoes several codings in the reverse of the order they were applied', async () => {
  const encoded = zstdCompressSync(brotliCompressSync(gzipSync(short)));
  assert.equal(await decode(encoded, ['gzip', 'br', 'zstd']), short.toString());
  assert.equal(await decode(encoded, ['zstd', 'br', 'gzip']), 'content_malformed');
  const longer = gzipSync(zstdCompressSync(long));
  assert.equal(await decode(longer, ['zstd', 'gzip']), long.toString('latin1'));
});

test('stops a bomb inside a bomb', async () => {
  const bomb = gzipSync(gzipSync(Buffer.alloc(64 * 1024 * 1024)));
  assert.equal(await decode(bomb, ['gzip', 'gzip']), 'content_too_large');
});

test('refuses more codings than contentCodingsMax and takes as many', async () => {
  let encoded: Buffer = short;
  for (let count = 0; count < contentCodingsMax; count += 1) encoded = gzipSync(encoded);
  assert.equal(await decode(encoded, new Array(contentCodingsMax).fill('gzip')), short.toString());
  const over = new Array(contentCodingsMax + 1).fill('gzip');
  assert.equal(await decode(gzipSync(encoded), over), 'content_coding_unsupported');
});

test('refuses a coding it does not know', async () => {
  assert.equal(await decode(short, ['compress']), 'content_coding_unsupported');
  assert.equal(await decode(gzipSync(short), ['toString', 'gzip']), 'content_coding_unsupported');
});

test('passes content without a coding, or with identity, as it is', async () => {
  assert.equal(await decode(short, []), short.toString());
  assert.equal(await decode(short, ['identity']), short.toString());
});

test('takes gzip members and zstd frames that follow each other (RFC 1952 §2.2, RFC 8878 §3.1)', async () => {
  assert.equal(await decode(Buffer.concat([gzipSync('ab'), gzipSync('cd')]), ['gzip']), 'abcd');
  assert.equal(
    await decode(Buffer.concat([zstdCompressSync('ab'), zstdCompressSync('cd')]), ['zstd']),
    'abcd',
  );
});

test('refuses deflate without the zlib wrapper (RFC 9110 §8.4.1.2)', async () => {
  assert.equal(await decode(deflateRawSync(short), ['deflate']), 'content_malformed');
});

test('refuses a zstd window over 8 MiB (RFC 9659)', async () => {
  const params = { [constants.ZSTD_c_windowLog]: 24, [constants.ZSTD_c_contentSizeFlag]: 0 };
  const wide = zstdCompressSync(Buffer.alloc(32 * 1024 * 1024, 'abc'), { params });
  assert.equal(await decode(wide, ['zstd'], 64 * 1024 * 1024), 'content_malformed');
});
