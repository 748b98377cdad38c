/** Processor time of the thread that runs the tests, in ms: unlike elapsed time it is the same on a busy machine. */
export function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
