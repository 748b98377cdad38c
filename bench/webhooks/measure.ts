/** The rows of webhooks out, as text: what is sent, how soon it arrives, whom a hanging receiver delays, and what a backlog costs. */
import type { Spread } from '../cell.ts';
import { machine, type Run, say } from '../measured-run.ts';
import { megabytes, spreadText, verdict } from '../table.ts';
import { webhookTargets } from '../targets.ts';
import {
  arrivalSeeds,
  type Fairness,
  fairEndpoints,
  hangingEndpoints,
  measureArrivals,
  measureFairness,
  type Timed,
  warmUp,
} from './arrivals.ts';
import { type Backlog, measureBacklog } from './backlog.ts';
import { type Drain, drainSeeds, measureDrains } from './drains.ts';
import { type Part, startPart } from './part.ts';
import { measurePeer, type Peer } from './peer.ts';
import { startProgram } from './program.ts';
import { roundsOf } from './rounds.ts';
import { seedWebhooks } from './seed.ts';

/** Deliveries of a drain for each millisecond of a cell: about as many as leave in that time. */
const deliveriesPerMs = 5;
/** A cell that is shorter than this only shows that everything runs. */
const smokeMs = 500;
const backlogRows = 10_000;
const fewRows = 1000;

/** Says the rows, and returns every figure of them. */
export async function measureWebhooks(run: Run): Promise<unknown> {
  say(run, ...machine(run));
  const receiver = await startPart(run.pinning, 1, 'webhooks/receiver.ts');
  try {
    const { ports } = await receiver.ask<{ ports: readonly number[] }>({
      ...{ do: 'open', ports: fairEndpoints + 1, unmeasured: hangingEndpoints, polls: receiverPolls(run) },
    });
    const url = `http://127.0.0.1:${ports[fairEndpoints]}/hook`;
    const { only } = run.options;
    const rates = only.some((name) => name === 'webhooks' || name === 'webhook-peer')
      ? await measureRates(run, receiver, url, ports.slice(0, fairEndpoints))
      : undefined;
    const peer =
      rates !== undefined && only.includes('webhook-peer')
        ? await measurePeer({ run, receiver, url, ...rates })
        : undefined;
    if (rates !== undefined && only.includes('webhook-peer')) sayPeer(run, peer, rates);
    const backlog = only.includes('webhook-backlog') ? await measureWaiting(run, receiver, url) : undefined;
    return { report: run.report, store: run.store, ...rates, peer, backlog };
  } finally {
    await receiver.stop();
  }
}

async function measureWaiting(run: Run, receiver: Part, url: string): Promise<Backlog> {
  const waiting = Math.max(...run.options.rows[run.store]);
  const due = Math.min(backlogRows, countOf(run));
  const backlog = await measureBacklog(run, receiver, url, due, [Math.min(fewRows, waiting), waiting]);
  sayBacklog(run, backlog, due);
  return backlog;
}

/** Deliveries of one drain. */
function countOf({ options }: Run): number {
  const { measuredMs } = options;
  return Math.ceil(measuredMs < smokeMs ? measuredMs : deliveriesPerMs * measuredMs);
}

type Rates = {
  readonly count: number;
  readonly perSecond: number;
  readonly drains: readonly Drain[];
  readonly arrivals: Timed;
  readonly fairness: Fairness;
};

async function measureRates(run: Run, receiver: Part, url: string, ports: readonly number[]): Promise<Rates> {
  const rounds = roundsOf(run).length;
  const count = countOf(run);
  const place = run.engine.newPlace();
  const { endpoints, deliveries } = drainSeeds(url, count, rounds);
  const all = [...endpoints, ...arrivalSeeds(url, ports)];
  await seedWebhooks(place, { endpoints: all, events: count * rounds, deliveries });
  const program = await startProgram(run.pinning, place);
  try {
    const drains = await measureDrains({ run, receiver, program, url, count });
    sayDrains(run, drains, count);
    const perSecond = Math.max(1, Math.floor((drains[0]?.comity.median ?? 0) / 4));
    await warmUp({ run, receiver, program });
    const arrivals = await measureArrivals({ run, receiver, program, perSecond });
    sayArrivals(run, arrivals, perSecond);
    const fairness = await measureFairness({ run, receiver, program, perSecond });
    sayFairness(run, fairness, perSecond);
    return { count, perSecond, drains, arrivals, fairness };
  } finally {
    await program.stop();
  }
}

