/**
 * The files of a backup: their octets are in the folder `NAME.files` beside it, as in a folder place. A backup is the copy of a store and the
 * octets that this copy names: the store is copied first, and gets its name when the octets are there. If a document lost a file meanwhile,
 * whose octets are gone then, the store is copied again; what is there of the octets stays, so each attempt is shorter than the one before.
 */
import { realpathSync } from 'node:fs';
import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { filesLocation } from '../config/files-url.ts';
import type { Settings } from '../config/settings.ts';
import { openUnchanging } from '../store/backup-file/read-file.ts';
import type { WhenCopied } from '../store/backup-file/write-file.ts';
import { type Store, StoreUnavailable } from '../store/store.ts';
import { copyFiles, type FilesCopied, type LostFile, type StoredFile } from './copy-files.ts';
import { fileOfKey } from './copy-place.ts';
import { fileFields, filesTable, isKept, keptStates, keyOf, recordOf } from './file-rows.ts';
import { openFolderPlace, readableFolderPlace, syncPath } from './folder-place.ts';
import { isMissing, type Place } from './place.ts';
import { bytesOf } from './quotas.ts';

/** Files whose octets are not there, or are others. */
export class FilesLost extends Error {
  override readonly name = 'FilesLost';
  readonly code = 'files_lost';
  readonly lost: readonly LostFile[];

  constructor(message: string, lost: readonly LostFile[]) {
    super(message);
    this.lost = lost;
  }
}

/** The place of the files of a copy is that of another store. */
export class PlaceTaken extends Error {
  override readonly name = 'PlaceTaken';
  readonly code = 'files_place_taken';
}

/** The folder with the octets of a backup. */
export function filesFolderOf(backup: string): string {
  return `${backup}.files`;
}

/** The content of `summary.json` in the folder. */
export type FilesSummary = { readonly place: string; readonly files: number; readonly bytes: number };

const summaryName = 'summary.json';

/** @returns undefined for a folder that is missing or not finished */
export async function readSummary(backup: string): Promise<FilesSummary | undefined> {
  try {
    const text = await readFile(join(filesFolderOf(backup), summaryName), 'utf8');
    return JSON.parse(text) as FilesSummary;
  } catch (error) {
    if (error instanceof SyntaxError || isMissing(error)) return undefined;
    throw error;
  }
}

