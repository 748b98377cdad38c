/** Properties of capsules and of what they are made of (RFC 9297 §3.2, RFC 9000 §16, RFC 9298 §3). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  CapsuleReader,
  datagramHeadBytes,
  encodedVariableIntegerBytes,
  readVariableInteger,
  writeDatagramHead,
  writeVariableInteger,
} from '../../../src/http/syntax/capsule.ts';
import { parseUdpTarget } from '../../../src/http/syntax/request-target.ts';

import { bounds, fieldText } from './bounds.ts';

const datagramBytesMax = 64;
/** Mostly small values, so that capsules and their ends occur. */
const octets = fc
  .array(fc.oneof(fc.constantFrom(0, 0, 1, 2, 3, 0x40, 0x80, 0xc0), fc.integer({ min: 0, max: 255 })))
  .map((values) => Uint8Array.from(values));

function datagramsIn(chunks: readonly Uint8Array[]) {
  const told: string[] = [];
  const reader = new CapsuleReader({
    datagramBytesMax,
    onDatagram(value, valueBytes) {
      assert.ok(value.length <= datagramBytesMax && value.length <= valueBytes);
      assert.equal(value.length, valueBytes <= datagramBytesMax ? valueBytes : 8);
      told.push(`${valueBytes}:${Buffer.from(value).toString('hex')}`);
      return true;
    },
  });
  for (const chunk of chunks) reader.read(chunk);
  return { told, whole: reader.isBetweenCapsules };
}

function cut(bytes: Uint8Array, sizes: readonly number[]): readonly Uint8Array[] {
  const chunks: Uint8Array[] = [];
  let at = 0;
  for (const size of sizes) {
    chunks.push(bytes.subarray(at, at + size));
    at += size;
  }
  return [...chunks, bytes.subarray(at)];
}

test('any octets are read alike however they are cut', () => {
  fc.assert(
    fc.property(octets, fc.array(fc.integer({ min: 0, max: 9 })), (bytes, sizes) => {
      assert.deepEqual(datagramsIn(cut(bytes, sizes)), datagramsIn([bytes]));
    }),
    bounds,
  );
});

test('what is written as datagrams is read as the same, whatever stands between', () => {
  const part = fc.record({
    value: fc.uint8Array({ maxLength: 200 }),
    before: fc.uint8Array({ maxLength: 20 }),
  });
  fc.assert(
    fc.property(fc.array(part), fc.array(fc.integer({ min: 0, max: 50 })), (parts, sizes) => {
      const pieces: Uint8Array[] = [];
      for (const { value, before } of parts) {
        // A capsule of a type that nobody knows.
        pieces.push(Uint8Array.from([0x17, before.length, ...before]));
        const bytes = new Uint8Array(datagramHeadBytes(value.length) + value.length);
        bytes.set(value, writeDatagramHead(bytes, 0, value.length));
        pieces.push(bytes);
      }
      const { told, whole } = datagramsIn(cut(Buffer.concat(pieces), sizes));
      assert.ok(whole);
      assert.deepEqual(
        told,
        parts.map(({ value }) => {
          const kept = value.length <= datagramBytesMax ? value : value.subarray(0, 8);
          return `${value.length}:${Buffer.from(kept).toString('hex')}`;
        }),
      );
    }),
    bounds,
  );
});

test('a variable-length integer is read as it was written', () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), fc.nat(8), (value, at) => {
      const bytes = new Uint8Array(16);
      const end = writeVariableInteger(bytes, at, value);
      assert.equal(end - at, encodedVariableIntegerBytes(value));
      assert.equal(readVariableInteger(bytes, at), value);
    }),
    bounds,
  );
});

test('a target never throws, and never gives a port that is none', () => {
  fc.assert(
    fc.property(fieldText, fieldText, (host, port) => {
      for (const target of [
        host,
        `/.well-known/masque/udp/${host}/443/`,
        `/.well-known/masque/udp/${host}/${port}/`,
      ]) {
        const parsed = parseUdpTarget(target);
        if (parsed === undefined) continue;
        assert.ok(parsed.port >= 1 && parsed.port <= 65_535);
        assert.ok(parsed.host !== '' && !parsed.host.includes('%'));
      }
    }),
    bounds,
  );
});
