/** Which processor a process may use: servers the first, the load generator the second, where `taskset` exists. */
import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';

export type Pinning = { readonly pinned: boolean; readonly words: string };

export function detectPinning(): Pinning {
  if (availableParallelism() < 2) return { pinned: false, words: 'not pinned: one processor' };
  const tried = spawnSync('taskset', ['-c', '0,1', process.execPath, '--version'], { stdio: 'ignore' });
  if (tried.status !== 0) return { pinned: false, words: 'not pinned: no taskset here' };
  return { pinned: true, words: 'servers with all their threads on CPU 0, load generator on CPU 1' };
}

/** The command line that runs Node with these arguments on that processor. */
export function pinnedCommand(
  pinning: Pinning,
  processor: 0 | 1,
  args: readonly string[],
): readonly [string, string[]] {
  if (!pinning.pinned) return [process.execPath, [...args]];
  return ['taskset', ['-c', String(processor), process.execPath, ...args]];
}
