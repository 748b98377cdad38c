/**
 * Files in a folder: `XX/ID.DIGEST` under it, and `incoming` for octets that are arriving. A file gets its name when its octets are on the
 * disk, by a rename that is on the disk before `keep` ends, so that no name ever has other octets or fewer. The folder may be shared by
 * processes and machines. Comity leaves files with other names alone.
 */
import { close, constants, fstat, open as openDescriptor, read } from 'node:fs';
import { access, link, lstat, mkdir, open, opendir, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { ConfigurationError } from '../config/inspection.ts';
import { filePieceBytesMax } from '../http/message.ts';
import type { Extent } from '../http/syntax/range.ts';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import {
  codeOf,
  FileMissing,
  fileSystemFailure,
  isMissing,
  isPlaceKey,
  type KeptFile,
  type Place,
  partsOfKey,
} from './place.ts';

const folderMode = 0o700;
const fileMode = 0o600;
const incomingName = 'incoming';
const shardPattern = /^[0-9a-z]{2}$/;

/** Makes the folder if it is missing. @throws ConfigurationError that names the folder if it cannot be used */
export async function openFolderPlace(folder: string): Promise<Place> {
  const root = resolve(folder);
  await makeWritableFolder(root);
  return new FolderPlace(root, await makeWritableFolder(join(root, incomingName)));
}

/** The place in a folder that is only read: nothing is made in it, so that it may be on a medium that cannot be written. */
export function readableFolderPlace(folder: string): Place {
  const root = resolve(folder);
  return new FolderPlace(root, join(root, incomingName));
}

/** @returns the folder, as an absolute path @throws ConfigurationError that names it */
export async function makeWritableFolder(folder: string): Promise<string> {
  const path = resolve(folder);
  try {
    await makeFolders(path);
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK);
    return path;
  } catch (error) {
    const mistake = `the folder of files ${path} cannot be used: ${reasonOf(error)}`;
    throw new ConfigurationError([mistake], { cause: error });
  }
}

class FolderPlace implements Place {
  readonly incoming: string;
  readonly isIncomingLocal = false;
  readonly #root: string;
  /** Folders whose entry in the root is on the disk. */
  readonly #settledShards = new Set<string>();

  constructor(root: string, incoming: string) {
    this.#root = root;
    this.incoming = incoming;
  }

  async keep(key: string, file: KeptFile): Promise<void> {
    const { shard, folder, path } = this.#find(key);
    try {
      if (await settleOctets(file)) {
        await this.#makeShard(shard, folder);
        await rename(file.path, path);
      } else if ((await lengthOf(path)) !== file.bytes) {
        throw new Error(`there is no file at ${file.path}`);
      }
      await syncPath(folder);
    } catch (error) {
      throw fileSystemFailure(error, 'a file cannot be kept');
    }
  }

  async read(key: string, first: number, end: number, further: readonly Extent[] = []): Promise<Readable> {
    const { path } = this.#find(key);
    let file: number | undefined;
    try {
      file = await descriptorOf(path);
      const { size } = await statusOf(file);
      const extents = [{ first, end }, ...further];
      const beyond = extents.find((extent) => size < extent.end);
      if (beyond !== undefined)
        throw new FileMissing(
          `a file has ${size} octets, of which ${beyond.first} to ${beyond.end} were asked for`,
        );
      return ownEmitter(new FileOctets(file, extents), ignoreError);
    } catch (error) {
      if (file !== undefined) close(file, ignoreError);
      if (error instanceof FileMissing) throw error;
      if (isMissing(error)) throw new FileMissing('there is no such file', { cause: error });
      throw fileSystemFailure(error, 'a file cannot be read');
    }
  }

