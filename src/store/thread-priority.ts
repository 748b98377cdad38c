/**
 * Work that may take long gives way to the event loop: its thread lowers its own priority, so that reads by id keep their latency while
 * it runs, even where both share one processor. Linux names a thread by an id that setpriority(2) takes; elsewhere, and
 * where it is not allowed, the thread runs as it is.
 */
import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';

/** Nice value: a tenth of the weight of a thread at 0. */
const niceness = 10;

export function lowerOwnPriority(): void {
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
    if (Number.isInteger(thread) && thread > 0) setPriority(thread, niceness);
  } catch {
    // Another system, or one that hides /proc: both then compete on equal terms, which is slower but not wrong.
  }
}
