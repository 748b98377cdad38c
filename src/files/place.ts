/**
 * Where octets of files are kept: a folder or a bucket. A place knows keys and octets, and nothing of documents, principals or rows; it never
 * gets a name or a path that a client chose. `test/files/place-contract.ts` states what each place promises.
 */
import type { Readable } from 'node:stream';
import type { Extent } from '../http/syntax/range.ts';
import { StoreUnavailable } from '../store/store.ts';

export type Place = {
  /**
   * Folder for octets that are arriving: within a folder place, and so on its file system and shared by its processes; under COMITY_DATA for
   * a bucket.
   */
  readonly incoming: string;
  /** `incoming` is of this machine, and not where the place is. */
  readonly isIncomingLocal: boolean;
  /**
   * Makes the local file durable under the key. A folder takes it over by renaming it, so the path is gone then; a bucket copies it. The same
   * key and content again have no effect.
   * @throws PlaceFull; StoreUnavailable. Nothing is kept under the key then, and the local file is still there.
   */
  keep(key: string, file: KeptFile): Promise<void>;
  /**
   * Octets from `first` up to but not including `end`. The stream either gives exactly these or ends with an error.
   * @param further extents whose octets follow, from the same opened file in a folder; no chunk holds octets of two
   * @throws FileMissing; StoreUnavailable
   */
  read(key: string, first: number, end: number, further?: readonly Extent[]): Promise<Readable>;
  /**
   * Makes a hard link to the octets at the path, where the file system permits it. Absent: the place is no folder.
   * @returns false if it does not permit it; nothing is at the path then @throws FileMissing
   */
  link?(key: string, path: string): Promise<boolean>;
  /** Without effect if there is none. Durable: what was removed does not come back after a loss of power. @throws StoreUnavailable */
  remove(key: string): Promise<void>;
  /** Keys with the prefix, in any order. The iteration ends with StoreUnavailable if they cannot be listed. */
  list(prefix: string): AsyncIterable<{ readonly key: string; readonly bytes: number }>;
  close(): Promise<void>;
};

export type KeptFile = { readonly path: string; readonly bytes: number; readonly sha256: Uint8Array };

/** The place has no room for the octets (507). */
export class PlaceFull extends Error {
  override readonly name = 'PlaceFull';
}

/** The place has nothing under the key, or less than was asked for: the octets that a row names were lost. */
export class FileMissing extends Error {
  override readonly name = 'FileMissing';
}

const keyPattern = /^([0-9a-z]{2})\/([a-z]+_[0-9a-z]*([0-9a-z]{2}))\.(?:[0-9a-f]{16}\.)?([0-9a-f]{64})$/;
const previewPattern = /\.[0-9a-f]{16}\./;
const keyCharactersMax = 160;

/** The key of a file: addressed by its id, so that a crash leaves what its row finds, and by its content, so that a check needs no store. */
export function placeKey(id: string, sha256: Uint8Array): string {
  const key = `${placePrefix(id)}${Buffer.from(sha256).toString('hex')}`;
  if (!isPlaceKey(key)) throw new Error(`a file cannot be kept under the id ${JSON.stringify(id)}`);
  return key;
}

/** The prefix of all keys of a file, whatever its content: of its octets and of its previews. */
export function placePrefix(id: string): string {
  return `${id.slice(-2)}/${id}.`;
}

/**
 * The prefix of the preview of a file by a rule, of which the tag is 16 hexadecimal digits, and of the piece of an upload under way, of which the tag
 * is the offset. The SHA-256 of its octets follows.
 */
export function previewPrefix(id: string, tag: string): string {
  return `${placePrefix(id)}${tag}.`;
}

/** True for a preview, which can be made again from the file that has the prefix, and for a piece of its upload. */
export function isPreviewKey(key: string): boolean {
  return isPlaceKey(key) && previewPattern.test(key);
}

/** Keys are made by `placeKey` alone; a place checks each nevertheless, because it makes paths and URLs of them. */
export function isPlaceKey(key: string): boolean {
  if (key.length > keyCharactersMax) return false;
  const [, shard, , end] = keyPattern.exec(key) ?? [];
  return shard !== undefined && shard === end;
}

/** The parts of a valid key. @throws for any other text */
export function partsOfKey(key: string): {
  readonly shard: string;
  readonly name: string;
  readonly digest: string;
} {
  if (!isPlaceKey(key)) throw new Error('this is not a key of a place');
  return { shard: key.slice(0, 2), name: key.slice(3), digest: key.slice(-64) };
}

/** True if there is no file or folder of the name. */
export function isMissing(error: unknown): boolean {
  return codeOf(error) === 'ENOENT';
}

/** The code of an error of the file system; undefined for any other. */
export function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

/** A failure of the file system as what callers expect: PlaceFull for a full disk or quota, StoreUnavailable for any other. */
export function fileSystemFailure(error: unknown, what: string): Error {
  const code = codeOf(error);
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new PlaceFull(`${what}: the disk or the quota is full`, { cause: error });
  return new StoreUnavailable(`${what}: ${error instanceof Error ? error.message : String(error)}`, {
    cause: error,
  });
}
