/** How a table of failures of a bucket is run: each row is one failure and its outcome; no tests by itself. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { FileMissing, PlaceFull, placePrefix } from '../../src/files/place.ts';
import { StoreUnavailable } from '../../src/store/store.ts';
import { type S3Double, startS3Double } from '../harness/s3-double.ts';
import type { FaultKind, FaultOptions } from '../harness/s3-faults.ts';
import { type OpenedBucket, openBucket } from './open-bucket.ts';
import { arrive, keysOf, readPart } from './place-contract.ts';

export type FaultBench = OpenedBucket & {
  readonly double: S3Double;
  readonly kinds: () => readonly string[];
};

export async function startFaultBench(context: TestContext, timeoutMs = 400): Promise<FaultBench> {
  const double = await startS3Double({}, context);
  const opened = await openBucket({ filesUrl: double.filesUrl(), credential: double.credential, timeoutMs });
  context.after(() => opened.place.close());
  return { ...opened, double, kinds: () => opened.observed.map(({ kind }) => kind) };
}

type Outcome = 'fine' | 'unavailable' | 'differs' | 'full' | 'missing';

export type FaultRow = readonly [fault: FaultKind, times: number, outcome: Outcome, on?: FaultOptions['on']];

export const expectedError = {
  unavailable: StoreUnavailable,
  differs: StoreUnavailable,
  full: PlaceFull,
  missing: FileMissing,
};

export const observedOf = {
  fine: [],
  missing: [],
  full: [],
  unavailable: ['bucket-failed'],
  differs: ['bucket-differs'],
};

export function titleOf([fault, times, outcome]: FaultRow): string {
  const result = {
    fine: 'is survived',
    unavailable: 'is refused',
    differs: 'is refused as other octets',
    full: 'is a full place',
    missing: 'is a missing file',
  };
  return `${fault} ${times === 1 ? 'once' : `${times} times`} ${result[outcome]}`;
}

const isPut: FaultOptions['on'] = ({ method }) => method === 'PUT';

/** A file is kept whole, or nothing of it. */
export function testKeeping(row: FaultRow, bytes: number, where = ''): void {
  const [fault, times, outcome, on = isPut] = row;
  test(`${titleOf(row)}${where}`, async (context) => {
    const { place, double, kinds } = await startFaultBench(context);
    const file = arrive(place, randomBytes(bytes));
    double.fault(fault, { times, on });
    if (outcome === 'fine') {
      await place.keep(file.key, file);
      assert.ok((await readPart(place, file.key, 0, bytes)).equals(file.octets));
    } else {
      await assert.rejects(place.keep(file.key, file), expectedError[outcome]);
      assert.deepEqual(await keysOf(place, placePrefix(file.id)), [], 'nothing is kept');
    }
    assert.deepEqual(kinds(), observedOf[outcome]);
    assert.equal(double.uploads.size, 0, 'no upload is left');
  });
}
