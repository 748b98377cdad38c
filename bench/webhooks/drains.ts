/**
 * How many deliveries a second leave a backlog: from the first arrival to the last attempt in the log, Comity against the floors in turn
 * within each round. Endpoints are disabled while they are seeded, and enabled when it is their turn.
 */

import { type Spread, spreadOf } from '../cell.ts';
import type { Place } from '../engine.ts';
import type { SendQuestion, Sent } from '../floor/webhooks/bare.ts';
import type { Scheme } from '../floor/webhooks/signed-posts.ts';
import type { Run } from '../measured-run.ts';
import { type Part, startPart } from './part.ts';
import type { Program } from './program.ts';
import type { Arrivals, Hung } from './receiver.ts';
import { roundsOf } from './rounds.ts';
import type { SeededDeliveries, SeededEndpoint } from './seed.ts';

export const drainNames = [
  'one endpoint, timestamped',
  'one endpoint, standard',
  'one endpoint, standard, also v1a',
  '100 endpoints, timestamped',
] as const;
export type DrainName = (typeof drainNames)[number];

/** Posts under way at once in all that is compared. */
export const underWay = 64;
const many = 100;
const arrivalsMsMax = 60_000;

export type Drain = {
  readonly name: DrainName;
  readonly comity: Spread;
  readonly bare: Spread;
  readonly claimed: Spread;
  /** Within each round. */
  readonly toBare: Spread;
  readonly toClaimed: Spread;
  /** Processor time of the program for one delivery, microseconds. */
  readonly processorUs: Spread;
  readonly receiverBusyMost: number;
};

type Sample = { readonly perSecond: number; readonly processorUs: number; readonly receiverBusy: number };

/** What must be seeded for so many rounds. */
export function drainSeeds(
  url: string,
  count: number,
  rounds: number,
): { readonly endpoints: readonly SeededEndpoint[]; readonly deliveries: readonly SeededDeliveries[] } {
  const endpoints: SeededEndpoint[] = [];
  const deliveries: SeededDeliveries[] = [];
  for (let round = 0; round < rounds; round += 1) {
    for (const name of drainNames) {
      const ids = endpointsOf(name, round);
      for (const id of ids) {
        const own = { url, events: ['nothing.happens'], status: 'disabled', scheme: schemeOf(name) } as const;
        const window = ids.length === 1 ? { maxInFlight: underWay } : {};
        endpoints.push({ id, ...own, ...window, ...signaturesOf(name) });
      }
      deliveries.push({ endpoints: ids, from: round * count, to: (round + 1) * count });
    }
  }
  return { endpoints, deliveries };
}

function endpointsOf(name: DrainName, round: number): readonly string[] {
  const place = drainNames.indexOf(name);
  const count = name.startsWith('100') ? many : 1;
  return Array.from({ length: count }, (_, at) => `ep_drain${place}x${round}x${at}`);
}

function schemeOf(name: DrainName): Scheme {
  return name.includes('standard') ? 'standard' : 'timestamped';
}

/** The floors make no Ed25519 signature; an endpoint that names no versions gets one. */
function signaturesOf(name: DrainName): Pick<SeededEndpoint, 'signatures'> {
  return name.endsWith('standard') ? { signatures: ['v1'] } : {};
}

export type DrainParts = {
  readonly run: Run;
  readonly receiver: Part;
  readonly program: Program;
  readonly url: string;
  readonly count: number;
};

export async function measureDrains(parts: DrainParts): Promise<readonly Drain[]> {
  const { run } = parts;
  const [bare, claimed] = await startFloors(run);
  const samples = new Map(drainNames.map((name) => [name, { comity: [], bare: [], claimed: [] } as Samples]));
  try {
    for (const { round, isMeasured } of roundsOf(run)) {
      process.stderr.write(`${run.store}: webhooks, round ${round + 1}\n`);
      for (const [name, of] of samples) {
        const sides: (readonly [Sample[], () => Promise<Sample>])[] = [
          [of.comity, () => drainOnce(parts, name, round)],
          [of.bare, () => floorOnce(parts, bare, name)],
          [of.claimed, () => floorOnce(parts, claimed, name)],
        ];
        for (const [list, measure] of round % 2 === 0 ? sides : sides.reverse()) {
          const sample = await measure();
          if (isMeasured) list.push(sample);
        }
      }
    }
  } finally {
    await Promise.all([bare.stop(), claimed.stop()]);
  }
  return [...samples].map(([name, of]) => drainOf(name, of));
}