/** PostgreSQL and Redis run on the processor of the receiver. Where Comity is compared with the peer, the receiver sleeps for both. */
function receiverPolls({ store, pinning, options }: Run): boolean {
  return store === 'sqlite' && pinning.pinned && !options.only.includes('webhook-peer');
}

function sayDrains(run: Run, drains: readonly Drain[], count: number): void {
  const least = webhookTargets.toBareLeast[run.store];
  say(
    run,
    '',
    `${count.toLocaleString('en')} deliveries that are due, 64 posts under way, from the first arrival to the last attempt in the log:`,
    '',
    '| drain | Comity/bare posts (spread) | target | Comity/claims and log (spread) | Comity/s | bare/s | claims and log/s | CPU us Comity |',
    '|---|---|---|---|---|---|---|---|',
    ...drains.map(({ name, toBare, toClaimed, comity, bare, claimed, processorUs }) =>
      [
        ...[
          '',
          name,
          spreadText(toBare),
          `>= ${least} ${verdict(toBare.median >= least)}`,
          spreadText(toClaimed),
        ],
        ...[whole(comity), whole(bare), whole(claimed), processorUs.median.toFixed(0), ''],
      ]
        .join(' | ')
        .trim(),
    ),
    '',
  );
  const busy = Math.max(...drains.map(({ receiverBusyMost }) => receiverBusyMost));
  say(run, `Receiver: at most ${(busy * 100).toFixed(0)} % of its processor.`);
}

function sayArrivals(run: Run, { p50Ms, p95Ms }: Timed, perSecond: number): void {
  const most = webhookTargets.arrivalP95MsMost;
  say(
    run,
    `from the post of an event to its arrival at ${perSecond}/s: p50 ${spreadText(p50Ms)} ms, p95 ${spreadText(p95Ms)} ms, target < ${most} ${verdict(p95Ms.median < most)}`,
  );
}

function sayFairness(run: Run, { quiet, hanging, ratio }: Fairness, perSecond: number): void {
  const most = webhookTargets.hangingRatioMost;
  say(
    run,
    `p95 at ${perSecond}/s to ${fairEndpoints} endpoints: ${spreadText(quiet.p95Ms)} ms, ${spreadText(hanging.p95Ms)} ms of the healthy ones while ${hangingEndpoints} hang: ` +
      `ratio ${spreadText(ratio)}, target < ${most} ${verdict(ratio.median < most)}`,
  );
}

function sayPeer(run: Run, peer: Peer | undefined, { drains, arrivals, perSecond }: Rates): void {
  if (peer === undefined) {
    say(run, 'BullMQ and Redis: not measured, no redis-server here');
    return;
  }
  const [drain] = drains;
  const isAhead =
    (drain?.comity.median ?? 0) > peer.perSecond.median && arrivals.p95Ms.median < peer.p95Ms.median;
  say(
    run,
    `BullMQ with Redis ${peer.redisVersion} (\`appendfsync always\`, attempts in a stream): ${whole(peer.perSecond)} deliveries/s against ${whole(drain?.comity)}; ` +
      `at ${peer.jobsPerSecond}/s p50 ${spreadText(peer.p50Ms)} ms, p95 ${spreadText(peer.p95Ms)} ms against ${spreadText(arrivals.p95Ms)} ms at ${perSecond}/s; target ahead on both ${verdict(isAhead)}`,
  );
}

function sayBacklog(run: Run, { few, many, costRatio }: Backlog, due: number): void {
  const most = webhookTargets.backlogCostMost;
  say(
    run,
    `${due.toLocaleString('en')} due ones among ${few.waiting.toLocaleString('en')} and among ${many.waiting.toLocaleString('en')} others: ` +
      `${whole(few.perSecond)}/s and ${whole(many.perSecond)}/s, cost ratio ${spreadText(costRatio)}, target <= ${most} ${verdict(costRatio.median <= most)}; ` +
      `memory ${megabytes(few.memoryBytes)} MB and ${megabytes(many.memoryBytes)} MB`,
  );
}

function whole(spread: Spread | undefined): string {
  if (spread === undefined) return '?';
  return `${Math.round(spread.median)} (${Math.round(spread.least)}-${Math.round(spread.most)})`;
}
