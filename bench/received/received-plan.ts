/** What the load generator is told to send to a receiver: as fast as answers come, unless a rate is added. */
import type { LoadPlan, ReceivedLoad } from '../load/plan.ts';
import type { Run } from '../measured-run.ts';
import type { ServerProcess } from '../server-process.ts';
import { webhooksPath } from './messages.ts';

/** @param sender the last segment of the path */
export function receivedPlan(
  { options }: Pick<Run, 'options'>,
  { host, port }: ServerProcess,
  { scheme, sendings }: ReceivedLoad,
  sender: string,
): LoadPlan {
  const { connections, warmupMs, measuredMs } = options;
  return {
    ...{ host, port, kind: 'received', connections, warmupMs, measuredMs, fieldLines: '' },
    ...{ path: `${webhooksPath}/${sender}`, received: { scheme, sendings } },
    ...{ rows: 0, createFrom: 0, categoryId: '', polls: false },
  };
}
