/**
 * A file gets its name when it is whole and on disk: it is written under another name beside it, so that whatever ends the
 * writing leaves nothing under the name that a reader looks for.
 */
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';

/** What the file is called while it is written. */
export function partialPath(path: string): string {
  return `${path}.partial`;
}

/** Makes the partial file, empty and readable by its owner alone, in place of one that an earlier attempt left. */
export function beginPartial(path: string): string {
  const partial = partialPath(path);
  rmSync(partial, { force: true });
  closeSync(openSync(partial, 'wx', 0o600));
  return partial;
}

/** Gives the partial file its name once it is on disk, and waits until the name is on disk too. */
export function publish(path: string): void {
  const partial = partialPath(path);
  sync(partial, 'r+');
  renameSync(partial, path);
  // Windows opens no folder as a file, and keeps names by itself.
  if (process.platform !== 'win32') sync(dirname(path), 'r');
}

function sync(path: string, flags: string): void {
  const file = openSync(path, flags);
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
