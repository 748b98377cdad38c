/** How slow the processor of this machine is now, beside the one on which the bounds of processor time were set. */

/** Its reading and writing is of the kind of work that requests cost. */
const text = JSON.stringify(
  Array.from({ length: 200 }, (_, index) => ({ id: `row${index}`, tags: ['a', 'b'] })),
);
const measuredMs = 60;
/** Processor time of one round on a quiet machine with AMD EPYC processors, in ms. */
const referenceMs = 0.1;

/** @returns how many times longer a round takes now; at least 1 */
export function slowness(): number {
  const begunMs = threadMs();
  let rounds = 0;
  let usedMs = 0;
  while (usedMs < measuredMs) {
    JSON.stringify(JSON.parse(text));
    rounds += 1;
    usedMs = threadMs() - begunMs;
  }
  return Math.max(1, usedMs / rounds / referenceMs);
}

function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
