/**
 * The octets of resumable uploads. A row names the offset that was synced to the disk: what a crash leaves behind it in the file is cut off before
 * the next piece, because nothing says that it is whole. States of an upload:
 *
 *   waiting    no process writes it
 *   claimed    one process writes it: the row names the process. Another piece in this process ends the first, which keeps what it got; in another
 *              process it waits (423) until that one has ended
 *   complete   all octets are in the place, under their digest
 *
 * What processes of one database share is the place. In a folder the octets of an upload are a file that each process can append to; one that takes
 * over from a process which ended without a word copies it first, since that one may only have been asleep, and still write. A bucket gets the
 * octets of each piece as an object when its request ends (`base` octets are there), and they are put together when all have come.
 *
 * A failure after the last octet and before the row is complete leaves an upload whose offset is its length: the next request about it completes it.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { constants, copyFile, type FileHandle, open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Problem } from '../../http/problem.ts';
import { formatDigest } from '../../http/syntax/digest.ts';
import type { FileRule } from '../../model/file.ts';
import type { Principal } from '../../model/principal.ts';
import { ignoreError, ownEmitter } from '../../observe/own-emitter.ts';
import { type Row, StoreUnavailable } from '../../store/store.ts';
import { type FileRecord, fileChange, filesTable, recordOf } from '../file-rows.ts';
import { lengthOf, syncPath } from '../folder-place.ts';
import { removeIncoming } from '../incoming.ts';
import { headBytesMax } from '../media-type.ts';
import {
  codeOf,
  FileMissing,
  fileSystemFailure,
  isMissing,
  isPreviewKey,
  type Place,
  PlaceFull,
  partsOfKey,
  placeKey,
  placePrefix,
  previewPrefix,
} from '../place.ts';
import { admit, type Receiving } from '../receive-file.ts';
import { busy, PieceTaking, type TakenPiece } from './piece-taking.ts';

/** What a row has besides, while its upload is under way. */
export type UploadState = {
  /** Octets that are durable. */
  readonly offset: number;
  /** Of the whole; absent: not known yet. */
  readonly length?: number;
  /** As the client states it. */
  readonly type?: string;
  /** `Store.processId` of who writes. */
  readonly writer?: string;
  /** The file in `incoming`; absent: it has the name of the upload. */
  readonly file?: string;
  /** Octets that the place has in objects, before those of the file; absent: none. */
  readonly base?: number;
  /** How many objects these are. */
  readonly objects?: number;
};

export function uploadOf({ upload }: FileRecord): UploadState {
  return (upload ?? { offset: 0 }) as UploadState;
}

const hashedBytes = 1024 * 1024;
/** Objects of one upload. Above, its octets stay with the process that gets them, and it goes on there alone. */
export const uploadObjectsMax = 10_000;

type Written = { readonly row: Row; readonly problem?: Problem };

type Writer = { stop(): void; readonly ended: Promise<void> };

export type Appending = Omit<TakenPiece, 'clock'> & {
  readonly offset: number;
  /** Of the whole, if the piece says it. */
  readonly length: number | undefined;
  /** It ends with this piece. */
  readonly isComplete: boolean;
};

export class UploadWriting {
  readonly #receiving: Receiving;
  /** The pieces that this process writes, by upload. */
  readonly #writers = new Map<string, Writer>();

  constructor(receiving: Receiving) {
    this.#receiving = receiving;
  }

