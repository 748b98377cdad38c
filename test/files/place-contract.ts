/** The promises of src/files/place.ts as tests that know nothing of a place. Every place goes through it unchanged; no tests by itself. */
import assert from 'node:assert/strict';
import { createHash, randomBytes, randomInt } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { FileMissing, type KeptFile, type Place, placeKey, placePrefix } from '../../src/files/place.ts';

/** A place over nothing that was kept before, until it is disposed of. */
export type OpenedPlace = { readonly place: Place; dispose(): Promise<void> };

/** A local file that has arrived, and the key for it. */
export type ArrivedFile = KeptFile & { readonly id: string; readonly key: string; readonly octets: Buffer };

const idDigits = '0123456789abcdefghjkmnpqrstvwxyz';

export function newFileId(): string {
  return `file_${Array.from({ length: 26 }, () => idDigits[randomInt(32)]).join('')}`;
}

export function arrive({ incoming }: Place, octets: Buffer, id = newFileId()): ArrivedFile {
  const sha256 = createHash('sha256').update(octets).digest();
  const path = join(incoming, id);
  writeFileSync(path, octets);
  return { id, key: placeKey(id, sha256), path, bytes: octets.length, sha256, octets };
}

export async function keepNew(place: Place, octets: Buffer, id?: string): Promise<ArrivedFile> {
  const file = arrive(place, octets, id);
  await place.keep(file.key, file);
  return file;
}

export async function readPart(place: Place, key: string, first: number, end: number): Promise<Buffer> {
  return buffer(await place.read(key, first, end));
}

export async function keysOf(place: Place, prefix: string): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { key } of place.list(prefix)) found.push(key);
  return found.sort();
}

/** An id that ends like another, and so is kept beside it. */
function idBeside(id: string): string {
  return newFileId().slice(0, -2) + id.slice(-2);
}

/** @param longBytes a length that the place keeps or reads in several parts */
export function placeContract(name: string, open: () => Promise<OpenedPlace>, longBytes: number): void {
  describe(`place contract: ${name}`, () => {
    let opened: OpenedPlace | undefined;
    const placed = (): Place => {
      if (opened === undefined) throw new Error('the place is not open yet');
      return opened.place;
    };
    before(async () => {
      opened = await open();
    });
    after(() => opened?.dispose());
    keepingTests(placed, longBytes);
    readingTests(placed, longBytes);
    partsTest(placed, longBytes);
    removingTests(placed);
    listingTests(placed);
  });
}

function keepingTests(placed: () => Place, longBytes: number): void {
  test('keeps a file, whose octets are then read', async () => {
    const { key, octets } = await keepNew(placed(), Buffer.from('three octets, and more'));
    assert.deepEqual(await readPart(placed(), key, 0, octets.length), octets);
  });

  test('keeps a file without octets', async () => {
    const { key } = await keepNew(placed(), Buffer.alloc(0));
    assert.equal((await readPart(placed(), key, 0, 0)).length, 0);
    assert.deepEqual(await keysOf(placed(), key), [key]);
  });

  test('keeps a long file', async () => {
    const { key, octets } = await keepNew(placed(), randomBytes(longBytes));
    assert.ok((await readPart(placed(), key, 0, longBytes)).equals(octets));
  });

  test('keeps the same file again without effect', async () => {
    const place = placed();
    const file = await keepNew(place, randomBytes(1000));
    if (!existsSync(file.path)) writeFileSync(file.path, file.octets);
    await place.keep(file.key, file);
    assert.deepEqual(await readPart(place, file.key, 0, 1000), file.octets);
    assert.deepEqual(await keysOf(place, placePrefix(file.id)), [file.key]);
  });

  test('keeps many files at once, also beside each other', async () => {
    const place = placed();
    const id = newFileId();
    const ids = Array.from({ length: 24 }, (_, at) => (at % 2 === 0 ? idBeside(id) : newFileId()));
    const files = await Promise.all(ids.map((each, at) => keepNew(place, randomBytes(at * 100), each)));
    const read = await Promise.all(files.map(({ key, bytes }) => readPart(place, key, 0, bytes)));
    assert.deepEqual(
      read,
      files.map(({ octets }) => octets),
    );
  });

  test('keeps nothing of a local file that has another length', async () => {
    const place = placed();
    for (const difference of [-1, 1]) {
      const file = arrive(place, randomBytes(1000));
      await assert.rejects(place.keep(file.key, { ...file, bytes: file.bytes + difference }));
      assert.ok(existsSync(file.path), 'the local file is still there');
      assert.deepEqual(await keysOf(place, placePrefix(file.id)), []);
    }
  });

  test('takes no text that is not a key', async () => {
    const place = placed();
    const { key, ...file } = arrive(place, Buffer.from('x'));
    const shard = key.slice(0, 2);
    const bad = [
      '',
      '.',
      '../x',
      key.slice(1),
      `${key}0`,
      `/${key}`,
      key.toUpperCase(),
      `${shard}/../${key}`,
    ].concat(key.replace('/', '//'), key.replace('.', '/'), `00${key.slice(2)}`, `${key}\0`, `${key}\n`);
    for (const text of bad) {
      await assert.rejects(place.keep(text, file), JSON.stringify(text));
      await assert.rejects(place.read(text, 0, 1), JSON.stringify(text));
      await assert.rejects(place.remove(text), JSON.stringify(text));
    }
    assert.ok(existsSync(file.path));
  });
}

