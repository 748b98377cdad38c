/** Jobs of the peer at a rate, as post-events.ts posts events to Comity; without HTTP in between, which is in the peer's favour. */
import { Queue } from 'bullmq';
import { nowMs } from './answer-questions.ts';
import type { Posting } from './post-events.ts';
import { eventId, postedText } from './sent-events.ts';

export type JobsPlan = { readonly port: number; readonly perSecond: number; readonly durationMs: number };

export const queueName = 'webhooks';
export const jobOptions = {
  attempts: 10,
  backoff: { type: 'exponential', delay: 5000 },
  removeOnComplete: true,
  removeOnFail: true,
};
const tickMs = 1;

/** Adds `perSecond * durationMs / 1000` jobs, whole and rounded down. */
export async function addJobs({ port, perSecond, durationMs }: JobsPlan): Promise<Posting> {
  const queue = new Queue(queueName, {
    connection: { host: '127.0.0.1', port },
    defaultJobOptions: jobOptions,
  });
  const count = Math.floor((perSecond * durationMs) / 1000);
  const added: Promise<unknown>[] = [];
  await queue.waitUntilReady();
  const startedMs = nowMs();
  while (added.length < count) {
    const due = Math.min(count, Math.floor(((nowMs() - startedMs) * perSecond) / 1000));
    while (added.length < due) {
      const index = added.length;
      added.push(queue.add('deliver', { id: eventId(index), body: postedText(index, 'peer.job', nowMs()) }));
    }
    await new Promise((resolve) => setTimeout(resolve, tickMs));
  }
  await Promise.all(added);
  await queue.close();
  return { posted: count };
}
