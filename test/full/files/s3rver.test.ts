/**
 * Files in a bucket of s3rver 3.7.1, a double that others wrote. It checks neither signatures nor digests, gives wrong ranges where a part begins
 * at 0, and cannot list a second page: what it does right is used, and what it does wrong is refused and never passed on as a file.
 *
 * It takes 116 packages: they are a package of their own with its own lockfile (test/full/files/s3rver), installed here,
 * and these tests skip where the registry cannot be reached.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { FileMissing, type Place, placePrefix } from '../../../src/files/place.ts';
import { openBucket } from '../../files/open-bucket.ts';
import { arrive, keepNew, keysOf, readPart } from '../../files/place-contract.ts';
import { installLocked } from '../../harness/npm-install.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const MiB = 1_048_576;
let missing = '';
let place: Place | undefined;
let stop = (): void => undefined;

before(
  async () => {
    const folder = temporaryFolder();
    cpSync(fileURLToPath(new URL('s3rver', import.meta.url)), folder, { recursive: true });
    missing = await installLocked(folder);
    if (missing !== '') return;
    const child = spawn(process.execPath, [join(folder, 'serve.mjs'), temporaryFolder()], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    stop = () => void child.stdin.end();
    const [url] = (await once(child.stdout, 'data')) as [Buffer];
    const filesUrl = `s3://files?endpoint=${url.toString().trim()}`;
    ({ place } = await openBucket({ filesUrl, credential: { accessKey: 'S3RVER', secretKey: 'S3RVER' } }));
  },
  { timeout: 3 * 60_000 },
);

after(async () => {
  await place?.close();
  stop();
});

function onS3rver(title: string, run: (place: Place) => Promise<void>): void {
  test(title, async (context) => {
    if (place === undefined) context.skip(missing);
    else await run(place);
  });
}

onS3rver('keeps short files and long ones, and reads parts of them', async (bucket) => {
  for (const bytes of [1, 1000, 11 * MiB]) {
    const { key, octets } = await keepNew(bucket, randomBytes(bytes));
    assert.ok((await readPart(bucket, key, 0, bytes)).equals(octets));
    if (bytes > 1) assert.deepEqual(await readPart(bucket, key, 1, bytes), octets.subarray(1));
    assert.deepEqual(await keysOf(bucket, key), [key]);
  }
});

onS3rver('has no file before it is kept, and none after it is removed', async (bucket) => {
  const file = arrive(bucket, randomBytes(100));
  await assert.rejects(bucket.read(file.key, 0, 100), FileMissing);
  await bucket.keep(file.key, file);
  await bucket.remove(file.key);
  await bucket.remove(file.key);
  await assert.rejects(bucket.read(file.key, 0, 100), FileMissing);
  assert.deepEqual(await keysOf(bucket, placePrefix(file.id)), []);
});

onS3rver('never passes on another part than the one that was asked for', async (bucket) => {
  const { key, octets } = await keepNew(bucket, randomBytes(1000));
  for (const [first, end] of [
    [0, 1],
    [0, 10],
    [5, 6],
    [998, 1000],
    [0, 999],
  ] as const) {
    const read = await readPart(bucket, key, first, end).catch(() => undefined);
    assert.ok(read === undefined || read.equals(octets.subarray(first, end)), `${first} to ${end}`);
  }
});
