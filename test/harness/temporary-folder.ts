/**
 * Folders for what a test writes. They are removed when the process of the tests ends: hooks of one test run in the order in which they
 * were added, so a removal that a test adds first runs while a server that it started later still writes there.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

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
