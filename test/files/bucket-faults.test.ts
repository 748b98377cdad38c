/** Each failure of a bucket, and what becomes of a file in it: kept or given whole after further attempts, or refused and reported. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { StoreUnavailable } from '../../src/store/store.ts';
import {
  expectedError,
  type FaultRow,
  observedOf,
  startFaultBench,
  testKeeping,
  titleOf,
} from './bucket-faults.ts';
import { keepNew, keysOf } from './place-contract.ts';

const shortBytes = 50_000;

const keepingRows: readonly FaultRow[] = [
  ['slow-down', 3, 'fine'],
  ['slow-down', 4, 'unavailable'],
  ['internal-error', 1, 'fine'],
  ['cut-request', 1, 'fine'],
  ['cut-request', 4, 'unavailable'],
  ['cut-answer', 1, 'fine'],
  ['stall-answer', 1, 'fine'],
  ['access-denied', 1, 'unavailable'],
  ['no-bucket', 1, 'unavailable'],
  ['storage-full', 1, 'full'],
  ['error-page', 1, 'differs'],
  ['not-found-page', 1, 'unavailable'],
  ['other-checksum', 1, 'differs'],
  ['other-tag', 1, 'fine'],
  ['keep-damaged', 1, 'differs'],
];

describe('keeping a file', () => {
  for (const row of keepingRows) testKeeping(row, shortBytes);
});

/** Faults of reading a part, and of reading a whole file. */
const readingRows: readonly FaultRow[] = [
  ['slow-down', 3, 'fine'],
  ['slow-down', 4, 'unavailable'],
  ['internal-error', 1, 'fine'],
  ['cut-answer', 1, 'fine'],
  ['cut-content', 1, 'fine'],
  ['cut-content', 3, 'fine'],
  ['cut-content', 4, 'unavailable'],
  ['stall-answer', 1, 'fine'],
  ['stall-content', 1, 'fine'],
  ['slow-content', 1, 'fine'],
  ['access-denied', 1, 'unavailable'],
  ['no-bucket', 1, 'unavailable'],
  ['not-found-page', 1, 'unavailable'],
  ['error-page', 1, 'unavailable'],
  ['wrong-range', 1, 'unavailable'],
  ['no-range', 1, 'unavailable'],
  ['longer-part', 1, 'unavailable'],
  ['gzip-coding', 1, 'unavailable'],
];

const readingPartRows: readonly FaultRow[] = [...readingRows, ['whole-for-part', 1, 'unavailable']];
const readingWholeRows: readonly FaultRow[] = [
  ...readingRows,
  ['whole-for-part', 1, 'fine'],
  ['other-octets', 1, 'differs'],
];

for (const [name, rows, first] of [
  ['a part of a file', readingPartRows, 1],
  ['a whole file', readingWholeRows, 0],
] as const) {
  describe(`reading ${name}`, () => {
    for (const row of rows) {
      const [fault, times, outcome] = row;
      test(titleOf(row), async (context) => {
        const { place, double, kinds } = await startFaultBench(context);
        const { key, octets } = await keepNew(place, randomBytes(shortBytes));
        double.fault(fault, { times });
        const given: Buffer[] = [];
        const reading = place.read(key, first, shortBytes).then(async (stream) => {
          for await (const chunk of stream) given.push(chunk);
        });
        if (outcome === 'fine') await reading;
        else await assert.rejects(reading, expectedError[outcome]);
        const all = Buffer.concat(given);
        assert.ok(octets.subarray(first, first + all.length).equals(all), 'no other octet is passed on');
        assert.equal(all.length === shortBytes - first, outcome === 'fine');
        assert.deepEqual(kinds(), observedOf[outcome]);
      });
    }
  });
}

describe('listing and removing', () => {
  const rows: readonly FaultRow[] = [
    ['slow-down', 3, 'fine'],
    ['slow-down', 4, 'unavailable'],
    ['cut-answer', 1, 'fine'],
    ['cut-content', 1, 'fine'],
    ['error-page', 4, 'unavailable'],
    ['access-denied', 1, 'unavailable'],
  ];
  for (const row of rows) {
    const [fault, times, outcome] = row;
    test(`of a listing: ${titleOf(row)}`, async (context) => {
      const { place, double, kinds } = await startFaultBench(context);
      const files = await Promise.all([1, 2, 3, 4, 5].map(() => keepNew(place, randomBytes(5))));
      double.fault(fault, { times, on: ({ query }) => query.has('continuation-token') });
      const listing = keysOf(place, '');
      if (outcome === 'fine') assert.deepEqual(await listing, files.map(({ key }) => key).sort());
      else await assert.rejects(listing, StoreUnavailable);
      assert.deepEqual(kinds(), observedOf[outcome]);
    });
  }
  for (const row of rows.filter(([fault]) => fault !== 'error-page' && fault !== 'cut-content')) {
    const [fault, times, outcome] = row;
    test(`of a removal: ${titleOf(row)}`, async (context) => {
      const { place, double, kinds } = await startFaultBench(context);
      const { key } = await keepNew(place, randomBytes(5));
      double.fault(fault, { times });
      if (outcome === 'fine') await place.remove(key);
      else await assert.rejects(place.remove(key), StoreUnavailable);
      assert.equal(double.objects.has(key), outcome !== 'fine' && fault !== 'cut-answer');
      assert.deepEqual(kinds(), observedOf[outcome]);
    });
  }
});
