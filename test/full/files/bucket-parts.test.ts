/** Each failure of a bucket while a long file is put in parts, or read. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { StoreUnavailable } from '../../../src/store/store.ts';
import { type FaultRow, startFaultBench, testKeeping } from '../../files/bucket-faults.ts';
import { arrive, keepNew } from '../../files/place-contract.ts';
import type { FaultOptions } from '../../harness/s3-faults.ts';

const longBytes = 11 * 1_048_576;

const isPart: FaultOptions['on'] = ({ method, query }) => method === 'PUT' && query.get('partNumber') === '2';
const isCompletion: FaultOptions['on'] = ({ method, query }) => method === 'POST' && query.has('uploadId');

const keepingLongRows: readonly FaultRow[] = [
  ['slow-down', 3, 'fine', isPart],
  ['slow-down', 4, 'unavailable', isPart],
  ['cut-request', 1, 'fine', isPart],
  ['cut-answer', 1, 'fine', isPart],
  ['other-checksum', 1, 'differs', isPart],
  ['access-denied', 1, 'unavailable', isPart],
  ['storage-full', 1, 'full', isPart],
  ['slow-down', 1, 'fine', isCompletion],
  ['error-after-200', 1, 'fine', isCompletion],
  ['cut-answer', 1, 'fine', isCompletion],
  ['error-page', 1, 'fine', isCompletion],
  ['access-denied', 1, 'unavailable', isCompletion],
  ['keep-damaged', 1, 'differs', isCompletion],
];

describe('keeping a file in parts', () => {
  for (const row of keepingLongRows)
    testKeeping(row, longBytes, row[3] === isCompletion ? ', at the completion' : '');
});

test('removes the parts of uploads that could not be ended', async (context) => {
  const { place, double } = await startFaultBench(context);
  const files = [1, 2, 3].map(() => arrive(place, randomBytes(longBytes)));
  const isEnd: FaultOptions['on'] = ({ method, query }) =>
    isPart({ method, query, key: '' }) || method === 'DELETE';
  double.fault('access-denied', { times: 6, on: isEnd });
  for (const file of files) await assert.rejects(place.keep(file.key, file), StoreUnavailable);
  assert.equal(double.uploads.size, 3);
  for (const { key } of files) await place.remove(key);
  assert.equal(double.uploads.size, 0);
});

test('ends a whole file before its last octet where its digest is another', async (context) => {
  const { place, double } = await startFaultBench(context);
  const { key, octets } = await keepNew(place, randomBytes(longBytes));
  double.fault('other-octets');
  const given: Buffer[] = [];
  await assert.rejects(async () => {
    for await (const chunk of await place.read(key, 0, octets.length)) given.push(chunk);
  }, StoreUnavailable);
  assert.ok(Buffer.concat(given).length < octets.length);
});

test('goes on after each of many cuts of a long file', async (context) => {
  const { place, double } = await startFaultBench(context);
  const { key, octets } = await keepNew(place, randomBytes(longBytes));
  double.fault('cut-content', { times: 3 });
  const stream = await place.read(key, 0, octets.length);
  assert.ok((await buffer(stream)).equals(octets));
});
