/** One load against one server, with what it cost: the server's processor time, and what other programs took meanwhile. */
import { cpus } from 'node:os';
import type { Sample } from './cell.ts';
import { generateLoad } from './load/generate.ts';
import type { LoadPlan, LoadResult } from './load/plan.ts';
import type { Run } from './measured-run.ts';
import type { ServerProcess } from './server-process.ts';

/** @throws where any answer was wrong */
export async function measureLoad(
  { pinning }: Pick<Run, 'pinning'>,
  server: ServerProcess,
  plan: LoadPlan,
): Promise<{ readonly sample: Sample; readonly result: LoadResult }> {
  const startedMs = performance.now();
  const busyBeforeUs = machineBusyUs();
  const before = server.processorUs();
  const result = await generateLoad(pinning, plan);
  const after = server.processorUs();
  const ownUs = before === undefined || after === undefined ? undefined : after - before;
  const otherUs =
    ownUs === undefined ? undefined : machineBusyUs() - busyBeforeUs - ownUs - result.generatorUs;
  const elapsedUs = (performance.now() - startedMs) * 1000;
  const sample = {
    requestsPerSecond: result.requestsPerSecond,
    latency: result.latency,
    processorUsPerRequest: ownUs === undefined ? undefined : ownUs / result.answersTotal,
    generatorBusy: result.generatorBusy,
    otherBusy: otherUs === undefined ? undefined : Math.max(0, otherUs / elapsedUs),
  };
  return { sample, result };
}

/** Processor time of the whole machine since it started, in microseconds. */
function machineBusyUs(): number {
  let busyMs = 0;
  for (const { times } of cpus()) busyMs += times.user + times.nice + times.sys + times.irq;
  return busyMs * 1000;
}
