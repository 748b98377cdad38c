/**
 * Folders for what a test writes. They are removed when the process of the tests ends: hooks of one test run in the order in which they
 * were added, so a removal that a test adds first runs while a server that it started later still writes there.
 */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const made: string[] = [];

process.on('exit', () => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true });
});

/** A new folder, empty and writable. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'comity-test-'));
  made.push(folder);
  return folder;
}

/** Lets a configuration in the folder import `comity`: the sources in a test's own process, the bundle in one that it starts. */
export function linkPackage(folder: string): void {
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(resolve(import.meta.dirname, '../..'), join(folder, 'node_modules/comity'));
}