function partsTest(placed: () => Place, longBytes: number): void {
  test('reads several parts in turn, in chunks of one part each', async () => {
    const place = placed();
    const { key, octets } = await keepNew(place, randomBytes(longBytes));
    const extents = [
      { first: 5, end: 8 },
      { first: longBytes - 2, end: longBytes },
      { first: 0, end: longBytes - 1 },
    ];
    const [{ first, end } = { first: 0, end: 0 }, ...further] = extents;
    const chunks: Buffer[] = [];
    for await (const chunk of await place.read(key, first, end, further)) chunks.push(chunk);
    assert.deepEqual(
      chunks.slice(0, 2).map(({ length }) => length),
      [3, 2],
    );
    const expected = extents.map((extent) => octets.subarray(extent.first, extent.end));
    assert.ok(Buffer.concat(chunks).equals(Buffer.concat(expected)));
  });
}

function readingTests(placed: () => Place, longBytes: number): void {
  test('reads any part', async () => {
    const place = placed();
    const { key, octets } = await keepNew(place, randomBytes(10_000));
    const parts = [
      [0, 1],
      [0, 9999],
      [9999, 10_000],
      [1, 10_000],
      [5000, 5003],
      [0, 0],
      [77, 77],
      [10_000, 10_000],
    ];
    for (const [first = 0, end = 0] of parts) {
      assert.deepEqual(
        await readPart(place, key, first, end),
        octets.subarray(first, end),
        `${first} to ${end}`,
      );
    }
  });

  test('reads parts of a long file', async () => {
    const place = placed();
    const { key, octets } = await keepNew(place, randomBytes(longBytes));
    const middle = Math.floor(longBytes / 2);
    for (const [first, end] of [
      [0, middle],
      [middle - 1, middle + 1],
      [middle, longBytes],
      [longBytes - 1, longBytes],
    ] as const) {
      assert.ok(
        (await readPart(place, key, first, end)).equals(octets.subarray(first, end)),
        `${first} to ${end}`,
      );
    }
  });

  test('rejects before the first octet where there is no file', async () => {
    const place = placed();
    const { key } = arrive(place, Buffer.from('never kept'));
    await assert.rejects(place.read(key, 0, 10), FileMissing);
    await assert.rejects(place.read(key, 0, 0), FileMissing);
  });

  test('rejects a part beyond the end, and gives no shorter one', async () => {
    const place = placed();
    const { key } = await keepNew(place, Buffer.from('0123456789'));
    await assert.rejects(place.read(key, 0, 11), FileMissing);
    await assert.rejects(place.read(key, 10, 11), FileMissing);
    await assert.rejects(place.read(key, 20, 30), FileMissing);
    await assert.rejects(place.read(key, 20, 20), FileMissing);
  });

  test('ends a stream that its reader leaves, however often', async () => {
    const place = placed();
    const { key, octets } = await keepNew(place, randomBytes(longBytes));
    for (let count = 0; count < 40; count += 1) {
      const stream = await place.read(key, 0, longBytes);
      if (count % 2 === 0) await new Promise((resolve) => stream.once('data', resolve));
      stream.destroy();
      await new Promise((resolve) => (stream.closed ? resolve(undefined) : stream.once('close', resolve)));
    }
    assert.deepEqual(await readPart(place, key, 0, 10), octets.subarray(0, 10));
  });
}

function removingTests(placed: () => Place): void {
  test('removes a file, and nothing where there is none', async () => {
    const place = placed();
    const { key, id } = await keepNew(place, randomBytes(100));
    const beside = await keepNew(place, randomBytes(100), idBeside(id));
    await place.remove(key);
    await assert.rejects(place.read(key, 0, 1), FileMissing);
    await place.remove(key);
    assert.deepEqual(await readPart(place, beside.key, 0, 100), beside.octets);
  });

  test('keeps a file again that was removed', async () => {
    const place = placed();
    const { key, id, octets } = await keepNew(place, randomBytes(100));
    await place.remove(key);
    await keepNew(place, octets, id);
    assert.deepEqual(await readPart(place, key, 0, 100), octets);
  });
}

function listingTests(placed: () => Place): void {
  test('lists the keys of a file, of those beside it, and of all', async () => {
    const place = placed();
    const id = newFileId();
    const own = [
      await keepNew(place, Buffer.from('one'), id),
      await keepNew(place, Buffer.from('other'), id),
    ];
    const beside = await Promise.all([1, 2, 3].map(() => keepNew(place, randomBytes(9), idBeside(id))));
    const far = await keepNew(place, randomBytes(9));
    const keys = (files: readonly ArrivedFile[]): readonly string[] => files.map(({ key }) => key).sort();
    assert.deepEqual(await keysOf(place, placePrefix(id)), keys(own));
    const shard = await keysOf(place, `${id.slice(-2)}/`);
    for (const key of keys([...own, ...beside])) assert.ok(shard.includes(key));
    const all = await keysOf(place, '');
    for (const key of keys([...own, ...beside, far])) assert.ok(all.includes(key));
    assert.equal(new Set(all).size, all.length, 'no key twice');
    assert.deepEqual(await keysOf(place, placePrefix(newFileId())), []);
  });

  test('lists the length of each file, and none that is arriving', async () => {
    const place = placed();
    const { key, id } = await keepNew(place, randomBytes(4321));
    const arriving = arrive(place, randomBytes(10));
    for await (const found of place.list(placePrefix(id))) assert.deepEqual(found, { key, bytes: 4321 });
    assert.ok(!(await keysOf(place, '')).includes(arriving.key));
  });
}
