/** Processor time that this process has used, with its threads and with its children that have ended, in ms. */
import { readFileSync } from 'node:fs';

/** Ticks of the clock in which Linux counts it. */
const ticksPerSecond = 100;

export function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000 + childrenMs();
}

/** 0 where the system does not tell. */
function childrenMs(): number {
  try {
    // The fields after the name of the command, which may hold spaces: the 14th and 15th are those of children (proc(5), stat).
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return ((Number(fields[13]) + Number(fields[14])) * 1000) / ticksPerSecond;
  } catch {
    return 0;
  }
}
