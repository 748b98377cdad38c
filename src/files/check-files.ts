/**
 * Compares the files of a store with what its place has: every octet of every file with its digest, and every key of the place with the
 * rows. Servers may run meanwhile: what looks wrong is looked at again, and a row comes before its octets, so none of theirs looks left over.
 */
import { createHash } from 'node:crypto';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { allOf } from '../model/filter.ts';
import type { Store } from '../store/store.ts';
import { bytesAt, filesOfStore, inParallel, type StoredFile } from './copy-files.ts';
import { fileOfKey } from './copy-place.ts';
import {
  byAge,
  type FileRecord,
  fileFields,
  filesTable,
  isFileId,
  isKept,
  keyOf,
  recordOf,
} from './file-rows.ts';
import { FileMissing, type Place } from './place.ts';

export type FileFault = {
  readonly id: string;
  readonly what: 'missing' | 'damaged';
  /** `tickets/ID`; absent: an upload that no document has taken. */
  readonly document?: string;
  readonly field?: string;
};

export type FilesReport = {
  readonly files: number;
  readonly bytes: number;
  readonly missing: number;
  /** Files whose octets have another length or digest. */
  readonly damaged: number;
  /** The first of them. */
  readonly faults: readonly FileFault[];
  /** Octets without a row. */
  readonly left: number;
  readonly leftBytes: number;
  /** Rows of files that no document has any more, and of uploads past their lifetime, whose octets are to be removed. */
  readonly waiting: number;
};

export type CheckOptions = {
  readonly store: Pick<Store, 'plan' | 'read' | 'count'>;
  readonly place: Place;
  /** Milliseconds since the epoch before which an upload is past its lifetime. */
  readonly lapsedAt: number;
  readonly onFile?: (files: number) => void;
};

type LeftOver = { readonly bytes: number } & ({ readonly key: string } | { readonly path: string });

/** Faults that are named; the others are counted. */
export const faultsNamedMax = 100;

/** @throws StoreUnavailable */
export async function checkFiles(options: CheckOptions): Promise<FilesReport> {
  const { store, place, onFile } = options;
  const counts = { files: 0, bytes: 0, missing: 0, damaged: 0, left: 0, leftBytes: 0 };
  const faults: FileFault[] = [];
  await inParallel(filesOfStore(store), async (file) => {
    const what = await faultIn(place, file);
    const record = what === undefined ? undefined : await keptRecord(store, file);
    if (what !== undefined && record !== undefined) {
      counts[what] += 1;
      if (faults.length < faultsNamedMax) faults.push(faultOf(file, what, record));
    }
    counts.files += 1;
    counts.bytes += file.bytes;
    onFile?.(counts.files);
  });
  await inParallel(leftOvers(options), async (left) => {
    counts.left += 1;
    counts.leftBytes += left.bytes;
  });
  return { ...counts, faults, waiting: await waitingIn(options) };
}

async function faultIn(place: Place, file: StoredFile): Promise<FileFault['what'] | undefined> {
  const key = keyOf(file);
  const hash = createHash('sha256');
  try {
    for await (const octets of await place.read(key, 0, file.bytes)) hash.update(octets as Buffer);
  } catch (error) {
    if (!(error instanceof FileMissing)) throw error;
    return (await bytesAt(place, key)) === undefined ? 'missing' : 'damaged';
  }
  const isWhole = key.endsWith(hash.digest('hex')) && (await bytesAt(place, key)) === file.bytes;
  return isWhole ? undefined : 'damaged';
}

/** The row of a file, if its octets must be there. */
async function keptRecord(
  store: CheckOptions['store'],
  { id }: Pick<StoredFile, 'id'>,
): Promise<FileRecord | undefined> {
  const row = await store.read(filesTable, id);
  const record = row === undefined ? undefined : recordOf(row);
  return record !== undefined && isKept(record) ? record : undefined;
}

function faultOf({ id }: StoredFile, what: FileFault['what'], record: FileRecord): FileFault {
  const { collection, document, field } = record;
  return {
    ...{ id, what },
    ...(collection === undefined || document === undefined ? {} : { document: `${collection}/${document}` }),
    ...(field === undefined ? {} : { field }),
  };
}

/** The name under which copy-files.ts writes a copy. */
const copyPattern = /^copy\.file_/;
/** A copy that wrote nothing for so long was killed. */
const copyAbandonedMs = 3_600_000;

async function isOld(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && found.mtimeMs < Date.now() - copyAbandonedMs;
}

async function* leftOvers({ store, place }: Pick<CheckOptions, 'store' | 'place'>): AsyncGenerator<LeftOver> {
  for await (const { key, bytes } of place.list('')) {
    const { id } = fileOfKey(key, bytes);
    const row = await store.read(filesTable, id);
    // Octets of another digest than the row's were kept before a crash, and sent again.
    const record = row === undefined ? undefined : await keptRecord(store, { id });
    const isOther = record?.digest !== undefined && keyOf({ id, digest: record.digest }) !== key;
    if (row === undefined || isOther) yield { key, bytes };
  }
  for (const name of await readdir(place.incoming)) {
    const path = join(place.incoming, name);
    const isLeft = isFileId(name)
      ? (await store.read(filesTable, name)) === undefined
      : copyPattern.test(name) && (await isOld(path));
    if (isLeft) yield { path, bytes: 0 };
  }
}

/** Removes octets without a row. */
export async function removeLeftOvers(checked: Pick<CheckOptions, 'store' | 'place'>): Promise<void> {
  await inParallel(leftOvers(checked), async (left) => {
    if ('key' in left) await checked.place.remove(left.key);
    else await rm(left.path, { force: true });
  });
}

async function waitingIn({ store, lapsedAt }: CheckOptions): Promise<number> {
  const { stateField } = fileFields;
  let waiting = await store.count(filesTable, { op: 'eq', field: stateField, value: 'removed' });
  for (const value of ['arriving', 'complete']) {
    const isOld = { op: 'lt', field: byAge[0].field, value: new Date(lapsedAt).toISOString() } as const;
    waiting += await store.count(filesTable, allOf([{ op: 'eq', field: stateField, value }, isOld]));
  }
  return waiting;
}
