import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  CapsuleReader,
  datagramHeadBytes,
  writeDatagramHead,
  writeVariableInteger,
} from '../../src/http/syntax/capsule.ts';

const datagramBytesMax = 100;

type Told = { readonly value: string; readonly valueBytes: number };

function capsule(type: number, value: Uint8Array, statedBytes = value.length): Buffer {
  const bytes = Buffer.alloc(16 + value.length);
  const at = writeVariableInteger(bytes, writeVariableInteger(bytes, 0, type), statedBytes);
  bytes.set(value, at);
  return bytes.subarray(0, at + value.length);
}

function reading(stopAfter = Number.POSITIVE_INFINITY) {
  const told: Told[] = [];
  const reader = new CapsuleReader({
    datagramBytesMax,
    onDatagram(value, valueBytes) {
      told.push({ value: Buffer.from(value).toString('latin1'), valueBytes });
      return told.length < stopAfter;
    },
  });
  return { reader, told };
}

const text = (value: string): Told => ({ value, valueBytes: value.length });

const stream = Buffer.concat([
  capsule(0, Buffer.from('first')),
  capsule(0x1f, Buffer.alloc(5000, 'x')),
  capsule(0, Buffer.alloc(0)),
  capsule(2 ** 40, Buffer.from('unknown')),
  capsule(0, Buffer.alloc(100, 'y')),
  capsule(0, Buffer.concat([Buffer.from('12345678'), Buffer.alloc(93, 'z')])),
  // Type 0, and a length, in eight octets each.
  Buffer.from('c000000000000000c000000000000004', 'hex'),
  Buffer.from('last'),
]);
const expected = [
  text('first'),
  text(''),
  text('y'.repeat(100)),
  { value: '12345678', valueBytes: 101 },
  text('last'),
];

for (const size of [1, 2, 3, 7, 15, 16, 17, 64, 101, 1000, stream.length]) {
  test(`reads capsules that come in chunks of ${size} octets`, () => {
    const { reader, told } = reading();
    for (let at = 0; at < stream.length; at += size) reader.read(stream.subarray(at, at + size));
    assert.deepEqual(told, expected);
    assert.ok(reader.isBetweenCapsules);
  });
}

test('knows at every octet whether the stream may end there', () => {
  const one = capsule(0, Buffer.from('abc'));
  const other = capsule(7, Buffer.from('abc'));
  for (const bytes of [one, other]) {
    const { reader } = reading();
    for (let at = 0; at < bytes.length; at += 1) {
      assert.equal(reader.isBetweenCapsules, at === 0, `${at}`);
      reader.read(bytes.subarray(at, at + 1));
    }
    assert.ok(reader.isBetweenCapsules);
  }
});

test('hands over what lies in one chunk without a copy', () => {
  const chunk = capsule(0, Buffer.from('abc'));
  let value: Uint8Array | undefined;
  const reader = new CapsuleReader({
    datagramBytesMax,
    onDatagram: (given) => {
      value = given;
      return true;
    },
  });
  reader.read(chunk);
  assert.equal(value?.buffer, chunk.buffer);
});

test('reads nothing more once the listener has said so', () => {
  const { reader, told } = reading(2);
  reader.read(stream);
  reader.read(stream);
  assert.deepEqual(told, expected.slice(0, 2));
});

test('passes over a value of any length without keeping it', () => {
  const { reader, told } = reading();
  reader.read(capsule(0x40, Buffer.alloc(0), 2 ** 50));
  const chunk = Buffer.alloc(65_536);
  const before = process.memoryUsage().arrayBuffers;
  for (let count = 0; count < 2000; count += 1) reader.read(chunk);
  assert.ok(process.memoryUsage().arrayBuffers - before < 1_000_000);
  assert.deepEqual(told, []);
  assert.ok(!reader.isBetweenCapsules);
});

test('takes no memory for octets that were only announced', () => {
  const readers = Array.from({ length: 500 }, () => {
    const reader = new CapsuleReader({ datagramBytesMax: 65_535, onDatagram: () => true });
    return reader;
  });
  const before = process.memoryUsage().arrayBuffers;
  for (const reader of readers) reader.read(capsule(0, Buffer.from('a'), 65_535));
  // 500 values of 65,535 octets would be 32 MB.
  assert.ok(process.memoryUsage().arrayBuffers - before < 2_500_000);
});

for (const valueBytes of [0, 1, 63, 64, 16_383, 16_384, 65_535]) {
  test(`writes the head of a datagram of ${valueBytes} octets`, () => {
    const bytes = Buffer.alloc(datagramHeadBytes(valueBytes) + valueBytes, 'p');
    assert.equal(writeDatagramHead(bytes, 0, valueBytes), datagramHeadBytes(valueBytes));
    let valueRead = -1;
    new CapsuleReader({
      datagramBytesMax: 65_535,
      onDatagram: (_value, given) => {
        valueRead = given;
        return true;
      },
    }).read(bytes);
    assert.equal(valueRead, valueBytes);
  });
}
