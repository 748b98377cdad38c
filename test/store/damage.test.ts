/** Damaged, empty and missing files: refused with words, never served as fewer rows. */
import assert from 'node:assert/strict';
import {
  closeSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { always } from '../../src/model/filter.ts';
import type { Observation } from '../../src/observe/observation.ts';
import { FolderInUse } from '../../src/store/sqlite/home.ts';
import { DamagedStore } from '../../src/store/sqlite/home-state.ts';
import { StoreUnavailable } from '../../src/store/store.ts';
import { commitAll, idsOf, put, rowAt, things } from '../contract/fixture.ts';
import { type Folder, folderFor } from './folder.ts';

const pageBytes = 4096;
const rows = 400;

async function filled(folder: Folder): Promise<string> {
  const store = await folder.open();
  const changes = Array.from({ length: rows }, (_, at) =>
    put(things, `t${at}`, { name: `n${at} ${'x'.repeat(300)}` }),
  );
  for (const change of changes) await commitAll(store, change);
  await store.close();
  return join(folder.path, 'comity.db');
}

/** Offsets of pages of one kind: 13 is a leaf of a table. */
function pagesOf(path: string, kind: number): readonly number[] {
  const octets = readFileSync(path);
  const pages = Array.from({ length: octets.length / pageBytes }, (_, at) => at * pageBytes);
  return pages.slice(1).filter((offset) => octets[offset] === kind);
}

function overwrite(path: string, offset: number, octets: Uint8Array): void {
  const file = openSync(path, 'r+');
  writeSync(file, octets, 0, octets.length, offset);
  closeSync(file);
}

test('a page that a flipped bit makes shorter is refused at the start, and not served as fewer rows', async (context) => {
  const folder = folderFor(context);
  const path = await filled(folder);
  let damaged = 0;
  for (const page of pagesOf(path, 13)) {
    const cells = readFileSync(path).readUInt16BE(page + 3);
    if (cells < 8) continue;
    const count = Buffer.alloc(2);
    count.writeUInt16BE(cells ^ 4);
    overwrite(path, page + 3, count);
    await assert.rejects(
      folder.open(),
      (error: Error) =>
        error instanceof DamagedStore &&
        /^the store .*comity\.db is damaged \(.*\): .*comity restore/.test(error.message),
    );
    count.writeUInt16BE(cells);
    overwrite(path, page + 3, count);
    damaged += 1;
  }
  assert.ok(damaged > 3);
  assert.equal((await idsOf(await folder.open(), always)).length, rows);
});

test('a file at the bound of the start is read, one octet over it is opened unread', async (context) => {
  const folder = folderFor(context);
  const path = await filled(folder);
  for (const page of pagesOf(path, 13).slice(-4)) overwrite(path, page, Buffer.alloc(pageBytes, 0xa5));
  const bytes = 2 ** 20;
  assert.ok(statSync(path).size < bytes);
  truncateSync(path, bytes);
  await assert.rejects(folder.open({ startCheckMebibytes: 1 }), DamagedStore);
  truncateSync(path, bytes + 1);
  await (await folder.open({ startCheckMebibytes: 1 })).close();
});

test('damage that is found in operation is reported once, and then refuses every read and write', async (context) => {
  const folder = folderFor(context);
  const path = await filled(folder);
  for (const page of pagesOf(path, 13).slice(-4)) overwrite(path, page, Buffer.alloc(pageBytes, 0xa5));
  const observed: Observation[] = [];
  const options = { startCheckMebibytes: 0, observe: (fact: Observation) => void observed.push(fact) };
  const store = await folder.open(options);
  const refused = (error: unknown): boolean =>
    error instanceof StoreUnavailable && error.fault === 'storage_damaged';
  await assert.rejects(idsOf(store, always), refused);
  await new Promise((resolve) => setImmediate(resolve));
  await assert.rejects(async () => rowAt(store, things, 't0'), refused);
  await assert.rejects(store.commit({ changes: [put(things, 'new', {})], events: [] }), refused);
  await assert.rejects(async () => store.count('things', always), refused);
  await assert.rejects(async () => store.ping(), refused);
  assert.equal(observed.filter(({ kind }) => kind === 'store-failed').length, 1);
});

test('an empty file, one that is none, and a log without its file are refused', async (context) => {
  const folder = folderFor(context);
  const path = await filled(folder);
  const whole = readFileSync(path);
  for (const [octets, fault] of [
    [Buffer.alloc(0), /the file is empty/],
    [Buffer.alloc(8192, 0x5a), /not a database/],
    [whole.subarray(0, whole.length - 3 * pageBytes), /damaged \(/],
  ] as const) {
    writeFileSync(path, octets);
    await assert.rejects(
      folder.open(),
      (error: Error) => error instanceof DamagedStore && fault.test(error.message),
    );
    assert.equal(statSync(path).size, octets.length);
  }
  rmSync(path);
  writeFileSync(`${path}-wal`, 'frames');
  await assert.rejects(folder.open(), /is damaged \(the file is missing, but its log is there\)/);
  assert.ok(statSync(path, { throwIfNoEntry: false }) === undefined);
});

test('a lock file that is missing is made again, and one that was removed keeps a second store out all the same', async (context) => {
  const folder = folderFor(context);
  await filled(folder);
  const lock = join(folder.path, 'comity.lock');
  rmSync(lock);
  const store = await folder.open();
  rmSync(lock);
  await assert.rejects(
    folder.open(),
    (error: Error) => error instanceof FolderInUse && error.message.includes('comity.lock was removed'),
  );
  await commitAll(store, put(things, 'goes on', {}));
});
