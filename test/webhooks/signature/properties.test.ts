/** What holds for any body, secret and header: what was signed is believed, one changed bit is not, and no header makes it throw. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  signPlain,
  signStandard,
  signTimestamped,
  verifyPlain,
  verifyStandard,
  verifyTimestamped,
} from '../../../src/webhooks/index.ts';
import {
  decodeBase64,
  decodeBase64Url,
  decodeHex,
  encodeBase64,
  encodeBase64Url,
  encodeHex,
  octetsOf,
  sameOctets,
} from '../../../src/webhooks/signature/octets.ts';
import { codePoint } from '../../harness/code-point.ts';

const secondsAsked = Number(process.env.COMITY_FUZZ_SECONDS ?? '');

/** So many cases by default, or as many as fit into COMITY_FUZZ_SECONDS. */
function bounds(numRuns: number): { numRuns: number; interruptAfterTimeLimit?: number } {
  if (!(secondsAsked > 0)) return { numRuns };
  return { numRuns: Number.POSITIVE_INFINITY, interruptAfterTimeLimit: secondsAsked * 1000 };
}

const body = fc.uint8Array({ minLength: 1, maxLength: 200 });
const secrets = fc.array(
  fc.uint8Array({ minLength: 1, maxLength: 64 }).map((key) => `whsec_${Buffer.from(key).toString('base64')}`),
  { minLength: 1, maxLength: 3 },
);
const timestamp = fc.integer({ min: 0, max: 4_000_000_000 });
const id = fc.string({ unit: fc.constantFrom(...'abcXYZ019_-~!'), minLength: 1, maxLength: 40 });
const privateKeys = fc.array(
  fc
    .uint8Array({ minLength: 32, maxLength: 32 })
    .map((seed) => `whsk_${Buffer.from(seed).toString('base64')}`),
  { maxLength: 1 },
);

/** A copy with one bit turned over; which one is any number. */
function withBitFlipped(octets: Uint8Array, at: number): Uint8Array {
  const copy = Uint8Array.from(octets);
  const index = (at >> 3) % copy.length;
  copy[index] = (copy[index] ?? 0) ^ (1 << (at & 7));
  return copy;
}

test('what was signed is believed by each secret alone, and one changed bit of the body is not', async () => {
  const any = fc.asyncProperty(
    body,
    secrets,
    timestamp,
    id,
    privateKeys,
    fc.nat(),
    async (bytes, keys, time, name, seeds, at) => {
      const nowMs = time * 1000;
      const other = withBitFlipped(bytes, at);
      const header = await signTimestamped({ body: bytes, secrets: keys, timestamp: time });
      const plain = await signPlain({ body: bytes, secrets: keys });
      const fields = await signStandard({
        id: name,
        body: bytes,
        secrets: keys,
        privateKeys: seeds,
        timestamp: time,
      });
      const message = {
        id: name,
        timestamp: fields['webhook-timestamp'],
        signature: fields['webhook-signature'],
        nowMs,
      };
      for (const [index, secret] of keys.entries()) {
        const one = { secrets: [secret] };
        assert.ok((await verifyTimestamped({ ...one, body: bytes, header, nowMs })).ok);
        assert.ok(!(await verifyTimestamped({ ...one, body: other, header, nowMs })).ok);
        assert.ok((await verifyPlain({ ...one, body: bytes, header: plain[index] })).ok);
        assert.ok(!(await verifyPlain({ ...one, body: other, header: plain[index] })).ok);
        assert.ok((await verifyStandard({ ...one, ...message, body: bytes })).ok);
        assert.ok(!(await verifyStandard({ ...one, ...message, body: other })).ok);
      }
    },
  );
  await fc.assert(any, bounds(60));
});

const noise = fc.oneof(
  fc.string({ unit: codePoint, maxLength: 80 }),
  fc
    .array(
      fc.constantFrom(
        't',
        'v1',
        'v1a',
        'v0',
        'sha256',
        '=',
        ',',
        ' ',
        '.',
        '1',
        '0'.repeat(64),
        'AAAA',
        'é',
        '-',
      ),
      { maxLength: 30 },
    )
    .map((parts) => parts.join('')),
);

test('no header makes it throw, and none that is made up is believed', async () => {
  const key = {
    body: 'x',
    secrets: ['whsec_c2VjcmV0'],
    publicKeys: [`whpk_${Buffer.alloc(32, 7).toString('base64')}`],
  };
  const any = fc.asyncProperty(noise, noise, noise, async (one, two, three) => {
    for (const toleranceSeconds of [0, 300]) {
      assert.ok(!(await verifyTimestamped({ ...key, header: one, toleranceSeconds })).ok);
      assert.ok(!(await verifyPlain({ ...key, header: one })).ok);
      const message = { id: one, timestamp: two, signature: three, toleranceSeconds };
      assert.ok(!(await verifyStandard({ ...key, ...message })).ok);
    }
  });
  await fc.assert(any, bounds(200));
});

test('hexadecimal and base64 are what Node makes of the same octets, and each octets have one text', () => {
  const any = fc.property(fc.uint8Array({ maxLength: 70 }), fc.string({ maxLength: 12 }), (octets, text) => {
    const buffer = Buffer.from(octets);
    assert.equal(encodeHex(octets), buffer.toString('hex'));
    assert.equal(encodeBase64(octets), buffer.toString('base64'));
    assert.equal(encodeBase64Url(octets), buffer.toString('base64url'));
    assert.deepEqual(decodeHex(encodeHex(octets), octets.length), octets);
    assert.deepEqual(decodeBase64(encodeBase64(octets)), octets);
    assert.deepEqual(decodeBase64Url(encodeBase64Url(octets)), octets);
    const decoded = decodeBase64(text);
    if (decoded !== undefined) assert.equal(encodeBase64(decoded), text);
  });
  fc.assert(any, bounds(150));
});

test('octets are the same when each is, and never those of another length', () => {
  const any = fc.property(
    fc.uint8Array({ maxLength: 40 }),
    fc.uint8Array({ maxLength: 40 }),
    (one, other) => {
      assert.equal(sameOctets(one, other), Buffer.compare(one, other) === 0);
      assert.ok(sameOctets(one, Uint8Array.from(one)));
      assert.ok(!sameOctets(one, octetsOf(Buffer.concat([one, Uint8Array.of(0)]))));
    },
  );
  fc.assert(any, bounds(150));
});
