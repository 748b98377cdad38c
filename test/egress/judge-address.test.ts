import assert from 'node:assert/strict';
import { BlockList } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { contains, parseAddress, parseBlock } from '../../src/egress/address.ts';
import { judgeAddress, specialPurposeIpv4, specialPurposeIpv6 } from '../../src/egress/policy.ts';

import { readVectors } from './vectors.ts';

const octets = (count: number) => fc.uint8Array({ minLength: count, maxLength: count });

/** Text of an address; IPv6 in full, in the form that no parser shortens. */
function toText(bytes: Uint8Array): string {
  if (bytes.length === 4) return [...bytes].join('.');
  const groups = Array.from({ length: 8 }, (_, at) => ((bytes[at * 2] ?? 0) << 8) | (bytes[at * 2 + 1] ?? 0));
  return groups.map((group) => group.toString(16)).join(':');
}

/** The address with the first bits of the block. */
function within(block: string, bytes: Uint8Array): Uint8Array {
  const { bytes: first, prefixBits } = parseBlock(block) ?? assert.fail(block);
  return bytes.map((octet, at) => {
    const keep = Math.min(8, Math.max(0, prefixBits - at * 8));
    const mask = (0xff << (8 - keep)) & 0xff;
    return ((first[at] ?? 0) & mask) | (octet & ~mask & 0xff);
  });
}

test('judges every published address as the vectors say', () => {
  const { addresses } = readVectors();
  for (const { address, allowed, note } of addresses) {
    assert.equal(judgeAddress(address).allowed, allowed, `${address}: ${note}`);
  }
  assert.ok(addresses.length > 90);
});

test('refuses any address inside a special-purpose block of IPv4, and its mapped and NAT64 forms', () => {
  for (const { block } of specialPurposeIpv4) {
    fc.assert(
      fc.property(octets(4), (random) => {
        const address = toText(within(block, random));
        for (const form of [address, `::ffff:${address}`, `64:ff9b::${address}`]) {
          assert.equal(judgeAddress(form).allowed, false, `${form} in ${block}`);
        }
      }),
      { numRuns: 25 },
    );
  }
});

test('refuses any address inside a special-purpose block of IPv6', () => {
  for (const { block } of specialPurposeIpv6) {
    fc.assert(
      fc.property(octets(16), (random) => {
        const address = toText(within(block, random));
        assert.equal(judgeAddress(address).allowed, false, `${address} in ${block}`);
      }),
      { numRuns: 25 },
    );
  }
});

test('refuses any IPv6 address outside 2000::/3 but those that stand for a public IPv4 address', () => {
  fc.assert(
    fc.property(octets(16), (bytes) => {
      if ((bytes[0] ?? 0) >> 5 === 1) return;
      assert.equal(judgeAddress(toText(bytes)).allowed, false, toText(bytes));
    }),
    { numRuns: 300 },
  );
});

test('judges the mapped and the NAT64 form of any IPv4 address as the address', () => {
  fc.assert(
    fc.property(octets(4), (bytes) => {
      const address = toText(bytes);
      const plain = judgeAddress(address);
      assert.deepEqual(judgeAddress(`::ffff:${address}`), plain);
      assert.deepEqual(judgeAddress(`64:ff9b::${address}`), plain);
    }),
    { numRuns: 300 },
  );
});

test("agrees with Node's own BlockList on what lies in a block", () => {
  const ofVersion = (count: 4 | 16) => fc.tuple(octets(count), octets(count), fc.nat(count * 8));
  fc.assert(
    fc.property(fc.oneof(ofVersion(4), ofVersion(16)), ([base, other, prefixBits]) => {
      const version = base.length === 4 ? 'ipv4' : 'ipv6';
      const list = new BlockList();
      list.addSubnet(toText(base), prefixBits, version);
      const block = parseBlock(`${toText(base)}/${prefixBits}`) ?? assert.fail();
      for (const bytes of [other, within(`${toText(base)}/${prefixBits}`, other)]) {
        const text = toText(bytes);
        const address = parseAddress(text) ?? assert.fail();
        assert.equal(
          contains(block, address),
          list.check(text, version),
          `${text} in ${toText(base)}/${prefixBits}`,
        );
      }
    }),
    { numRuns: 300 },
  );
});

test('says in which block a refused address lies, the narrowest of several', () => {
  assert.deepEqual(judgeAddress('127.0.0.1'), { allowed: false, reason: 'loopback, 127.0.0.0/8' });
  assert.deepEqual(judgeAddress('::1'), { allowed: false, reason: 'loopback, ::1/128' });
  assert.deepEqual(judgeAddress('2001::1'), { allowed: false, reason: 'Teredo, 2001::/32' });
  assert.deepEqual(judgeAddress('4000::'), { allowed: false, reason: 'reserved, outside 2000::/3' });
});
