/**
 * `comity backup FILE` copies the store into one file, and `comity restore FILE` restores it. The file format does not depend on the store.
 *
 * A backup runs with or without servers: it takes no lock, and reads one snapshot beside the writers.
 */
import { existsSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { Configuration } from '../config/configuration.ts';
import { loadSettings, type WrittenSettings } from '../config/load-settings.ts';
import type { Settings } from '../config/settings.ts';
import { holdRow } from '../hold/hold.ts';
import type { RowToSet, SetRow } from '../store/backup-file/file-format.ts';
import { NotEmpty, type Restored } from '../store/backup-file/read-file.ts';
import type { Copy, OnProgress } from '../store/backup-file/write-file.ts';
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

/** Resolves with 0 when the copy is complete and on disk; otherwise there is no file of that name. */
export async function backup(
  terminal: Terminal,
  file: string,
  options: WrittenSettings,
  json: boolean,
): Promise<number> {
  const settings = chosenStore(loadSettings(terminal.environment, {}, options).settings, options);
  const target = resolve(file);
  const begin = await beginningOf(settings);
  if (existsSync(target)) throw new CommandFailure(`${file} exists already; name a new file`);
  if (!existsSync(dirname(target))) throw new CommandFailure(`there is no folder ${dirname(target)}`);
  const startedAt = performance.now();
  await copy(terminal, (onProgress) => begin(target, onProgress));
  const bytes = statSync(target).size;
  const durationMs = Math.round(performance.now() - startedAt);
  if (json) terminal.out(JSON.stringify({ file: target, bytes, durationMs }));
  else terminal.out(`${target} holds the whole store (${bytes} bytes, ${durationMs} ms)`);
  return exitCodes.done;
}

type Begin = (target: string, onProgress: OnProgress) => Copy;

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
  return (target, onProgress) => startPostgresBackup(place, target, onProgress);
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
  return (target, onProgress) => startBackup(database, target, onProgress);
}

/** An interrupt stops the copy and removes the partial file before the process ends. */
async function copy(terminal: Terminal, begin: (onProgress: OnProgress) => Copy): Promise<void> {
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
// It restores all or nothing. `comity release` sends what the copy holds (hold/hold.ts).

export type RestoreFlags = {
  readonly json: boolean;
  /** The program's version, which a schema that is created here records. */
  readonly version: string;
  /** True if deliveries and mails are held; undefined: they are held in a copy that is restored to another place. */
  readonly hold: boolean | undefined;
};

/** Resolves with 0 when every row is in the store, counted and on disk. */
export async function restore(
  terminal: Terminal,
  file: string,
  options: WrittenSettings,
  { json, version, hold }: RestoreFlags,
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
  try {
    outcome = await (settings.databaseUrl === undefined
      ? intoFolder(terminal, source, settings, rowToSet)
      : intoDatabase(terminal, source, {
          ...{ url: settings.databaseUrl, settings, configuration, version, rowToSet },
        }));
  } catch (error) {
    throw startFailure(error, settings);
  }
  const { into, rows, tables, rev } = outcome;
  const durationMs = Math.round(performance.now() - startedAt);
  if (json)
    terminal.out(JSON.stringify({ file: source, into, rows, tables, revision: rev, held, durationMs }));
  else {
    terminal.out(`${into} holds the whole store (${rows} rows, revision ${rev}, ${durationMs} ms)`);
    if (held) terminal.out('Its deliveries and mails are held until "comity release".');
  }
  tellWarnings(terminal, keyWarnings(source, settings));
  return exitCodes.done;
}

type Outcome = Restored & { readonly into: string };

async function intoFolder(
  terminal: Terminal,
  source: string,
  settings: Settings,
  rowToSet: RowToSet,
): Promise<Outcome> {
  const into = resolve(settings.data);
  const progress = showProgress(terminal.stderr, 'Restoring');
  try {
    const { done, stop } = startRestore(into, source, progress.advance, rowToSet);
    const forget = onInterrupt(() => void stop());
    return { ...(await done.finally(forget)), into };
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
};

async function intoDatabase(
  terminal: Terminal,
  source: string,
  { url, settings, configuration, version, rowToSet }: Database,
): Promise<Outcome> {
  const interrupted = new AbortController();
  const forget = onInterrupt(() => {
    interrupted.abort(new CommandFailure('interrupted: nothing was restored'));
  });
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
  };
  try {
    const restored = await restorePostgres(
      target,
      source,
      (what, done, total) => progress[what].advance(done, total),
      interrupted.signal,
    );
    return { ...restored, into: describe(addressOf(url)) };
  } finally {
    progress.rows.end();
    forget();
  }
}

function ignore(): void {
  // The outcome includes the schema that was created.
}
