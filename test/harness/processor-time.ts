/** Processor time, in ms: unlike elapsed time it is the same on a busy machine. */

/** Of the thread that runs the tests. */
export function threadMs(): number {
  return sum(process.threadCpuUsage());
}

/** Of this process with all its threads. */
export function processorMs(): number {
  return sum(process.cpuUsage());
}

function sum({ user, system }: { readonly user: number; readonly system: number }): number {
  return (user + system) / 1000;
}
