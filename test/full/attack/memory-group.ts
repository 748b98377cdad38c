/** A control group (version 1 or 2) that bounds the memory of one program from its first instruction on. */
import { accessSync, constants, existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const versionOne = '/sys/fs/cgroup/memory';
const versionTwo = '/sys/fs/cgroup';

export type MemoryGroup = {
  /** Runs a command inside the group, under the process id that `spawn` gives. */
  wrap(command: string, args: readonly string[]): readonly [string, string[]];
  /** Once the process has ended. */
  remove(): void;
};

/** Undefined where control groups are missing or not writable: the peak of resident memory is judged all the same. */
export function memoryGroup(bytes: number, name: string): MemoryGroup | undefined {
  try {
    const one = existsSync(join(versionOne, 'memory.limit_in_bytes'));
    const parent = one ? versionOne : versionTwo;
    accessSync(parent, constants.W_OK);
    const folder = join(parent, `comity-attack-${process.pid}-${name}`);
    mkdirSync(folder);
    writeFileSync(join(folder, one ? 'memory.limit_in_bytes' : 'memory.max'), String(bytes));
    const members = join(folder, 'cgroup.procs');
    return {
      // The shell enters the group and becomes the program: Node reads its bound while it starts.
      wrap: (command, args) => ['sh', ['-c', 'echo $$ > "$0" && exec "$@"', members, command, ...args]],
      remove: () => rmdirSync(folder),
    };
  } catch {
    // Not on Linux, or without the right to make groups.
    return undefined;
  }
}