  async link(key: string, path: string): Promise<boolean> {
    try {
      await link(this.#find(key).path, path);
      return true;
    } catch (error) {
      if (isMissing(error)) throw new FileMissing('there is no such file', { cause: error });
      return false;
    }
  }

  async remove(key: string): Promise<void> {
    const { folder, path } = this.#find(key);
    try {
      await rm(path);
      await syncPath(folder);
    } catch (error) {
      if (!isMissing(error)) throw fileSystemFailure(error, 'a file cannot be removed');
    }
  }

  async *list(prefix: string): AsyncGenerator<{ readonly key: string; readonly bytes: number }> {
    if (isPlaceKey(prefix)) {
      const bytes = await lengthOf(this.#find(prefix).path);
      if (bytes !== undefined) yield { key: prefix, bytes };
      return;
    }
    const shard = prefix.slice(0, 2);
    const shards = prefix.length < 2 ? shardsOf(this.#root) : [shard];
    for await (const name of shards) {
      if (name.startsWith(shard)) yield* this.#listShard(name, prefix);
    }
  }

  async close(): Promise<void> {
    // Nothing is held open between two calls.
  }

  #find(key: string): { readonly shard: string; readonly folder: string; readonly path: string } {
    const { shard, name } = partsOfKey(key);
    const folder = join(this.#root, shard);
    return { shard, folder, path: join(folder, name) };
  }

  /** Also where it exists already: another process may have made it a moment ago. */
  async #makeShard(shard: string, folder: string): Promise<void> {
    try {
      await mkdir(folder, { mode: folderMode });
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
      if (this.#settledShards.has(shard)) return;
    }
    await syncPath(this.#root);
    this.#settledShards.add(shard);
  }

  async *#listShard(
    shard: string,
    prefix: string,
  ): AsyncGenerator<{ readonly key: string; readonly bytes: number }> {
    for await (const name of entriesOf(join(this.#root, shard))) {
      const key = `${shard}/${name}`;
      if (!key.startsWith(prefix) || !isPlaceKey(key)) continue;
      const bytes = await lengthOf(join(this.#root, key));
      if (bytes !== undefined) yield { key, bytes };
    }
  }
}

async function* shardsOf(root: string): AsyncGenerator<string> {
  for await (const name of entriesOf(root)) if (shardPattern.test(name)) yield name;
}

/** Names in a folder; none if it is missing. */
async function* entriesOf(folder: string): AsyncGenerator<string> {
  try {
    for await (const { name } of await opendir(folder)) yield name;
  } catch (error) {
    if (!isMissing(error)) throw fileSystemFailure(error, 'the folder of files cannot be listed');
  }
}

/** Writes the octets through to the disk. @returns false if there is no file @throws if it has not the length that the caller wrote */
async function settleOctets({ path, bytes }: KeptFile): Promise<boolean> {
  let file: Awaited<ReturnType<typeof open>>;
  try {
    file = await open(path, 'r+');
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
  try {
    const { size } = await file.stat();
    if (size !== bytes) throw new Error(`${path} has ${size} octets in place of ${bytes}`);
    await file.chmod(fileMode);
    await file.sync();
  } finally {
    await file.close();
  }
  return true;
}

/**
 * Makes a folder and those above it, each on the disk before the next. Not by `recursive` of mkdir, which never ends (Node 26.10) where a
 * file system takes no folders and says ENOENT, as /proc and an automounter do.
 */
async function makeFolders(path: string): Promise<void> {
  const above = dirname(path);
  try {
    await mkdir(path, { mode: folderMode });
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EEXIST') return;
    if (code !== 'ENOENT' || above === path) throw error;
    await makeFolders(above);
    await mkdir(path, { mode: folderMode });
  }
  await syncPath(above);
}

/** Writes the octets of a file, or the names in a folder, through to the disk. */
export async function syncPath(path: string): Promise<void> {
  const opened = await open(path, 'r');
  try {
    await opened.sync();
  } finally {
    await opened.close();
  }
}

/** Undefined if there is no file. */
export async function lengthOf(path: string): Promise<number | undefined> {
  try {
    const found = await lstat(path);
    return found.isFile() ? found.size : undefined;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw fileSystemFailure(error, 'a file cannot be read');
  }
}

const statusOf = promisify(fstat);

/** A number and not a FileHandle, which Node closes with an error when it collects one that a caller has lost. */
const descriptorOf = promisify((path: string, done: (error: Error | null, file: number) => void) =>
  openDescriptor(path, constants.O_RDONLY | constants.O_NOFOLLOW, done),
);

/** Parts of an open file, which it closes. Node's own stream ends without an error where a file turns out to be shorter. */
class FileOctets extends Readable {
  readonly #file: number;
  readonly #extents: Iterator<Extent>;
  /** Memory of pieces that were given back. */
  readonly #free: Buffer[] = [];
  #at = 0;
  #end = 0;
  #isReading = false;
  /** Set while the file is to be closed after a read: its number may belong to another file as soon as it is closed. */
  #afterRead: (() => void) | undefined;

  constructor(file: number, extents: readonly Extent[]) {
    // Pieces and no octets: Node would join short ones.
    super({ objectMode: true, highWaterMark: 1 });
    this.#file = file;
    this.#extents = extents.values();
  }

  override _read(): void {
    while (this.#at >= this.#end) {
      const { value, done } = this.#extents.next();
      if (done === true) {
        this.push(null);
        return;
      }
      this.#at = value.first;
      this.#end = value.end;
    }
    const wanted = Math.min(this.#end - this.#at, filePieceBytesMax);
    const octets = this.#free.pop() ?? Buffer.allocUnsafeSlow(wanted);
    this.#isReading = true;
    read(this.#file, octets, 0, wanted, this.#at, (error, count) => {
      this.#isReading = false;
      if (this.#afterRead !== undefined) this.#afterRead();
      else if (error !== null) this.destroy(fileSystemFailure(error, 'a file cannot be read'));
      else if (count === 0)
        this.destroy(new FileMissing(`a file ends at octet ${this.#at}, before ${this.#end}`));
      else {
        this.#at += count;
        this.push(octets.subarray(0, count));
      }
    });
  }

  /** Whole pieces alone. 1 GiB took 0.5 s of processor time so, and 1.7 s with new memory for each, most of it collection (Node 26). */
  giveBack(piece: Uint8Array): void {
    if (piece.buffer.byteLength === filePieceBytesMax) this.#free.push(Buffer.from(piece.buffer));
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const end = (): void => close(this.#file, () => done(error));
    if (this.#isReading) this.#afterRead = end;
    else end();
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
