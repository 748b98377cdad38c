/**
 * Backups that administrators ask for: whole copies of the store in one folder, each a file that `comity restore` reads. The folder is the
 * truth: a file that its operator removes is no longer listed. One copy at a time is made by a process; others wait for it.
 *
 * No caller chooses a name: Comity makes them of the time and an id, and knows only files with such names.
 */
import { mkdir, opendir, rm, stat, statfs } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Problem } from '../http/problem.ts';
import type { Services } from '../store/capabilities.ts';
import { type MaybePromise, StoreUnavailable } from '../store/store.ts';

export type Backup = {
  readonly id: string;
  /** Name in the folder. */
  readonly file: string;
  readonly bytes: number;
  /** When the copy began: it holds everything that was committed before. */
  readonly createdAt: string;
};

/** Size of the store, as far as it is known: about the size of a copy. */
export type StoreBytes = () => MaybePromise<number | undefined>;

export type Backups = {
  readonly folder: string;
  /** True while a copy is made by this process, or waits. */
  isBusy(): boolean;
  /** The newest first. */
  list(): Promise<readonly Backup[]>;
  find(id: string): Promise<Backup | undefined>;
  /** Why no backup can be made now; undefined if nothing is known that prevents it. */
  obstacle(): Promise<Problem | undefined>;
  /** Makes one, after those that wait. @throws StoreUnavailable if the store is closed meanwhile */
  make(): Promise<Backup | { readonly refused: Problem }>;
  /** True if it was there. */
  remove(id: string): Promise<boolean>;
};

/** Left free for the store, which stops writing on a full disk. */
const spareBytes = 64 * 1024 * 1024;
/** Names looked at: the folder may have files of its operator. */
const entriesMax = 10_000;
/** An unfinished file of another process that was not written for so long was left by a kill. */
const abandonedMs = 3_600_000;

const nameOf = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z_(bak_[0-9a-z]{26})\.db(\.partial)?$/;

const separators = /[-:]/g;
const fullDisk = /\b(disk is full|no space left)\b/i;

type Found = { readonly id: string; readonly file: string; readonly at: string; readonly isPartial: boolean };

export function createBackups(services: Services, place: string, storeBytes: StoreBytes): Backups {
  const folder = resolve(place);
  const { backupsMax } = services.settings;
  let waiting = 0;
  let last: Promise<unknown> = Promise.resolve();
  return {
    folder,
    isBusy: () => waiting > 0,
    list: () => listFolder(folder),
    find: async (id) => (await listFolder(folder)).find((backup) => backup.id === id),
    obstacle: () => obstacleIn(folder, backupsMax, storeBytes),
    make() {
      waiting += 1;
      const begin = () => makeBackup(services, folder, storeBytes);
      const made = last.then(begin, begin).finally(() => {
        waiting -= 1;
      });
      last = made.catch(ignore);
      return made;
    },
    async remove(id) {
      const found = (await filesIn(folder)).find((each) => each.id === id && !each.isPartial);
      if (found === undefined) return false;
      await rm(join(folder, found.file), { force: true });
      return true;
    },
  };
}

async function listFolder(folder: string): Promise<readonly Backup[]> {
  const backups: Backup[] = [];
  for (const { id, file, at, isPartial } of await filesIn(folder)) {
    if (isPartial) continue;
    const found = await stat(join(folder, file)).catch(ignoreMissing);
    if (found?.isFile() === true) backups.push({ id, file, bytes: found.size, createdAt: at });
  }
  return backups.sort((one, other) => (one.file < other.file ? 1 : -1));
}

/** Creates the folder as well. @throws StoreUnavailable */
async function obstacleIn(
  folder: string,
  backupsMax: number,
  storeBytes: StoreBytes,
): Promise<Problem | undefined> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const exhausted = await exhaustionOf(folder, backupsMax, 0);
    if (exhausted !== undefined) return exhausted;
    const neededBytes = ((await storeBytes()) ?? 0) + spareBytes;
    const { bavail, bsize } = await statfs(folder);
    const freeBytes = bavail * bsize;
    return freeBytes < neededBytes ? noSpace(folder, { freeBytes, neededBytes }) : undefined;
  } catch (error) {
    // The store does not tell its size now: 503, since the folder is not the reason.
    if (error instanceof StoreUnavailable) throw error;
    return failure(folder, error);
  }
}