async function writeSummary(folder: string, summary: FilesSummary): Promise<void> {
  const partial = join(folder, `${summaryName}.partial`);
  const file = await open(partial, 'w', 0o600);
  try {
    await file.writeFile(`${JSON.stringify(summary)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(partial, join(folder, summaryName));
  for (const path of [folder, dirname(folder)]) await syncPath(path);
}

/** Names the place that the settings lead to, for a comparison. A folder that no setting names is one of this machine. */
export function placeName({ filesUrl, data }: Pick<Settings, 'filesUrl' | 'data'>): string {
  const location = filesUrl === undefined ? undefined : filesLocation(filesUrl);
  if (location?.kind === 'bucket') return `${location.origin}${location.path}/${location.prefix}`;
  return location === undefined
    ? `${hostname()}:${realPath(join(data, 'files'))}`
    : `file:${realPath(location.folder)}`;
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (isMissing(error)) return resolve(path);
    throw error;
  }
}

export type FilesBackup = {
  /** Copies the store. */
  readonly copyStore: (whenCopied: WhenCopied) => Promise<void>;
  /** The file that the copy becomes. */
  readonly backup: string;
  readonly place: () => Promise<Place>;
  readonly placeName: string;
  /** True: the backup is made without the octets that are lost, which the result names. */
  readonly withoutLost?: boolean;
  readonly onProgress?: (bytes: number, total: number) => void;
};

const none: FilesCopied = { files: 0, bytes: 0, found: 0, linked: 0, lostCount: 0, lost: [] };

/** Copies of the store that are made while its documents lose files. */
const copiesMax = 5;

/** Octets cannot be copied; the store is not the reason. */
class PlaceFailed extends Error {
  override readonly name = 'PlaceFailed';
}

class FilesRemoved extends Error {
  override readonly name = 'FilesRemoved';
}

/** Makes a backup with its files. @throws FilesLost, and what a backup without files throws */
export async function backUpWithFiles({ copyStore, backup, ...making }: FilesBackup): Promise<FilesCopied> {
  const folder = filesFolderOf(backup);
  let before: ReadonlySet<string> = new Set();
  for (let left = copiesMax; ; left -= 1) {
    let copied = none;
    try {
      await copyStore(async (partial, signal) => {
        copied = await keepFiles({ ...making, folder, partial, signal });
        const missing = new Set(copied.lost.map(({ id }) => id));
        // Missing for two copies in turn: no document lost them in between.
        const isStill = [...missing].every((id) => before.has(id));
        before = missing;
        if (!isStill && left > 1) throw new FilesRemoved();
        if (copied.lostCount > 0 && making.withoutLost !== true) throw lostFailure(copied);
      });
      return copied;
    } catch (error) {
      if (!(error instanceof FilesRemoved)) throw error;
    }
  }
}

function lostFailure({ lost, lostCount }: FilesCopied): FilesLost {
  const [first] = lost;
  return new FilesLost(
    `the octets of ${lostCount === 1 ? 'a file' : `${lostCount} files`} are missing or damaged, such as ${first?.id ?? ''}; "comity files check" names them and their documents`,
    lost,
  );
}

type Keeping = Pick<FilesBackup, 'place' | 'placeName' | 'onProgress'> & {
  readonly folder: string;
  readonly partial: string;
  readonly signal: AbortSignal;
};

async function keepFiles(keeping: Keeping): Promise<FilesCopied> {
  const { folder, partial, signal, onProgress } = keeping;
  const database = openUnchanging(partial);
  try {
    const total = totalOf(database);
    if (total.files === 0) {
      await rm(folder, { recursive: true, force: true });
      return none;
    }
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await rm(join(folder, summaryName), { force: true });
    const to = await openFolderPlace(folder);
    const from = await keeping.place();
    const copied = await copyFiles({
      ...{ files: filesOfCopy(database), from, to, links: true, signal },
      onCopied: progressTo(total.bytes, onProgress),
    }).catch((error: unknown) => {
      throw error instanceof StoreUnavailable ? new PlaceFailed(error.message, { cause: error }) : error;
    });
    await removeOthers(database, to);
    await rm(to.incoming, { recursive: true, force: true });
    await writeSummary(folder, { place: keeping.placeName, files: copied.files, bytes: copied.bytes });
    return copied;
  } finally {
    database.close();
  }
}

function progressTo(total: number, tell: FilesBackup['onProgress']): (file: StoredFile) => void {
  let done = 0;
  return ({ bytes }) => {
    done += bytes;
    tell?.(done, total);
  };
}

/** Removes what an earlier attempt copied and the store does not name any more. */
async function removeOthers(database: DatabaseSync, place: Place): Promise<void> {
  const find = database.prepare(`SELECT id, doc FROM ${filesTable} WHERE id = ?`);
  for await (const { key, bytes } of place.list('')) {
    const row = find.get(fileOfKey(key, bytes).id);
    const file = row === undefined ? undefined : storedFile(String(row.id), String(row.doc));
    if (file === undefined || keyOf(file) !== key) await place.remove(key);
  }
}

function storedFile(id: string, doc: string): StoredFile | undefined {
  const record = recordOf({ doc });
  const { bytes, digest } = record;
  return isKept(record) && digest !== undefined ? { id, bytes, digest } : undefined;
}

/** Files and octets of a copy of a store; one of an earlier version has none. */
function totalOf(database: DatabaseSync): { readonly files: number; readonly bytes: number } {
  const there = database.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(filesTable);
  if (there === undefined) return { files: 0, bytes: 0 };
  const row = database
    .prepare(
      `SELECT count(*) AS files, total(doc ->> 'bytes') AS bytes FROM ${filesTable} WHERE doc ->> 'state' IN ('held', 'complete')`,
    )
    .get();
  return { files: Number(row?.files), bytes: Number(row?.bytes) };
}

const rowsPerRead = 500;

/** Reads the rows in turns, so that a server that makes a backup serves on. */
async function* filesOfCopy(database: DatabaseSync): AsyncGenerator<StoredFile> {
  const next = database.prepare(
    `SELECT rowid, id, doc FROM ${filesTable} WHERE rowid > ? ORDER BY rowid LIMIT ${rowsPerRead}`,
  );
  let after = 0;
  for (;;) {
    const rows: readonly Record<string, unknown>[] = next.all(after);
    for (const { id, doc } of rows) {
      const file = storedFile(String(id), String(doc));
      if (file !== undefined) yield file;
    }
    const last: unknown = rows.at(-1)?.rowid;
    if (last === undefined) return;
    after = Number(last);
  }
}

/** Octets that a backup takes up in the folder: none where it makes hard links. */
export async function copiedBytes(
  store: Pick<Store, 'aggregate'>,
  place: Place,
  folder: string,
): Promise<number> {
  if (place.link !== undefined) {
    const [one, other] = await Promise.all([stat(place.incoming), stat(folder)]);
    if (one.dev === other.dev) return 0;
  }
  const sums = keptStates.map((value) => bytesOf(store, { op: 'eq', field: fileFields.stateField, value }));
  return (await Promise.all(sums)).reduce((sum, bytes) => sum + bytes, 0);
}

export type FilesRestore = {
  readonly backup: string;
  readonly place: () => Promise<Place>;
  readonly placeName: string;
  /** True: the restored store takes the place of the one that the backup was made of, and so its files. */
  readonly succeeds: boolean;
  readonly withoutLost: boolean;
  readonly signal: AbortSignal;
  readonly onProgress?: (bytes: number, total: number) => void;
};

/**
 * Brings the octets of a backup into the place of the store that it is restored into. A backup without its folder needs a place that has
 * them.
 * @throws FilesLost, PlaceTaken, PlaceFull, StoreUnavailable; what was copied stays, and another restore continues with it
 */
export async function restoreFiles(restoring: FilesRestore): Promise<FilesCopied> {
  const { backup, signal, succeeds } = restoring;
  const database = openUnchanging(backup);
  try {
    const total = totalOf(database);
    if (total.files === 0) return none;
    const folder = filesFolderOf(backup);
    const isThere = (await stat(folder).catch(() => undefined))?.isDirectory() === true;
    const summary = await readSummary(backup);
    // Where the folder is missing, only the place of the former store can have the octets.
    if (!succeeds && (!isThere || summary?.place === restoring.placeName))
      throw takenFailure(folder, isThere);
    const copied = await copyFiles({
      ...{ files: filesOfCopy(database), to: await restoring.place(), signal },
      from: isThere ? readableFolderPlace(folder) : undefined,
      onCopied: progressTo(total.bytes, restoring.onProgress),
    });
    if (copied.lostCount > 0 && !restoring.withoutLost) throw missingFailure(copied, folder, isThere);
    return copied;
  } finally {
    database.close();
  }
}

function takenFailure(folder: string, isThere: boolean): PlaceTaken {
  const reason = isThere
    ? 'the files of the restored store would be in the place of the store that the backup was made of, and what one of them removes the other would lose'
    : `the backup has files, and its folder ${folder} is missing`;
  const advice = isThere ? 'name another place with COMITY_FILES_URL' : 'copy the folder with the file';
  return new PlaceTaken(
    `${reason}: ${advice}, or say with --no-hold-deliveries that this store takes the place of the other one`,
  );
}

function missingFailure({ lost, lostCount }: FilesCopied, folder: string, isThere: boolean): FilesLost {
  const named = lost
    .slice(0, 5)
    .map(({ id, what }) => `${id} (${what})`)
    .join(', ');
  const where = isThere ? `in ${folder}` : `in the place of files, and there is no folder ${folder}`;
  return new FilesLost(
    `${lostCount} of the files are missing or damaged ${where}: ${named}${lostCount > 5 ? ', ...' : ''}; --lost-files restores without them`,
    lost,
  );
}
