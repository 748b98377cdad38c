/** Copies from one place to another: complete, compared with the digests, and continued after an interruption. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { appendFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { copyPlace } from '../../src/files/copy-place.ts';
import { openFolderPlace } from '../../src/files/folder-place.ts';
import type { Place } from '../../src/files/place.ts';
import { StoreUnavailable } from '../../src/store/store.ts';
import { type S3Double, startS3Double } from '../harness/s3-double.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';
import { openBucket } from './open-bucket.ts';
import { type ArrivedFile, arrive, keepNew, keysOf, readPart } from './place-contract.ts';

type Places = {
  readonly root: string;
  readonly folder: Place;
  readonly bucket: Place;
  readonly double: S3Double;
};

async function openBoth(context: TestContext): Promise<Places> {
  const root = temporaryFolder();
  const folder = await openFolderPlace(root);
  const double = await startS3Double({ pageMax: 50 }, context);
  const { place: bucket } = await openBucket({ filesUrl: double.filesUrl(), credential: double.credential });
  context.after(() => bucket.close());
  return { root, folder, bucket, double };
}

async function keepSome(place: Place, count = 30): Promise<readonly ArrivedFile[]> {
  return Promise.all(Array.from({ length: count }, (_, at) => keepNew(place, randomBytes(at * 700))));
}

const bytesOf = (files: readonly ArrivedFile[]): number => files.reduce((sum, { bytes }) => sum + bytes, 0);

test('copies every file, there and back, and none twice', async (context) => {
  const { folder, bucket } = await openBoth(context);
  const files = await keepSome(folder);
  arrive(folder, randomBytes(10));
  const copied: string[] = [];
  const there = await copyPlace(folder, bucket, { onCopied: (key) => copied.push(key) });
  assert.deepEqual(there, { copied: 30, bytes: bytesOf(files), known: 0, damaged: [], damagedCount: 0 });
  assert.deepEqual(copied.sort(), await keysOf(bucket, ''));
  const again = await copyPlace(folder, bucket);
  assert.deepEqual(again, { copied: 0, bytes: 0, known: 30, damaged: [], damagedCount: 0 });
  const back = await openFolderPlace(temporaryFolder());
  await copyPlace(bucket, back);
  for (const { key, octets } of files) assert.deepEqual(await readPart(back, key, 0, octets.length), octets);
  for (const { incoming } of [bucket, back]) assert.deepEqual(readdirSync(incoming), []);
});

test('goes on where it was interrupted', async (context) => {
  const { folder, bucket, double } = await openBoth(context);
  await keepSome(folder);
  double.fault('access-denied', {
    on: ({ method }) => method === 'PUT' && double.objects.size >= 10,
    times: 20,
  });
  await assert.rejects(copyPlace(folder, bucket), StoreUnavailable);
  const before = double.objects.size;
  assert.ok(before >= 10 && before < 30);
  for (let left = 20; left > 0; left -= 1) await copyPlace(folder, bucket).catch(() => undefined);
  const { known, copied } = await copyPlace(folder, bucket);
  assert.equal(known + copied, 30);
  assert.deepEqual(await keysOf(bucket, ''), await keysOf(folder, ''));
});

test('ends by a signal, and keeps what it copied', async (context) => {
  const { folder, bucket } = await openBoth(context);
  await keepSome(folder);
  const abort = new AbortController();
  const reason = new Error('enough');
  const copying = copyPlace(folder, bucket, { signal: abort.signal, onCopied: () => abort.abort(reason) });
  await assert.rejects(copying, reason);
  const kept = (await keysOf(bucket, '')).length;
  assert.ok(kept >= 1 && kept < 30);
});

test('copies no octets that are not those of the key, and names them', async (context) => {
  const { root, folder, bucket } = await openBoth(context);
  const [longer, other, ...fine] = await keepSome(folder);
  assert.ok(longer !== undefined && other !== undefined);
  appendFileSync(join(root, longer.key), '!');
  writeFileSync(join(root, other.key), Buffer.alloc(other.bytes, 'x'));
  const { copied, damaged, damagedCount } = await copyPlace(folder, bucket);
  assert.equal(copied, fine.length);
  assert.equal(damagedCount, 2);
  assert.deepEqual([...damaged].sort(), [longer.key, other.key].sort());
  assert.deepEqual(await keysOf(bucket, ''), fine.map(({ key }) => key).sort());
  assert.deepEqual(readdirSync(bucket.incoming), []);
});
