/**
 * What claims and memory cost with many deliveries waiting: ten thousand that are due leave a database in which a thousand others wait, and
 * one in which a million do. Half of those belong to the endpoint itself and are due tomorrow, half are due to one that is disabled.
 */
import { type Spread, spreadOf } from '../cell.ts';
import type { Run } from '../measured-run.ts';
import { underWay } from './drains.ts';
import type { Part } from './part.ts';
import { type Program, startProgram } from './program.ts';
import type { Arrivals } from './receiver.ts';
import { roundsOf } from './rounds.ts';
import { type SeededDeliveries, type SeededEndpoint, seedWebhooks } from './seed.ts';

const tomorrowMs = 86_400_000;
const arrivalsMsMax = 60_000;

export type BacklogSide = {
  readonly waiting: number;
  readonly perSecond: Spread;
  /** Resident memory without mapped files, of the database above all, at the end. */
  readonly memoryBytes: number;
};
export type Backlog = { readonly few: BacklogSide; readonly many: BacklogSide; readonly costRatio: Spread };

type Side = {
  readonly waiting: number;
  readonly program: Program;
  readonly rates: number[];
};

export async function measureBacklog(
  run: Run,
  receiver: Part,
  url: string,
  count: number,
  waitings: readonly [number, number],
): Promise<Backlog> {
  const sides: Side[] = [];
  try {
    for (const waiting of waitings) sides.push(await startSide(run, url, count, waiting));
    for (const { round, isMeasured } of roundsOf(run)) {
      for (const side of round % 2 === 0 ? sides : [...sides].reverse()) {
        const rate = await drainOnce(side, receiver, count, round);
        if (isMeasured) side.rates.push(rate);
      }
    }
    const [few, many] = sides;
    if (few === undefined || many === undefined) throw new Error('a backlog has two sides');
    return {
      few: sideOf(few),
      many: sideOf(many),
      costRatio: spreadOf(few.rates.map((rate, round) => rate / (many.rates[round] ?? Number.NaN))),
    };
  } finally {
    await Promise.all(sides.map(({ program }) => program.stop()));
  }
}

async function startSide(run: Run, url: string, count: number, waiting: number): Promise<Side> {
  const place = run.engine.newPlace();
  const endpoints: SeededEndpoint[] = [];
  const deliveries: SeededDeliveries[] = [];
  const rounds = roundsOf(run);
  for (const { round } of rounds) {
    endpoints.push(endpoint(url, round));
    deliveries.push({ endpoints: [idOf(round)], from: round * count, to: (round + 1) * count });
  }
  const parked = 'ep_parked';
  endpoints.push({ ...endpoint(url, 0), id: parked });
  const half = waiting / 2;
  deliveries.push({ endpoints: [parked], from: 0, to: half, ofEvent: 0 });
  const ids = rounds.map(({ round }) => idOf(round));
  deliveries.push({ endpoints: ids, from: 0, to: half, ofEvent: 0, dueAt: Date.now() + tomorrowMs });
  process.stderr.write(`${run.store}: storing ${waiting} deliveries that wait\n`);
  await seedWebhooks(place, { endpoints, events: count * rounds.length, deliveries });
  const program = await startProgram(run.pinning, place);
  return { waiting, program, rates: [] };
}

function idOf(round: number): string {
  return `ep_backlog${round}`;
}

function endpoint(url: string, round: number): SeededEndpoint {
  const rest = { events: ['nothing.happens'], scheme: 'timestamped', status: 'disabled' } as const;
  return { id: idOf(round), url, maxInFlight: underWay, ...rest };
}

async function drainOnce({ program }: Side, receiver: Part, count: number, round: number): Promise<number> {
  const before = await program.settled();
  await receiver.ask({ do: 'reset' });
  await program.setStatus(idOf(round), 'enabled');
  const { firstMs } = await receiver.ask<Arrivals>({ do: 'await', count, timeoutMs: arrivalsMsMax });
  const endedMs = await program.awaitSettled(before.delivered + count);
  return (count / (endedMs - firstMs)) * 1000;
}

function sideOf({ waiting, rates, program }: Side): BacklogSide {
  const memoryBytes = program.server.ownMemoryBytes() ?? Number.NaN;
  return { waiting, perSecond: spreadOf(rates), memoryBytes };
}
