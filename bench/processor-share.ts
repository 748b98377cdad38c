/**
 * Gives a process a share of a processor through a control group, to stand for a machine of its own where there are not enough
 * processors: what N processes do together is then bounded by their shares or by what they have in common, which is
 * what a measurement of scaling asks. Linux with writable control groups (version 1 or 2); elsewhere undefined.
 */
import { accessSync, constants, existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const periodUs = 10_000;
const versionOne = '/sys/fs/cgroup/cpu';
const versionTwo = '/sys/fs/cgroup';

export type ProcessorShare = {
  /** Runs a command so that it and its children have the share together. */
  wrap(command: string, args: readonly string[]): readonly [string, string[]];
  /** Once every process in it has ended. */
  remove(): void;
};

/** @param share of one processor, such as 0.3 */
export function processorShare(name: string, share: number): ProcessorShare | undefined {
  const quotaUs = Math.round(share * periodUs);
  try {
    const one = existsSync(join(versionOne, 'cpu.cfs_quota_us'));
    const folder = join(one ? versionOne : versionTwo, `comity-bench-${process.pid}-${name}`);
    accessSync(one ? versionOne : versionTwo, constants.W_OK);
    mkdirSync(folder);
    if (one) {
      writeFileSync(join(folder, 'cpu.cfs_period_us'), String(periodUs));
      writeFileSync(join(folder, 'cpu.cfs_quota_us'), String(quotaUs));
    } else writeFileSync(join(folder, 'cpu.max'), `${quotaUs} ${periodUs}`);
    const members = join(folder, 'cgroup.procs');
    return {
      wrap: (command, args) => ['sh', ['-c', 'echo $$ > "$0" && exec "$@"', members, command, ...args]],
      remove: () => rmdirSync(folder),
    };
  } catch {
    // No control groups here, or none that may be written: the caller says that it could not measure.
    return undefined;
  }
}
