/**
 * The peer: a BullMQ worker that sends signed POSTs with undici as the floors do, with retries configured, and logs each attempt in a Redis
 * stream before its job ends. It fills its queue paused; the drain begins when the queue is resumed. Jobs at a rate are added by the process
 * of the receiver (peer-jobs.ts).
 *
 * Usage: node bench/webhooks/peer-worker.ts PORT
 */
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { type SignedPosts, signedPosts } from '../floor/webhooks/signed-posts.ts';
import { answerQuestions, nowMs } from './answer-questions.ts';
import { jobOptions, queueName } from './peer-jobs.ts';
import { eventId, eventText } from './sent-events.ts';

export type PeerQuestion =
  | { readonly do: 'fill'; readonly url: string; readonly from: number; readonly count: number }
  /** Works until so many more jobs have ended. */
  | { readonly do: 'work'; readonly url: string; readonly count: number; readonly underWay: number };
export type Worked = { readonly endedMs: number };

type JobData = { readonly id: string; readonly body: string };

const connection = { host: '127.0.0.1', port: Number(process.argv[2]) };
const queue = new Queue<JobData>(queueName, { connection, defaultJobOptions: jobOptions });
const log = new Redis(connection);
const jobsAtOnce = 1000;

async function fill(from: number, count: number): Promise<object> {
  for (let added = 0; added < count; added += jobsAtOnce) {
    const many = Math.min(jobsAtOnce, count - added);
    await queue.addBulk(
      Array.from({ length: many }, (_, place) => {
        const index = from + added + place;
        return { name: 'deliver', data: { id: eventId(index), body: eventText(index) } };
      }),
    );
  }
  return {};
}

async function work(url: string, count: number, underWay: number): Promise<Worked> {
  const posts = signedPosts(url, 'timestamped');
  let ended = 0;
  const worker = new Worker<JobData>(
    queueName,
    ({ data, attemptsMade }) => deliver(posts, data, attemptsMade),
    {
      connection,
      concurrency: underWay,
    },
  );
  worker.on('error', (error) => process.stderr.write(`${error.stack}\n`));
  await new Promise<void>((resolve) => {
    worker.on('completed', () => {
      ended += 1;
      if (ended === count) resolve();
    });
  });
  const endedMs = nowMs();
  await worker.close();
  await posts.close();
  return { endedMs };
}

async function deliver(posts: SignedPosts, { id, body }: JobData, attemptsMade: number): Promise<void> {
  const startedMs = Date.now();
  const status = await new Promise<number>((resolve) => posts.post(id, Buffer.from(body), resolve));
  const attempt = ['delivery', id, 'number', attemptsMade + 1, 'status', status, 'startedAt', startedMs];
  await log.xadd('attempts', '*', ...attempt, 'endedAt', Date.now());
  if (status < 200 || status > 299) throw new Error(`answered ${status}`);
}

answerQuestions<PeerQuestion>(async (question) =>
  question.do === 'fill'
    ? await fill(question.from, question.count)
    : await work(question.url, question.count, question.underWay),
);
