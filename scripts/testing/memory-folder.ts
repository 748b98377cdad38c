/**
 * A place in memory for the temporary files of a run, so that no commit of a store under test waits for a disk: with it the default tier used
 * a tenth less processor time. What a store must find on a disk again, it must find there too: a test kills processes, not the machine.
 */
import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { freemem } from 'node:os';
import { join } from 'node:path';

/** The default tier fills some 300 MiB at a time. */
const bytesLeast = 4 * 1_073_741_824;

const sharedMemory = '/dev/shm';

/**
 * Has temporary files created in memory from now on, here and in processes started later.
 * @returns what removes them and the place; does nothing where the system has no such place, too little of it, or TMPDIR names another
 */
export function useMemoryForFiles(): () => void {
  if (process.env.TMPDIR !== undefined || roomBytes() < bytesLeast) return () => undefined;
  const folder = mkdtempSync(join(sharedMemory, 'comity-test-'));
  // PostgreSQL runs as a user of its own, who passes through.
  chmodSync(folder, 0o711);
  process.env.TMPDIR = folder;
  return () => {
    delete process.env.TMPDIR;
    rmSync(folder, { recursive: true, force: true });
  };
}

function roomBytes(): number {
  try {
    const { bavail, bsize } = statfsSync(sharedMemory);
    return Math.min(bavail * bsize, freemem());
  } catch {
    return 0;
  }
}
