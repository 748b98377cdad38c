/** Starting threads: the URL of a thread's entry file, and its priority. */
import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';

/**
 * The URL of an entry file: the TypeScript source when the caller runs from source, otherwise a file of the bundle, which has them all in
 * one folder. scripts/bundle.ts finds the entry points by the calls of this function, whose arguments must therefore be literal.
 * @param entry relative to the caller's file, without extension: `./thread`
 * @param from `import.meta.url` of the caller's file
 */
export function workerFile(entry: string, from: string): URL {
  if (from.endsWith('.ts')) return new URL(`${entry}.ts`, from);
  return new URL(`./${entry.slice(entry.lastIndexOf('/') + 1)}.js`, from);
}

/** Nice value: a tenth of the weight of a thread at 0. */
const niceness = 10;

/** Lowers the thread's priority, so that reads by id keep their latency on a shared processor. Linux only (setpriority(2)). */
export function lowerOwnPriority(): void {
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
    if (Number.isInteger(thread) && thread > 0) setPriority(thread, niceness);
  } catch {
    // Not Linux, or /proc is hidden: both threads then have equal priority, which is slower but correct.
  }
}