  /** Octets reach other processes by the place. */
  get #handsOver(): boolean {
    const { place, store } = this.#receiving;
    return store.shared && place.isIncomingLocal;
  }

  /** Makes the file that the pieces are appended to. @throws PlaceFull, StoreUnavailable */
  async create(id: string): Promise<void> {
    if (!this.#handsOver) await (await this.#openNew(id)).close();
  }

  /** The octets up to the offset can be had in this process, or another one is writing them. */
  async isReachable(row: Row): Promise<boolean> {
    const state = uploadOf(recordOf(row));
    if (!this.#handsOver || state.offset === (state.base ?? 0)) return true;
    const { store, place } = this.#receiving;
    const path = uploadPath(place, row.id, state);
    if (((await lengthOf(path)) ?? 0) >= state.offset - (state.base ?? 0)) return true;
    return state.writer !== undefined && !(await store.hasEnded(state.writer));
  }

  /** Ends a piece under way in this process, and waits until what it got is durable. */
  async settle(id: string): Promise<void> {
    for (let writer = this.#writers.get(id); writer !== undefined; writer = this.#writers.get(id)) {
      writer.stop();
      await writer.ended;
    }
  }

  /** Appends a piece. @throws StoreUnavailable */
  async append(id: string, piece: Appending): Promise<Written | undefined> {
    // Of several that waited for the same one, each but the first finds a writer again.
    while (this.#writers.has(id)) await this.settle(id);
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const stopped = Promise.withResolvers<'stopped'>();
    this.#writers.set(id, { stop: () => stopped.resolve('stopped'), ended });
    try {
      return await this.#append(id, piece, stopped.promise);
    } finally {
      this.#writers.delete(id);
      end();
    }
  }

  async #append(id: string, piece: Appending, stopped: Promise<'stopped'>): Promise<Written | undefined> {
    const { store, place } = this.#receiving;
    const found = await store.read(filesTable, id);
    if (found === undefined) return undefined;
    const state = uploadOf(recordOf(found));
    if (recordOf(found).state !== 'arriving' || piece.offset !== state.offset)
      return { row: found, problem: wrongOffset(found) };
    if (
      state.writer !== undefined &&
      state.writer !== store.processId &&
      !(await store.hasEnded(state.writer))
    )
      return { row: found, problem: busy };
    const length = state.length ?? piece.length;
    if (
      length !== undefined &&
      (length > piece.bytesMax || length < state.offset || (piece.length ?? length) !== length)
    )
      return { row: found, problem: { code: 'field_invalid', message: `Upload-Length must be ${length}` } };
    const opened = await this.#open(id, state).catch(spaceMissing);
    if (opened === undefined) return { row: found, problem: { code: 'not_found' } };
    if ('problem' in opened) return { row: found, ...opened };
    const { handle, file } = opened;
    try {
      const claimed = await this.#change(found, {
        ...{ ...state, writer: store.processId, file },
        ...(length === undefined ? {} : { length }),
      });
      if (claimed === undefined) {
        if (file !== (state.file ?? id)) await removeIncoming(join(place.incoming, file));
        return { row: found, problem: busy };
      }
      if (file !== (state.file ?? id)) await removeIncoming(uploadPath(place, id, state));
      const base = state.base ?? 0;
      // What nothing says is whole.
      await handle.truncate(state.offset - base);
      const taking = new PieceTaking(
        { handle, base, offset: state.offset },
        { ...piece, bytesMax: length ?? piece.bytesMax, clock: this.#receiving.clock },
        stopped,
      );
      let row = claimed;
      const outcome = await taking.take(async (offset) => {
        row = (await this.#change(row, { ...uploadOf(recordOf(row)), offset })) ?? row;
      });
      const { writer: _, ...last } = uploadOf(recordOf(row));
      const isWhole = outcome.problem === undefined && piece.isComplete;
      const reached: UploadState = {
        ...{ ...last, offset: outcome.offset },
        ...(isWhole ? { length: outcome.offset } : {}),
      };
      const kept = await this.#handOver(id, reached, state.writer !== undefined);
      const released = await this.#change(row, kept);
      if (released !== undefined && kept.file === undefined) await removeIncoming(join(place.incoming, file));
      return { row: released ?? row, ...(outcome.problem === undefined ? {} : { problem: outcome.problem }) };
    } finally {
      await handle.close();
    }
  }

  /** The file for the next octets, with those before them; undefined: these are not here. @throws PlaceFull, StoreUnavailable */
  async #open(id: string, state: UploadState): Promise<{ handle: FileHandle; file: string } | undefined> {
    const { store, place, newId } = this.#receiving;
    const bytes = state.offset - (state.base ?? 0);
    const another = `${id}.${newId()}`;
    if (this.#handsOver && bytes === 0) return { handle: await this.#openNew(another), file: another };
    const path = uploadPath(place, id, state);
    if (((await lengthOf(path)) ?? -1) < bytes) return undefined;
    const isTakenOver = state.writer !== undefined && state.writer !== store.processId;
    const isCopied = store.shared && !place.isIncomingLocal && isTakenOver;
    const file = isCopied ? another : (state.file ?? id);
    try {
      if (isCopied) {
        await copyFile(path, join(place.incoming, another), constants.COPYFILE_FICLONE);
        await syncPath(join(place.incoming, another));
        await syncPath(place.incoming);
      }
      return { handle: await open(join(place.incoming, file), 'r+'), file };
    } catch (error) {
      if (isCopied) await removeIncoming(join(place.incoming, another));
      if (isMissing(error)) return undefined;
      throw fileSystemFailure(error, 'an upload cannot be continued');
    }
  }

  async #openNew(name: string): Promise<FileHandle> {
    const { incoming } = this.#receiving.place;
    const path = join(incoming, name);
    try {
      await writeFile(path, '', { flag: 'wx', mode: 0o600 });
      await syncPath(incoming);
      return await open(path, 'r+');
    } catch (error) {
      throw fileSystemFailure(error, 'an upload cannot be received');
    }
  }

  /**
   * Puts the octets of the file into the place, where other processes reach them.
   * @param isDirty an earlier attempt may have left an object @returns the state without the file; as it was if the place fails: it goes on here
   */
  async #handOver(id: string, state: UploadState, isDirty: boolean): Promise<UploadState> {
    const { offset, length, base = 0, objects = 0 } = state;
    const { place } = this.#receiving;
    if (!this.#handsOver || offset === length || objects >= uploadObjectsMax) return state;
    const { file: _, ...without } = state;
    if (offset === base) return without;
    const path = uploadPath(place, id, state);
    try {
      const prefix = previewPrefix(id, base.toString(16).padStart(16, '0'));
      if (isDirty) for await (const { key } of place.list(prefix)) await place.remove(key);
      const octets = await readOctets(path, offset - base);
      if (octets === undefined) return state;
      const { sha256 } = octets;
      await place.keep(`${prefix}${sha256.toString('hex')}`, { path, bytes: offset - base, sha256 });
      return { ...without, base: offset, objects: objects + 1 };
    } catch (error) {
      if (error instanceof PlaceFull || error instanceof StoreUnavailable) return state;
      throw error;
    }
  }

  /** The path of a file with all octets; undefined: they are not all here. */
  async #gather(id: string, state: UploadState): Promise<string | undefined> {
    const { place, newId } = this.#receiving;
    const { base = 0 } = state;
    const own = uploadPath(place, id, state);
    if (base === 0) return own;
    const pieces: { from: number; key: string; bytes: number }[] = [];
    for await (const { key, bytes } of place.list(placePrefix(id))) {
      const from = Number.parseInt(partsOfKey(key).name.split('.')[1] ?? '', 16);
      if (isPreviewKey(key) && from < base) pieces.push({ from, key, bytes });
    }
    pieces.sort((a, b) => a.from - b.from);
    const path = join(place.incoming, `${id}.${newId()}`);
    let at = 0;
    try {
      for (const { from, key, bytes } of pieces) {
        // One of a writer that was given up, and came back: nothing says which of the two is right.
        if (from !== at) return undefined;
        await writeFile(path, await place.read(key, 0, bytes), { flag: 'a', mode: 0o600 });
        at += bytes;
      }
      if (at !== base || state.offset - base !== ((await lengthOf(own)) ?? 0)) return undefined;
      if (state.offset > base)
        await writeFile(path, ownEmitter(createReadStream(own), ignoreError), { flag: 'a' });
      at = state.offset;
      return path;
    } catch (error) {
      at = -1;
      if (error instanceof FileMissing) return undefined;
      throw codeOf(error) === undefined
        ? error
        : fileSystemFailure(error, 'an upload cannot be put together');
    } finally {
      if (at !== state.offset) await removeIncoming(path);
    }
  }

  /** @returns undefined: the row changed meanwhile */
  async #change(row: Row, upload: UploadState): Promise<Row | undefined> {
    const { store, clock } = this.#receiving;
    const record: FileRecord = {
      ...recordOf(row),
      bytes: Math.max(upload.length ?? 0, upload.offset),
      upload: { ...upload },
    };
    const change = fileChange(row.id, row, record, clock());
    const commit = await store.commit({ changes: [change], events: [] });
    if (commit.outcome !== 'committed' || change.next === null) return undefined;
    return { ...row, ...change.next, rev: commit.rev } as Row;
  }

  /** Completes an upload that has all its octets: judges them and has the place keep them. @returns the row, or why it is refused */
  async complete(row: Row, principal: Principal, rule: FileRule | undefined): Promise<Written> {
    const { place } = this.#receiving;
    const state = uploadOf(recordOf(row));
    if (recordOf(row).state !== 'arriving' || state.offset !== state.length) return { row };
    const own = uploadPath(place, row.id, state);
    let path: string | undefined;
    try {
      path = await this.#gather(row.id, state);
      const completed = await this.#complete(row, path, { principal, rule });
      if (completed.problem !== undefined || recordOf(completed.row).state === 'arriving') return completed;
      // A folder has taken it over, a bucket has copied it.
      await removeIncoming(own);
      if (state.base !== undefined)
        for await (const { key } of place.list(placePrefix(row.id)))
          if (isPreviewKey(key)) await place.remove(key);
      return completed;
    } catch (error) {
      return { row, ...spaceMissing(error) };
    } finally {
      if (path !== undefined && path !== own) await removeIncoming(path);
    }
  }

  /** @param path of all octets; undefined: they are in the place, or lost */
  async #complete(
    row: Row,
    path: string | undefined,
    { principal, rule }: { readonly principal: Principal; readonly rule: FileRule | undefined },
  ): Promise<Written> {
    const { place, store, clock } = this.#receiving;
    const arrived = recordOf(row);
    const { offset: bytes, type: stated } = uploadOf(arrived);
    const { upload: _, ...record } = arrived;
    const octets =
      (path === undefined ? undefined : await readOctets(path, bytes)) ?? (await this.#kept(row.id));
    if (octets === undefined) return { row, problem: { code: 'not_found' } };
    const { head, sha256 } = octets;
    const admitted = await admit(this.#receiving, {
      ...{ principal, collection: record.collection ?? '', rule, named: 'the file' },
      ...{ head, bytes, counted: record.bytes, stated, name: record.name },
    });
    if ('problem' in admitted) return { row, ...admitted };
    if (path !== undefined && octets.isHere)
      await place.keep(placeKey(row.id, sha256), { path, bytes, sha256 });
    const digest = formatDigest('sha-256', sha256);
    const next: FileRecord = { ...record, state: 'complete', type: admitted.type, bytes, digest };
    const change = fileChange(row.id, row, next, clock());
    const commit = await store.commit({ changes: [change], events: [] });
    if (commit.outcome === 'committed') return { row: { ...row, ...change.next, rev: commit.rev } as Row };
    const current = await store.read(filesTable, row.id);
    return current === undefined ? { row, problem: { code: 'not_found' } } : { row: current };
  }

  /** What a crash left in the place. */
  async #kept(id: string): Promise<Octets | undefined> {
    const { place } = this.#receiving;
    for await (const { key, bytes } of place.list(placePrefix(id))) {
      if (isPreviewKey(key)) continue;
      const chunks: Uint8Array[] = [];
      for await (const chunk of await place.read(key, 0, Math.min(bytes, headBytesMax)))
        chunks.push(chunk as Uint8Array);
      return {
        head: Buffer.concat(chunks),
        sha256: Buffer.from(partsOfKey(key).digest, 'hex'),
        isHere: false,
      };
    }
    return undefined;
  }
}

