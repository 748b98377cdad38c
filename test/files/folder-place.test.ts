/** Files in a folder: the contract of every place, and what is particular to a folder. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { ConfigurationError } from '../../src/config/inspection.ts';
import { openFolderPlace } from '../../src/files/folder-place.ts';
import { FileMissing, PlaceFull, placePrefix } from '../../src/files/place.ts';
import { StoreUnavailable } from '../../src/store/store.ts';
import { fill, smallDisk } from '../harness/small-disk.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';
import { arrive, keepNew, keysOf, newFileId, placeContract, readPart } from './place-contract.ts';

const MiB = 1_048_576;

placeContract(
  'folder',
  async () => {
    const place = await openFolderPlace(join(temporaryFolder(), 'files'));
    return { place, dispose: () => place.close() };
  },
  3 * MiB + 17,
);

test('takes a file over by renaming it, readable by its owner alone', async () => {
  const root = join(temporaryFolder(), 'a', 'files');
  const place = await openFolderPlace(root);
  const arrived = arrive(place, randomBytes(10));
  chmodSync(arrived.path, 0o644);
  const { ino } = statSync(arrived.path);
  await place.keep(arrived.key, arrived);
  assert.ok(!existsSync(arrived.path));
  const kept = statSync(join(root, arrived.key));
  assert.equal(kept.ino, ino);
  assert.equal(kept.mode & 0o777, 0o600);
  for (const folder of [root, join(root, arrived.key.slice(0, 2)), place.incoming]) {
    assert.equal(statSync(folder).mode & 0o777, 0o700, folder);
  }
});

test('keeps a file again whose local file it took over before', async () => {
  const place = await openFolderPlace(temporaryFolder());
  const arrived = await keepNew(place, randomBytes(10));
  await place.keep(arrived.key, arrived);
  assert.deepEqual(await readPart(place, arrived.key, 0, 10), arrived.octets);
  const never = { ...arrived, key: arrived.key.replace(/.$/, (last) => (last === '0' ? '1' : '0')) };
  await assert.rejects(place.keep(never.key, never), StoreUnavailable);
});

test('is shared by several processes', async () => {
  const root = temporaryFolder();
  const [one, other] = [await openFolderPlace(root), await openFolderPlace(root)];
  const { key, octets } = await keepNew(one, randomBytes(10));
  assert.deepEqual(await readPart(other, key, 0, 10), octets);
  await other.remove(key);
  await assert.rejects(one.read(key, 0, 1), FileMissing);
});

test('leaves files with other names alone, and lists none of them', async () => {
  const root = temporaryFolder();
  const place = await openFolderPlace(root);
  const { key } = await keepNew(place, randomBytes(10));
  const shard = key.slice(0, 2);
  mkdirSync(join(root, 'zz'), { recursive: true });
  mkdirSync(join(root, shard, key.slice(3, -1)), { recursive: true });
  symlinkSync('/etc/passwd', join(root, shard, `file_${'0'.repeat(24)}${shard}.${'0'.repeat(64)}`));
  const strange = [
    'README',
    'zz/README',
    `${shard}/README`,
    `${shard}/.nfs0001`,
    `${shard}/${key.slice(3)}.part`,
  ];
  for (const name of strange) writeFileSync(join(root, name), 'mine');
  assert.deepEqual(await keysOf(place, ''), [key]);
  await place.remove(key);
  for (const name of strange) assert.equal(readFileSync(join(root, name), 'utf8'), 'mine');
});

test('follows no symbolic link', async () => {
  const root = temporaryFolder();
  const place = await openFolderPlace(root);
  const { key } = arrive(place, randomBytes(10));
  mkdirSync(join(root, key.slice(0, 2)));
  symlinkSync('/etc/passwd', join(root, key));
  await assert.rejects(place.read(key, 0, 1), StoreUnavailable);
});

test('ends a stream with an error where the file turns out to be shorter', async () => {
  const root = temporaryFolder();
  const place = await openFolderPlace(root);
  const { key } = await keepNew(place, randomBytes(4 * MiB));
  const stream = await place.read(key, 0, 4 * MiB);
  truncateSync(join(root, key), 2 * MiB + 1);
  await assert.rejects(buffer(stream), FileMissing);
});

test('goes on reading a file that is removed', async () => {
  const place = await openFolderPlace(temporaryFolder());
  const { key, octets } = await keepNew(place, randomBytes(4 * MiB));
  const stream = await place.read(key, 0, 4 * MiB);
  await place.remove(key);
  assert.ok((await buffer(stream)).equals(octets));
});

test('holds no file open after its streams have ended', async () => {
  const place = await openFolderPlace(temporaryFolder());
  const { key } = await keepNew(place, randomBytes(MiB));
  const openFiles = (): number => readdirSync('/proc/self/fd').length;
  const before = openFiles();
  for (let count = 0; count < 50; count += 1) {
    await readPart(place, key, 0, MiB);
    const left = await place.read(key, 0, MiB);
    left.once('data', () => left.destroy());
    await new Promise((resolve) => left.once('close', resolve));
    await assert.rejects(place.read(key, 0, MiB + 1), FileMissing);
  }
  assert.ok(openFiles() <= before + 2, `${openFiles()} after ${before}`);
});

test('refuses a folder that cannot be used, and names it', async () => {
  const file = join(temporaryFolder(), 'a-file');
  writeFileSync(file, '');
  for (const path of [file, join(file, 'files'), '/proc/files']) {
    await assert.rejects(openFolderPlace(path), (error) => {
      assert.ok(error instanceof ConfigurationError);
      assert.match(error.message, new RegExp(`^the folder of files ${path} cannot be used: `));
      return true;
    });
  }
});

test('keeps nothing on a full disk, and goes on when there is room again', async (context) => {
  // A folder in memory takes no room of its own, so the disk is full when it can hold no further file.
  const disk = smallDisk(context, '1m,nr_inodes=12');
  if (disk === undefined) return;
  const place = await openFolderPlace(join(disk, 'files'));
  const kept = await keepNew(place, randomBytes(100_000));
  const arrived = arrive(place, randomBytes(10), unlike(kept.id));
  const fillers: string[] = [];
  while (fill(join(disk, `filler-${fillers.length}`))) fillers.push(join(disk, `filler-${fillers.length}`));
  await assert.rejects(place.keep(arrived.key, arrived), PlaceFull);
  assert.deepEqual(await keysOf(place, placePrefix(arrived.id)), []);
  assert.ok(existsSync(arrived.path));
  assert.deepEqual(await readPart(place, kept.key, 0, 100_000), kept.octets);
  for (const filler of fillers) rmSync(filler);
  await place.keep(arrived.key, arrived);
  assert.deepEqual(await readPart(place, arrived.key, 0, 10), arrived.octets);
});

/** An id that is kept in another folder. */
function unlike(id: string): string {
  const other = newFileId();
  return other.slice(-2) === id.slice(-2) ? unlike(id) : other;
}