type Samples = { readonly comity: Sample[]; readonly bare: Sample[]; readonly claimed: Sample[] };

async function startFloors({ pinning, engine }: Run): Promise<readonly [Part, Part]> {
  const place = engine.newPlace();
  const bare = await startPart(pinning, 0, 'floor/webhooks/bare.ts');
  const claimed = await startPart(pinning, 0, `floor/webhooks/${place.store}.ts`, floorArgs(place));
  return [bare, claimed];
}

function floorArgs(place: Place): readonly string[] {
  return place.store === 'sqlite' ? [`${place.folder}/floor.db`] : [place.url, place.schema];
}

async function drainOnce(
  { receiver, program, count }: DrainParts,
  name: DrainName,
  round: number,
): Promise<Sample> {
  const before = await program.settled();
  await receiver.ask({ do: 'reset' });
  const ids = endpointsOf(name, round);
  const begunMs = ids.length > 1 ? await beginTogether(receiver, program, ids) : undefined;
  const processorBefore = program.server.processorUs() ?? Number.NaN;
  for (const id of ids.length > 1 ? [] : ids) await program.setStatus(id, 'enabled');
  const { firstMs, busy } = await receiver.ask<Arrivals>({ do: 'await', count, timeoutMs: arrivalsMsMax });
  const endedMs = await program.awaitSettled(before.delivered + count);
  const processorUs = ((program.server.processorUs() ?? Number.NaN) - processorBefore) / count;
  await expectArrivals(receiver, count);
  const perSecond = (count / (endedMs - (begunMs ?? firstMs))) * 1000;
  return { perSecond, processorUs, receiverBusy: busy };
}

/** Enabling many takes a while: until it is over the receiver answers nothing. @returns from when it does */
async function beginTogether(receiver: Part, program: Program, ids: readonly string[]): Promise<number> {
  await receiver.ask({ do: 'hang', ports: Number.MAX_SAFE_INTEGER });
  for (const id of ids) await program.setStatus(id, 'enabled');
  const { sinceMs } = await receiver.ask<Hung>({ do: 'hang', ports: 0 });
  return sinceMs;
}

async function floorOnce(
  { receiver, url, count }: DrainParts,
  floor: Part,
  name: DrainName,
): Promise<Sample> {
  await receiver.ask({ do: 'reset' });
  const question: SendQuestion = { url, scheme: schemeOf(name), count, underWay };
  const { endedMs } = await floor.ask<Sent>(question);
  const { firstMs, busy } = await expectArrivals(receiver, count);
  return { perSecond: (count / (endedMs - firstMs)) * 1000, processorUs: Number.NaN, receiverBusy: busy };
}

/** A delivery that is missing, or came twice, would make every figure void. */
async function expectArrivals(receiver: Part, count: number): Promise<Arrivals> {
  const arrivals = await receiver.ask<Arrivals>({ do: 'await', count, timeoutMs: arrivalsMsMax });
  if (arrivals.count !== count) throw new Error(`${arrivals.count} deliveries arrived, not ${count}`);
  return arrivals;
}

function drainOf(name: DrainName, { comity, bare, claimed }: Samples): Drain {
  const rate = (samples: readonly Sample[]): readonly number[] => samples.map(({ perSecond }) => perSecond);
  const ratio = (floor: readonly Sample[]): Spread =>
    spreadOf(comity.map(({ perSecond }, round) => perSecond / (floor[round]?.perSecond ?? Number.NaN)));
  return {
    name,
    comity: spreadOf(rate(comity)),
    bare: spreadOf(rate(bare)),
    claimed: spreadOf(rate(claimed)),
    toBare: ratio(bare),
    toClaimed: ratio(claimed),
    processorUs: spreadOf(comity.map(({ processorUs }) => processorUs)),
    receiverBusyMost: Math.max(...[...comity, ...bare, ...claimed].map(({ receiverBusy }) => receiverBusy)),
  };
}