export function wrongOffset(row: Pick<Row, 'doc'>): Problem {
  const record = recordOf(row);
  const offset = record.state === 'arriving' ? uploadOf(record).offset : record.bytes;
  return { code: 'upload_offset_wrong', message: `the upload has ${offset} octets`, context: { offset } };
}

function spaceMissing(error: unknown): { readonly problem: Problem } {
  if (!(error instanceof PlaceFull)) throw error;
  return { problem: { code: 'file_space_missing' } };
}

function uploadPath({ incoming }: Pick<Place, 'incoming'>, id: string, { file = id }: UploadState): string {
  return join(incoming, file);
}

type Octets = { readonly head: Uint8Array; readonly sha256: Buffer; readonly isHere: boolean };

/** Reads the whole file once; undefined: it is not here. */
async function readOctets(path: string, length: number): Promise<Octets | undefined> {
  let handle: FileHandle;
  try {
    handle = await open(path, 'r');
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw fileSystemFailure(error, 'an upload cannot be read');
  }
  try {
    const hash = createHash('sha256');
    const buffer = Buffer.allocUnsafe(hashedBytes);
    let head: Buffer = Buffer.alloc(0);
    for (let at = 0; at < length; ) {
      const { bytesRead } = await handle.read(buffer, 0, Math.min(hashedBytes, length - at), at);
      if (bytesRead === 0) return undefined;
      if (at === 0) head = Buffer.from(buffer.subarray(0, Math.min(bytesRead, headBytesMax)));
      hash.update(buffer.subarray(0, bytesRead));
      at += bytesRead;
    }
    return { head, sha256: hash.digest(), isHere: true };
  } finally {
    await handle.close();
  }
}