/** @param own how many of those in the folder are not finished yet */
async function exhaustionOf(folder: string, backupsMax: number, own: number): Promise<Problem | undefined> {
  const count = (await filesIn(folder)).filter(({ isPartial }) => !isPartial).length - own;
  if (count < backupsMax) return undefined;
  const message = `the limit of ${backupsMax} backups in ${folder} is reached (COMITY_BACKUPS_MAX); delete one`;
  return { code: 'backups_exhausted', message, context: { backups: count } };
}

async function makeBackup(
  { store, clock, newId, observe, settings: { backupsMax } }: Services,
  folder: string,
  storeBytes: StoreBytes,
): Promise<Backup | { readonly refused: Problem }> {
  // Only here, where no copy of this process is under way.
  await removeAbandoned(folder, store.shared ? clock() - abandonedMs : undefined).catch(ignore);
  const refused = await obstacleIn(folder, backupsMax, storeBytes);
  if (refused !== undefined) return { refused };
  const startedAt = performance.now();
  const second = new Date(clock()).toISOString().slice(0, 19);
  const id = `bak_${newId()}`;
  const file = `${second.replaceAll(separators, '')}Z_${id}.db`;
  const path = join(folder, file);
  try {
    await store.backup(path, ignore);
    const { size } = await stat(path);
    // Other workers and processes may have written to the folder meanwhile.
    const exhausted = await exhaustionOf(folder, backupsMax, 1);
    if (exhausted !== undefined) {
      await rm(path, { force: true });
      return { refused: exhausted };
    }
    observe({ kind: 'backup-made', file, bytes: size, durationMs: performance.now() - startedAt });
    return { id, file, bytes: size, createdAt: `${second}.000Z` };
  } catch (error) {
    // The store is being closed: the next process makes the backup.
    if (error instanceof StoreUnavailable && error.cause === undefined) throw error;
    observe({ kind: 'backup-failed', file, error });
    return { refused: failure(folder, error) };
  }
}

/** Empty if the folder does not exist yet. */
async function filesIn(folder: string): Promise<readonly Found[]> {
  const found: Found[] = [];
  let left = entriesMax;
  try {
    for await (const { name } of await opendir(folder)) {
      left -= 1;
      if (left < 0) break;
      const [, year, month, day, hour, minute, second, id, partial] = nameOf.exec(name) ?? [];
      if (id === undefined) continue;
      const at = `${year}-${month}-${day}T${hour}:${minute}:${second}.000Z`;
      found.push({ id, file: name, at, isPartial: partial !== undefined });
    }
  } catch (error) {
    ignoreMissing(error);
  }
  return found;
}

/** @param before milliseconds since the epoch; undefined: no other process uses the folder, so every unfinished file was left by a kill */
async function removeAbandoned(folder: string, before: number | undefined): Promise<void> {
  for (const { file, isPartial } of await filesIn(folder)) {
    if (!isPartial) continue;
    const path = join(folder, file);
    const found = before === undefined ? undefined : await stat(path).catch(ignoreMissing);
    if (before === undefined || (found !== undefined && found.mtimeMs < before))
      await rm(path, { force: true });
  }
}

function failure(folder: string, error: unknown): Problem {
  const cause = error instanceof StoreUnavailable ? error.cause : error;
  const reason = cause instanceof Error ? cause.message : String(cause);
  if (isFull(cause, reason)) return noSpace(folder, {});
  return { code: 'backup_failed', message: `the backup cannot be written to ${folder}: ${reason}` };
}

/** SQLite reports a full disk by its result code, which an error from a thread may lack. */
function isFull(cause: unknown, reason: string): boolean {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  return code === 'ENOSPC' || code === 'EDQUOT' || fullDisk.test(reason);
}

function noSpace(folder: string, context: NonNullable<Problem['context']>): Problem {
  const message = `the disk of ${folder} has no space for a copy of the store; free some, or set COMITY_BACKUP_FOLDER to a folder on another disk`;
  return { code: 'backup_space_missing', message, context };
}

function ignoreMissing(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
  throw error;
}

function ignore(): void {
  // Progress is not kept, and the failure of one backup does not concern the next.
}
