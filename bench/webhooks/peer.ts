/**
 * Beside Comity: BullMQ on a Redis server that syncs its log before each answer. The worker is on the processor where Comity is, Redis beside
 * the receiver, where PostgreSQL is too.
 */
import { type Spread, spreadOf } from '../cell.ts';
import type { Run } from '../measured-run.ts';
import { underWay } from './drains.ts';
import { type Part, startPart } from './part.ts';
import type { Worked } from './peer-worker.ts';
import type { Posting } from './post-events.ts';
import type { Arrivals } from './receiver.ts';
import { startRedis } from './redis.ts';
import { roundsOf } from './rounds.ts';

export type Peer = {
  readonly redisVersion: string;
  readonly perSecond: Spread;
  /** While the times were measured: as many as events to Comity, but at most half of what it drains. */
  readonly jobsPerSecond: number;
  readonly p50Ms: Spread;
  readonly p95Ms: Spread;
};

const arrivalsMsMax = 60_000;

export type PeerParts = {
  readonly run: Run;
  readonly receiver: Part;
  readonly url: string;
  readonly count: number;
  /** Of the events whose time to arrival was measured. */
  readonly perSecond: number;
};

/** Undefined where there is no Redis. */
export async function measurePeer(parts: PeerParts): Promise<Peer | undefined> {
  const { run } = parts;
  const redis = await startRedis(run.pinning, run.folder);
  if (redis === undefined) return undefined;
  try {
    const worker = await startPart(run.pinning, 0, 'webhooks/peer-worker.ts', [String(redis.port)]);
    try {
      const rates: number[] = [];
      const arrivals: Arrivals[] = [];
      for (const { round, isMeasured } of roundsOf(run)) {
        const rate = await drainOnce(parts, worker, round);
        if (isMeasured) rates.push(rate);
      }
      const jobsPerSecond = Math.floor(Math.min(parts.perSecond, spreadOf(rates).median / 2));
      for (const { isMeasured } of roundsOf(run, 1)) {
        const arrived = await addAndCount({ ...parts, perSecond: jobsPerSecond }, worker, redis.port);
        if (isMeasured) arrivals.push(arrived);
      }
      return {
        redisVersion: redis.version,
        perSecond: spreadOf(rates),
        jobsPerSecond,
        p50Ms: spreadOf(arrivals.map(({ p50Ms }) => p50Ms)),
        p95Ms: spreadOf(arrivals.map(({ p95Ms }) => p95Ms)),
      };
    } finally {
      await worker.stop();
    }
  } finally {
    await redis.stop();
  }
}

async function drainOnce({ receiver, url, count }: PeerParts, worker: Part, round: number): Promise<number> {
  await worker.ask({ do: 'fill', from: round * count, count });
  await receiver.ask({ do: 'reset' });
  const { endedMs } = await worker.ask<Worked>({ do: 'work', url, count, underWay });
  const { firstMs } = await receiver.ask<Arrivals>({ do: 'await', count, timeoutMs: arrivalsMsMax });
  return (count / (endedMs - firstMs)) * 1000;
}

async function addAndCount(
  { run, receiver, url, perSecond }: PeerParts,
  worker: Part,
  port: number,
): Promise<Arrivals> {
  const durationMs = run.options.measuredMs;
  const count = Math.floor((perSecond * durationMs) / 1000);
  await receiver.ask({ do: 'reset' });
  const worked = worker.ask<Worked>({ do: 'work', url, count, underWay });
  await receiver.ask<Posting>({ do: 'add-jobs', port, perSecond, durationMs });
  const arrivals = await receiver.ask<Arrivals>({ do: 'await', count, timeoutMs: arrivalsMsMax });
  await worked;
  return arrivals;
}
