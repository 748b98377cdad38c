/**
 * `comity backup FILE`: copies the embedded store while a server writes to it, or while none runs. It takes no lock on
 * the data folder: the copy is read from one snapshot, beside whoever writes.
 */
import { existsSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type Environment, loadSettings, type WrittenSettings } from '../config/load-settings.ts';
import { startBackup } from '../store/sqlite/backup.ts';
import { CommandFailure, exitCodes } from './failure.ts';
import { showProgress } from './progress.ts';

/** Resolves with 0 when the copy is whole and on disk; nothing stands under the name of the file otherwise. */
export async function backup(
  file: string,
  environment: Environment,
  options: WrittenSettings,
  json: boolean,
): Promise<number> {
  const { settings } = loadSettings(environment, {}, options);
  const database = join(resolve(settings.data), 'comity.db');
  const target = resolve(file);
  if (!existsSync(database)) {
    throw new CommandFailure(
      `there is no store in ${settings.data}; say where it is with --data or COMITY_DATA`,
    );
  }
  if (existsSync(target)) throw new CommandFailure(`${file} is there already; name a file that is not`);
  if (!existsSync(dirname(target))) throw new CommandFailure(`there is no folder ${dirname(target)}`);
  const startedAt = performance.now();
  await copy(database, target);
  const bytes = statSync(target).size;
  const durationMs = Math.round(performance.now() - startedAt);
  if (json) console.log(JSON.stringify({ file: target, bytes, durationMs }));
  else console.log(`${target} holds the whole store (${bytes} bytes, ${durationMs} ms)`);
  return exitCodes.done;
}

/** An interrupted copy is stopped, and what there is of it removed, before the process ends. */
async function copy(database: string, target: string): Promise<void> {
  const progress = showProgress(process.stderr, 'Copying');
  const { done, stop } = startBackup(database, target, progress.advance);
  const interrupt = (): void => void stop();
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  try {
    await done;
  } finally {
    progress.end();
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
}
