/**
 * Lets the threads of the program go before a thread of handlers, so that a handler which loops takes no time from those that answer requests: where
 * they share one processor, the 99th percentile of an acknowledgement was 50 ms without it (docs/performance.md).
 */
import { readlinkSync } from 'node:fs';
import { constants, setPriority } from 'node:os';

/** Linux has a priority for each thread; elsewhere nothing is done, since it would be that of the whole program. */
export function yieldToOthers(): void {
  if (process.platform !== 'linux') return;
  try {
    // `{process}/task/{thread}`
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
    if (thread !== process.pid) setPriority(thread, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // A system that does not let it: handlers run as every other thread does.
  }
}
