/** A disk that a test can fill: a file system in memory, of a few megabytes. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { temporaryFolder } from './temporary-folder.ts';

/** Its folder, until the end of the test; undefined, and the test is skipped, where none can be mounted. @param size as mount reads it: `6m` */
export function smallDisk(context: TestContext, size: string): string | undefined {
  const disk = join(temporaryFolder(), 'disk');
  mkdirSync(disk);
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', disk]).status !== 0) {
    context.skip('no file system can be mounted here');
    return undefined;
  }
  // Also where a server still holds a file on it.
  context.after(() => spawnSync('umount', ['-l', disk]));
  return disk;
}

/** Writes a page more to the file. @returns false where nothing more fits */
export function fill(path: string): boolean {
  try {
    writeFileSync(path, Buffer.alloc(4096), { flag: 'a' });
    return true;
  } catch {
    return false;
  }
}
