import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { decodeBeginning, readCodings, toSnippet } from '../../src/egress/exchange-attempt.ts';

const MiB = 1024 * 1024;

/** Characters of one to four octets, and those that decoders treat apart. */
const pieces = fc.array(fc.constantFrom('a', 'ü', '€', '😀', '\0', '\ufeff', '\uffff'), { maxLength: 30 });

test('holds no more of a decompressed answer than it is asked for', async () => {
  // Members of a gzip stream may follow each other (RFC 1952 §2.2): 256 MiB in 256 KiB.
  const member = gzipSync(Buffer.alloc(MiB));
  const bomb = Buffer.concat(Array.from({ length: 256 }, () => member));
  const beforeKiB = process.resourceUsage().maxRSS;
  const decoded = await decodeBeginning(bomb, ['gzip'], 192);
  assert.equal(decoded.length, 192);
  const growthKiB = process.resourceUsage().maxRSS - beforeKiB;
  assert.ok(growthKiB < 64 * 1024, `${growthKiB} KiB`);
});

test('cuts text between characters, and never leaves half of one', () => {
  fc.assert(
    fc.property(pieces, fc.nat(20), (parts, characters) => {
      const text = parts.join('');
      const bytes = Buffer.from(text);
      const snippet = toSnippet(bytes, characters);
      assert.ok(snippet.length <= characters);
      assert.ok(snippet.isWellFormed());
      assert.ok(!snippet.includes('\0'));
      if (characters >= text.length)
        assert.equal(
          snippet,
          bytes
            .toString()
            .replaceAll('\0', '\ufffd')
            .replace(/^\ufeff/, ''),
        );
    }),
  );
  assert.equal(toSnippet(Buffer.from('grüße'), 3), 'grü');
  assert.equal(toSnippet(Buffer.from('a😀'), 2), 'a');
  assert.equal(toSnippet(Buffer.from([0x61, 0xff, 0x62]), 3), 'a\ufffdb');
});

test('undoes codings from the last to the first, whatever their case', () => {
  assert.deepEqual(readCodings('gzip, BR'), ['br', 'gzip']);
  assert.deepEqual(readCodings(['gzip', 'identity', '']), ['gzip']);
  assert.deepEqual(readCodings(undefined), []);
});
