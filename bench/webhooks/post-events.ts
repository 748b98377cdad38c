/**
 * Posts events at a rate whatever the answers do (an open loop), over a few kept connections. What is late goes out at once and says the
 * time at which it does.
 */
import { Pool } from 'undici';
import { nowMs } from './answer-questions.ts';
import { postedText } from './sent-events.ts';

export type PostingPlan = {
  readonly origin: string;
  readonly adminKey: string;
  /** Posted in turn. */
  readonly types: readonly string[];
  readonly perSecond: number;
  readonly durationMs: number;
  /** Posts at most this many at once, hence later than the rate asks for: to warm up, not to measure. */
  readonly outstandingMax?: number;
};

/** How many were made; wrong answers end it. */
export type Posting = { readonly posted: number };

const connections = 32;
const tickMs = 1;

export async function postEvents(plan: PostingPlan): Promise<Posting> {
  const { origin, perSecond, durationMs, outstandingMax = Number.POSITIVE_INFINITY } = plan;
  const pool = new Pool(origin, { connections, pipelining: 1 });
  const answers: Promise<void>[] = [];
  const startedMs = nowMs();
  let outstanding = 0;
  let fault: unknown;
  try {
    for (let elapsedMs = 0; elapsedMs < durationMs && fault === undefined; elapsedMs = nowMs() - startedMs) {
      const due = Math.floor((elapsedMs * perSecond) / 1000);
      while (answers.length < due && outstanding < outstandingMax) {
        outstanding += 1;
        const answer = postOne(pool, plan, answers.length).catch((error: unknown) => {
          fault = error;
        });
        answers.push(
          answer.finally(() => {
            outstanding -= 1;
          }),
        );
      }
      await new Promise((resolve) => setTimeout(resolve, tickMs));
    }
    await Promise.all(answers);
    if (fault !== undefined) throw fault;
    return { posted: answers.length };
  } finally {
    await pool.close();
  }
}

async function postOne(pool: Pool, { adminKey, types }: PostingPlan, index: number): Promise<void> {
  const { statusCode, body } = await pool.request({
    path: '/api/v1/events',
    method: 'POST',
    headers: { authorization: `Bearer ${adminKey}`, 'content-type': 'application/json' },
    body: postedText(index, types[index % types.length] ?? '', nowMs()),
  });
  const text = await body.text();
  if (statusCode !== 202) throw new Error(`an event was answered ${statusCode}: ${text}`);
}
