/**
 * `comity restore FILE`: restores a copy by `comity backup` into an empty store, embedded or PostgreSQL, from either.
 * It restores all or nothing. `comity release` sends what the copy holds (hold/hold.ts).
 */
import { basename, resolve } from 'node:path';
import type { Configuration } from '../config/configuration.ts';
import type { WrittenSettings } from '../config/load-settings.ts';
import type { Settings } from '../config/settings.ts';
import { holdRow } from '../hold/hold.ts';
import type { RowToSet, SetRow } from '../store/backup-file/file-format.ts';
import { NotEmpty, type Restored } from '../store/backup-file/read-file.ts';
import { addressOf, describe } from '../store/postgres/connection/address.ts';
import { restore as restorePostgres } from '../store/postgres/restore/postgres-restore.ts';
import { startRestore } from '../store/sqlite/sqlite-backup.ts';
import { storeTables } from '../store-tables.ts';
import { chosenStore } from './chosen-store.ts';
import { CommandFailure, exitCodes } from './failure.ts';
import { onInterrupt, type Progress, showProgress } from './progress.ts';
import { readConfiguration, tellWarnings } from './read-configuration.ts';
import { keyWarnings } from './secrets.ts';
import { startFailure } from './start-failure.ts';
import type { Terminal } from './terminal.ts';

export type RestoreFlags = {
  readonly json: boolean;
  /** The program's version, which a schema that is created here records. */
  readonly version: string;
  /** Whether deliveries and mails are held; undefined: in a copy in another place than that of the backup. */
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
