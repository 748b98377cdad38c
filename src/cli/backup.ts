/**
 * `comity backup FILE`: copies the store into one file, with or without running servers. It takes no lock: it reads one
 * snapshot beside the writers. The file format does not depend on the store.
 */
import { existsSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { loadSettings, type WrittenSettings } from '../config/load-settings.ts';
import type { Settings } from '../config/settings.ts';
import type { Copy, OnProgress } from '../store/backup-file/write-file.ts';
import { findStore, startBackup as startPostgresBackup } from '../store/postgres/postgres-backup.ts';
import { identifyFile, startBackup } from '../store/sqlite/sqlite-backup.ts';
import { chosenStore } from './chosen-store.ts';
import { CommandFailure, exitCodes } from './failure.ts';
import { onInterrupt, showProgress } from './progress.ts';
import { startFailure } from './start-failure.ts';
import type { Terminal } from './terminal.ts';

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
