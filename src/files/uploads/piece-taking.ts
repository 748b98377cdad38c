/** A piece of an upload on its way to the file: written as it arrives, synced from time to time, cut off where its checksum is another. */
import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { type ArrivingContent, ContentFailed } from '../../http/message.ts';
import type { Problem } from '../../http/problem.ts';
import { writeAll } from '../incoming.ts';
import { fileSystemFailure, PlaceFull } from '../place.ts';
import type { Checksum } from './upload-fields.ts';

/** Octets and time between two syncs: what a kill of the process loses at most, and the client sends again. */
const syncedBytesMax = 16 * 1024 * 1024;
const syncedMsMax = 1000;

export const busy: Problem = { code: 'upload_busy' };

export type TakenPiece = {
  readonly checksum: Checksum | undefined;
  readonly bytesMax: number;
  readonly open: () => Promise<ArrivingContent>;
  readonly clock: () => number;
};

type Taken = { readonly offset: number; readonly problem?: Problem };

/** One piece on its way to the file. */
export class PieceTaking {
  readonly #handle: FileHandle;
  /** Of the first octet of the file. */
  readonly #base: number;
  readonly #from: number;
  readonly #piece: TakenPiece;
  readonly #stopped: Promise<'stopped'>;
  readonly #clock: () => number;
  #offset: number;
  #synced: number;
  #syncedMs: number;

  constructor(
    { handle, base, offset }: { readonly handle: FileHandle; readonly base: number; readonly offset: number },
    piece: TakenPiece,
    stopped: Promise<'stopped'>,
  ) {
    this.#handle = handle;
    this.#base = base;
    this.#from = offset;
    this.#piece = piece;
    this.#stopped = stopped;
    this.#offset = offset;
    this.#synced = offset;
    this.#clock = piece.clock;
    this.#syncedMs = piece.clock();
  }

  /** @param onSynced called with an offset up to which all is durable; never before a checksum is verified */
  async take(onSynced: (offset: number) => Promise<void>): Promise<Taken> {
    let problem = await this.#failureOf(() => this.#takeAll(onSynced));
    const isVerified = problem === undefined || this.#piece.checksum === undefined;
    if (!isVerified) {
      await this.#handle.truncate(this.#from - this.#base);
      return { offset: this.#from, ...(problem === undefined ? {} : { problem }) };
    }
    const unsynced = await this.#failureOf(async () => {
      await this.#handle.sync();
      return undefined;
    });
    problem ??= unsynced;
    return {
      offset: unsynced === undefined ? this.#offset : this.#synced,
      ...(problem === undefined ? {} : { problem }),
    };
  }

  async #failureOf(act: () => Promise<Problem | undefined>): Promise<Problem | undefined> {
    try {
      return await act();
    } catch (error) {
      if (error instanceof ContentFailed) return error.problem;
      const failure =
        error instanceof Error && 'syscall' in error
          ? fileSystemFailure(error, 'an upload cannot be written')
          : error;
      if (failure instanceof PlaceFull) return { code: 'file_space_missing' };
      throw failure;
    }
  }

  async #takeAll(onSynced: (offset: number) => Promise<void>): Promise<Problem | undefined> {
    const { bytesMax, checksum } = this.#piece;
    const hash = checksum === undefined ? undefined : createHash(checksum.algorithm);
    const content = await this.#piece.open();
    const chunks = content[Symbol.asyncIterator]();
    try {
      for (;;) {
        const next = await Promise.race([chunks.next(), this.#stopped]);
        if (next === 'stopped') return busy;
        if (next.done === true) break;
        const room = bytesMax - this.#offset;
        const part = next.value.subarray(0, room);
        hash?.update(part);
        await this.#write(part);
        if (next.value.length > room)
          return { code: 'content_too_large', message: `the upload has at most ${bytesMax} octets` };
        if (hash === undefined && this.#isDue()) {
          await this.#handle.sync();
          this.#synced = this.#offset;
          this.#syncedMs = this.#clock();
          await onSynced(this.#synced);
        }
      }
    } finally {
      await chunks.return?.();
    }
    if (hash === undefined || checksum === undefined || hash.digest().equals(checksum.digest))
      return undefined;
    return { code: 'checksum_mismatch', message: `the piece has another ${checksum.algorithm} digest` };
  }

  #isDue(): boolean {
    const bytes = this.#offset - this.#synced;
    return bytes >= syncedBytesMax || (bytes > 0 && this.#clock() - this.#syncedMs >= syncedMsMax);
  }

  async #write(part: Uint8Array): Promise<void> {
    await writeAll(this.#handle, part, {
      position: this.#offset - this.#base,
      onWritten: (bytes) => {
        this.#offset += bytes;
      },
    });
  }
}
