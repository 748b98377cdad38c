/**
 * Copies the octets of the files that a store names from one place to another, for backups and restores. Each file is compared with the digest in its key on
 * the way and gets its name when it is whole, and one that the target has already is passed over; so a copy that was interrupted is continued
 * by another one.
 */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import type { Keyset, Row, Store } from '../store/store.ts';
import { byAge, fileFields, filesTable, keptStates, keyOf, recordOf, sha256Of } from './file-rows.ts';
import { FileMissing, fileSystemFailure, type Place, partsOfKey } from './place.ts';

/** A file whose octets are kept: a document holds it, or may take it. */
export type StoredFile = { readonly id: string; readonly bytes: number; readonly digest: string };

export type LostFile = StoredFile & { readonly what: 'missing' | 'damaged' };

export type FilesCopied = {
  /** Those that the target has in the end. */
  readonly files: number;
  readonly bytes: number;
  /** Those of `files` that it had before. */
  readonly found: number;
  /** Those of `files` that are hard links to the octets of the source. */
  readonly linked: number;
  /** How many the source did not have, or not as they were. */
  readonly lostCount: number;
  /** The first of them. */
  readonly lost: readonly LostFile[];
};

export type CopyOptions = {
  readonly files: AsyncIterable<StoredFile>;
  /** Undefined: the target has them all, or they are missing. */
  readonly from: Place | undefined;
  readonly to: Place;
  /** True: it makes a hard link in place of a copy where the file system permits it, and reads no octets. */
  readonly links?: boolean;
  readonly signal?: AbortSignal;
  readonly onCopied?: (file: StoredFile) => void;
};

/** Files under way at one time: enough to wait for few answers of a bucket, few enough for its connections. */
const filesAtOnce = 8;
/** Lost files that are named. */
export const lostFilesNamedMax = 1000;

/** @throws PlaceFull, StoreUnavailable; the reason of the signal. What was copied before stays. */
export async function copyFiles({ files, signal, onCopied, ...copy }: CopyOptions): Promise<FilesCopied> {
  const counts = { files: 0, bytes: 0, found: 0, linked: 0, lostCount: 0 };
  const lost: LostFile[] = [];
  const act = async (file: StoredFile): Promise<void> => {
    const outcome = await copyOne(file, copy);
    if (outcome === 'missing' || outcome === 'damaged') {
      counts.lostCount += 1;
      if (lost.length < lostFilesNamedMax) lost.push({ ...file, what: outcome });
    } else {
      counts.files += 1;
      counts.bytes += file.bytes;
      if (outcome !== 'copied') counts[outcome] += 1;
    }
    onCopied?.(file);
  };
  await inParallel(files, act, { signal });
  return { ...counts, lost };
}

type Parallel = {
  readonly signal?: AbortSignal | undefined;
  /** Default: `filesAtOnce`. */
  readonly atOnce?: number;
};

/** Calls `act` for each item, some at one time. The first failure ends the rest. */
export async function inParallel<T>(
  items: AsyncIterable<T> | Iterable<T>,
  act: (item: T) => Promise<void>,
  { signal, atOnce = filesAtOnce }: Parallel = {},
): Promise<void> {
  const iterator = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
  let failed = false;
  const work = async (): Promise<void> => {
    while (!failed) {
      signal?.throwIfAborted();
      const next = await iterator.next();
      if (next.done === true) return;
      await act(next.value);
    }
  };
  const workers = Array.from({ length: atOnce }, () =>
    work().catch((error: unknown) => {
      failed = true;
      throw error;
    }),
  );
  const ended = await Promise.allSettled(workers);
  await iterator.return?.();
  const failure = ended.find((each) => each.status === 'rejected');
  if (failure !== undefined) throw failure.reason;
}

type Outcome = 'copied' | 'found' | 'linked' | LostFile['what'];

type Copying = Pick<CopyOptions, 'from' | 'to' | 'links'>;

async function copyOne(file: StoredFile, { from, to, links = false }: Copying): Promise<Outcome> {
  if ((await bytesAt(to, keyOf(file))) === file.bytes) return 'found';
  return from === undefined ? 'missing' : copyOctets(file, { from, to, links });
}

/** Copies one file, whatever the target has. */
export async function copyOctets(
  file: StoredFile,
  { from, to, links = false }: Copying & { readonly from: Place },
): Promise<Exclude<Outcome, 'found'>> {
  const key = keyOf(file);
  // Always the same name, so that a repeated copy replaces what an interrupted one left.
  const path = join(to.incoming, `copy.${partsOfKey(key).name}`);
  try {
    await rm(path, { force: true });
    const isLinked = links && from.link !== undefined && (await from.link(key, path));
    const isWhole = isLinked ? (await stat(path)).size === file.bytes : await fetchOctets(file, from, path);
    if (!isWhole) return 'damaged';
    await to.keep(key, { path, bytes: file.bytes, sha256: sha256Of(file.digest) });
    return isLinked ? 'linked' : 'copied';
  } catch (error) {
    if (error instanceof FileMissing) return (await bytesAt(from, key)) === undefined ? 'missing' : 'damaged';
    throw error;
  } finally {
    await rm(path, { force: true });
  }
}

/** @returns false if the octets have another digest @throws FileMissing */
async function fetchOctets(file: StoredFile, from: Place, path: string): Promise<boolean> {
  const hash = createHash('sha256');
  const hashing = ownEmitter(
    new Transform({
      transform(chunk: Buffer, _encoding, done) {
        hash.update(chunk);
        done(null, chunk);
      },
    }),
    ignoreError,
  );
  const octets = await from.read(keyOf(file), 0, file.bytes);
  try {
    await pipeline(
      octets,
      hashing,
      ownEmitter(createWriteStream(path, { flags: 'wx', mode: 0o600 }), ignoreError),
    );
  } catch (error) {
    if (error instanceof Error && 'errno' in error) throw fileSystemFailure(error, 'a file cannot be copied');
    throw error;
  }
  return hash.digest().equals(sha256Of(file.digest));
}

/** The length of the octets under the key; undefined if there are none. */
export async function bytesAt(place: Place, key: string): Promise<number | undefined> {
  for await (const found of place.list(key)) if (found.key === key) return found.bytes;
  return undefined;
}

const rowsPerRead = 500;

/** The files of a store whose octets are kept. */
export async function* filesOfStore(store: Pick<Store, 'plan'>): AsyncGenerator<StoredFile> {
  for (const value of keptStates) {
    const filter = { op: 'eq', field: fileFields.stateField, value } as const;
    const plan = store.plan({ table: filesTable, filter, sort: byAge, limit: rowsPerRead });
    let from: Keyset | undefined = { from: 'start' };
    while (from !== undefined) {
      const rows: readonly Row[] = await plan.rows(from);
      for (const { id, doc } of rows) {
        const { bytes, digest } = recordOf({ doc });
        if (digest !== undefined) yield { id, bytes, digest };
      }
      const last = rows.length < rowsPerRead ? undefined : rows.at(-1);
      from =
        last === undefined
          ? undefined
          : { from: 'after', key: [new Date(last.updatedAt).toISOString(), last.id] };
    }
  }
}
