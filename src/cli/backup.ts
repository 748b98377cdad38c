/**
 * `comity backup FILE` copies the store into one file, and the octets of its files into a folder beside it; `comity restore FILE` restores
 * both. The file format does not depend on the store.
 *
 * A backup runs with or without servers: it takes no lock, and reads one snapshot beside the writers.
 */
import { existsSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { Configuration } from '../config/configuration.ts';
import { loadSettings, type WrittenSettings } from '../config/load-settings.ts';
import type { Settings } from '../config/settings.ts';
import {
  backUpWithFiles,
  FilesLost,
  filesFolderOf,
  PlaceTaken,
  placeName,
  restoreFiles,
} from '../files/backup-files.ts';
import type { FilesCopied } from '../files/copy-files.ts';
import { type LazyPlace, placeOfSettings } from '../files/open-place.ts';
import { PlaceFull } from '../files/place.ts';
import { holdRow } from '../hold/hold.ts';
import type { BeforeRestore, RowToSet, SetRow } from '../store/backup-file/file-format.ts';
import { NotEmpty, type Restored } from '../store/backup-file/read-file.ts';
import type { Copy, OnProgress, WhenCopied } from '../store/backup-file/write-file.ts';
import { addressOf, describe } from '../store/postgres/connection/address.ts';
import { findStore, startBackup as startPostgresBackup } from '../store/postgres/postgres-backup.ts';
import { restore as restorePostgres } from '../store/postgres/postgres-restore.ts';
import { identifyFile, startBackup, startRestore } from '../store/sqlite/sqlite-backup.ts';
import { storeTables } from '../store-tables.ts';
import { CommandFailure, exitCodes } from './failure.ts';
import { chosenStore, readConfiguration, tellWarnings } from './read-configuration.ts';
import { keyWarnings } from './secrets.ts';
import { startFailure } from './start-failure.ts';
import { onInterrupt, type Progress, showProgress, type Terminal } from './terminal.ts';

export type BackupFlags = {
  readonly json: boolean;
  /** False: octets of files stay where they are, and the copy names them. Default true. */
  readonly files?: boolean;
  /** True: the copy is made without octets that are missing or damaged. */
  readonly lostFiles?: boolean;
};

/** Resolves with 0 when the copy is complete and on disk; otherwise there is no file of that name. */
export async function backup(
  terminal: Terminal,
  file: string,
  options: WrittenSettings,
  { json, files = true, lostFiles = false }: BackupFlags,
): Promise<number> {
  const settings = chosenStore(loadSettings(terminal.environment, {}, options).settings, options);
  const target = resolve(file);
  const begin = await beginningOf(settings);
  if (existsSync(target)) throw new CommandFailure(`${file} exists already; name a new file`);
  if (!existsSync(dirname(target))) throw new CommandFailure(`there is no folder ${dirname(target)}`);
  const startedAt = performance.now();
  const copied = files
    ? await copyWithFiles(terminal, settings, { target, begin, lostFiles })
    : await copy(terminal, (onProgress) => begin(target, onProgress));
  const bytes = statSync(target).size;
  const durationMs = Math.round(performance.now() - startedAt);
  const report = copied === undefined ? {} : { files: copied.files, fileBytes: copied.bytes };
  if (json) terminal.out(JSON.stringify({ file: target, bytes, ...report, durationMs }));
  else {
    terminal.out(`${target} holds the whole store (${bytes} bytes, ${durationMs} ms)`);
    if (copied !== undefined && copied.files > 0)
      terminal.out(`${filesFolderOf(target)} holds its files (${filesText(copied)})`);
  }
  tellLost(terminal, copied);
  return exitCodes.done;
}

function filesText({ files, bytes, found, linked }: FilesCopied): string {
  const parts = [`${files} files`, `${bytes} bytes`];
  if (linked > 0) parts.push(`${linked} by hard link`);
  if (found > 0) parts.push(`${found} were there`);
  return parts.join(', ');
}

function tellLost(terminal: Terminal, copied: FilesCopied | undefined): void {
  for (const { id, what } of copied?.lost ?? []) terminal.err(`comity: warning: the file ${id} is ${what}`);
}

type Begin = (target: string, onProgress: OnProgress, whenCopied?: WhenCopied) => Copy;

type WithFiles = { readonly target: string; readonly begin: Begin; readonly lostFiles: boolean };

async function copyWithFiles(
  terminal: Terminal,
  settings: Settings,
  { target, begin, lostFiles }: WithFiles,
): Promise<FilesCopied> {
  const place = placeOfSettings(settings);
  const progress = showProgress(terminal.stderr, 'Copying files');
  try {
    return await backUpWithFiles({
      copyStore: (whenCopied) =>
        copy(terminal, (onProgress) => begin(target, onProgress, whenCopied)).then(() => undefined),
      ...{ backup: target, place: place.open, placeName: placeName(settings), withoutLost: lostFiles },
      onProgress: progress.advance,
    });
  } catch (error) {
    throw filesFailure(error, ' --lost-files makes the backup without them.');
  } finally {
    progress.end();
    await place.close();
  }
}

/** @param advice of lost files */
function filesFailure(error: unknown, advice: string): unknown {
  if (error instanceof FilesLost)
    return new CommandFailure(`${error.message}${advice}`, { exitCode: exitCodes.damaged, cause: error });
  if (error instanceof PlaceTaken || error instanceof PlaceFull)
    return new CommandFailure(error.message, { cause: error });
  return error;
}

async function beginningOf(settings: Settings): Promise<Begin> {
  const { databaseUrl, databaseSchema: schema, databaseConnectTimeoutMs: connectTimeoutMs } = settings;
  if (databaseUrl === undefined) return embedded(settings);
  const place = { url: databaseUrl, schema, connectTimeoutMs };
  try {
    // Checks the database here, where its failures get better messages than from the thread.
    await findStore(place);
  } catch (error) {
    throw startFailure(error, settings);
  }
  return (target, onProgress, whenCopied) => startPostgresBackup(place, target, onProgress, whenCopied);
}

function embedded(settings: Settings): Begin {
  const database = join(resolve(settings.data), 'comity.db');
  if (!existsSync(database)) {
    throw new CommandFailure(
      `there is no store in ${settings.data}; name its folder with --data or COMITY_DATA`,
    );
  }
  try {
    identifyFile(database);
  } catch (error) {
    throw startFailure(error, settings);
  }
  return (target, onProgress, whenCopied) => startBackup(database, target, onProgress, whenCopied);
}

/** An interrupt stops the copy and removes the partial file before the process ends. */
async function copy(terminal: Terminal, begin: (onProgress: OnProgress) => Copy): Promise<undefined> {
  const progress = showProgress(terminal.stderr, 'Copying');
  const { done, stop } = begin(progress.advance);
  const forget = onInterrupt(() => void stop());
  try {
    await done;
  } finally {
    progress.end();
    forget();
  }
}

// `comity restore FILE`: restores a copy by `comity backup` into an empty store, embedded or PostgreSQL, from either.
// It restores all or nothing of the store, after the octets of its files. `comity release` sends what the copy holds (hold/hold.ts).

export type RestoreFlags = {
  readonly json: boolean;
  /** The program's version, which a schema that is created here records. */
  readonly version: string;
  /** True if deliveries and mails are held; undefined: they are held in a copy that is restored to another place. */
  readonly hold: boolean | undefined;
  /** True: it restores without octets that are missing or damaged. */
  readonly lostFiles: boolean;
};

/** Resolves with 0 when every row is in the store, counted and on disk. */
export async function restore(
  terminal: Terminal,
  file: string,
  options: WrittenSettings,
  { json, version, hold, lostFiles }: RestoreFlags,
): Promise<number> {
  const { configuration, settings: all, warnings } = await readConfiguration(terminal.environment, options);
  tellWarnings(terminal, warnings);
  const settings = chosenStore(all, options);
  const source = resolve(file);
  const startedAt = performance.now();
  let held = false;
  const rowToSet = (sameStore: boolean): SetRow => {
    held = hold ?? !sameStore;
    return holdRow(held ? { since: new Date().toISOString(), from: basename(source) } : undefined);
  };
  let outcome: Outcome;
  let files: FilesCopied | undefined;
  const interrupted = new AbortController();
  const forget = onInterrupt(() => {
    interrupted.abort(new CommandFailure('interrupted: nothing was restored'));
  });
  const place = placeOfSettings(settings);
  const { signal } = interrupted;
  const before: BeforeRestore = async (sameStore) => {
    const succeeds = sameStore || hold === false;
    files = await bringFiles(terminal, source, { settings, place, succeeds, lostFiles, signal });
  };
  try {
    outcome = await (settings.databaseUrl === undefined
      ? intoFolder(terminal, source, { settings, rowToSet, before, signal })
      : intoDatabase(terminal, source, {
          ...{ url: settings.databaseUrl, settings, configuration, version, rowToSet, before, signal },
        }));
  } catch (error) {
    throw startFailure(filesFailure(error, ''), settings);
  } finally {
    forget();
    await place.close();
  }
  const { into, rows, tables, rev } = outcome;
  const durationMs = Math.round(performance.now() - startedAt);
  const report = { files: files?.files ?? 0, fileBytes: files?.bytes ?? 0 };
  if (json)
    terminal.out(
      JSON.stringify({ file: source, into, rows, tables, revision: rev, ...report, held, durationMs }),
    );
  else {
    terminal.out(`${into} holds the whole store (${rows} rows, revision ${rev}, ${durationMs} ms)`);
    if (files !== undefined && files.files > 0)
      terminal.out(`${placeName(settings)} holds its files (${filesText(files)})`);
    if (held) terminal.out('Its deliveries and mails are held until "comity release".');
  }
  tellLost(terminal, files);
  tellWarnings(terminal, keyWarnings(source, settings));
  return exitCodes.done;
}

type Bringing = {
  readonly settings: Settings;
  readonly place: LazyPlace;
  readonly succeeds: boolean;
  readonly lostFiles: boolean;
  readonly signal: AbortSignal;
};

async function bringFiles(
  terminal: Terminal,
  backup: string,
  { settings, place, succeeds, lostFiles, signal }: Bringing,
): Promise<FilesCopied> {
  const progress = showProgress(terminal.stderr, 'Restoring files');
  try {
    return await restoreFiles({
      ...{ backup, place: place.open, placeName: placeName(settings), withoutLost: lostFiles },
      ...{ succeeds, signal, onProgress: progress.advance },
    });
  } finally {
    progress.end();
  }
}

type Outcome = Restored & { readonly into: string };

type Folder = Pick<Database, 'settings' | 'rowToSet' | 'before' | 'signal'>;

async function intoFolder(
  terminal: Terminal,
  source: string,
  { settings, rowToSet, before, signal }: Folder,
): Promise<Outcome> {
  const into = resolve(settings.data);
  const progress = showProgress(terminal.stderr, 'Restoring');
  try {
    const { done, stop } = startRestore(into, source, progress.advance, rowToSet, before);
    signal.addEventListener('abort', () => void stop(), { once: true });
    return { ...(await done), into };
  } catch (error) {
    if (!(error instanceof NotEmpty)) throw error;
    throw new CommandFailure(`${error.message}; name an empty folder with --data or COMITY_DATA`, {
      cause: error,
    });
  } finally {
    progress.end();
  }
}

type Database = {
  readonly url: string;
  readonly settings: Settings;
  readonly configuration: Configuration;
  readonly version: string;
  readonly rowToSet: RowToSet;
  readonly before: BeforeRestore;
  readonly signal: AbortSignal;
};

async function intoDatabase(
  terminal: Terminal,
  source: string,
  { url, settings, configuration, version, rowToSet, before, signal }: Database,
): Promise<Outcome> {
  const progress: Readonly<Record<'rows' | 'indexes', Progress>> = {
    rows: showProgress(terminal.stderr, 'Restoring'),
    indexes: showProgress(terminal.stderr, 'Making indexes'),
  };
  const target = {
    url,
    schema: settings.databaseSchema,
    tables: storeTables(configuration),
    connectTimeoutMs: settings.databaseConnectTimeoutMs,
    observe: ignore,
    program: version,
    rowToSet,
    before,
  };
  try {
    const restored = await restorePostgres(
      target,
      source,
      (what, done, total) => progress[what].advance(done, total),
      signal,
    );
    return { ...restored, into: describe(addressOf(url)) };
  } finally {
    progress.rows.end();
  }
}

function ignore(): void {
  // The outcome includes the schema that was created.
}
