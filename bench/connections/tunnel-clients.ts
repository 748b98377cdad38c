/**
 * The clients of a proxy, all in one process on the second processor: octets a second through so many tunnels, tunnels opened a second, and
 * tunnels that are held open. Asked and answered as bench/webhooks/part.ts has it.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { LatencyHistogram } from '../load/histogram.ts';
import { answerQuestions } from '../webhooks/answer-questions.ts';
import { type Route, TunnelClient } from './tunnel-client.ts';

/** 2.3 GB/s from a source on the same processor, with 64 KiB 1.4 to 1.6. */
const readBufferBytes = 1_048_576;
/** Opened at once; more would meet the bound of an accept queue. */
const openingMax = 64;
/** One tunnel takes no longer to open, or something is wrong. */
const openMsMax = 10_000;

type Times = { readonly warmupMs: number; readonly measuredMs: number };
export type TunnelQuestion =
  | ({ readonly ask: 'octets'; readonly route: Route; readonly tunnels: number } & Times)
  | ({ readonly ask: 'setups'; readonly route: Route; readonly atOnce: number } & Times)
  | { readonly ask: 'hold'; readonly route: Route; readonly tunnels: number }
  | { readonly ask: 'release' };
/** `busy`: share of one processor that the clients used. */
export type Octets = { readonly bytesPerSecond: number; readonly busy: number };
export type Setups = {
  readonly perSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  /** Since the first, the warm-up included. */
  readonly opened: number;
  readonly busy: number;
};

const buffer = new Uint8Array(readBufferBytes);
const held: TunnelClient[] = [];

function openTunnel(route: Route, onOctets: (count: number) => void, onLost: (fault: string) => void) {
  return new Promise<TunnelClient>((resolve, reject) => {
    const late = setTimeout(() => {
      client.end();
      reject(new Error(`${route.target ?? 'the destination'} did not open within ${openMsMax / 1000} s`));
    }, openMsMax);
    const client = new TunnelClient(route, buffer, {
      onOpen: (opened) => {
        clearTimeout(late);
        resolve(opened);
      },
      onOctets,
      onFault: (fault) => {
        clearTimeout(late);
        reject(new Error(fault));
        onLost(fault);
      },
    });
  });
}

async function measureOctets(route: Route, tunnels: number, times: Times): Promise<Octets> {
  let octets = 0;
  let lost: string | undefined;
  const count = (bytes: number): void => {
    octets += bytes;
  };
  const lose = (fault: string): void => {
    lost ??= fault;
  };
  const opening = Array.from({ length: tunnels }, () => openTunnel(route, count, lose));
  const clients = await Promise.all(opening);
  const { perSecond, busy } = await countWhile(times, () => octets);
  for (const client of clients) client.end();
  if (lost !== undefined) throw new Error(`a tunnel was lost: ${lost}`);
  return { bytesPerSecond: perSecond, busy };
}

async function measureSetups(route: Route, atOnce: number, times: Times): Promise<Setups> {
  const latency = new LatencyHistogram();
  let opened = 0;
  let isRunning = true;
  const openAgain = async (): Promise<void> => {
    while (isRunning) {
      const startedMs = performance.now();
      const client = await openTunnel(route, ignore, ignore);
      latency.record((performance.now() - startedMs) * 1000);
      opened += 1;
      client.end();
    }
  };
  const loops = Promise.all(Array.from({ length: atOnce }, openAgain));
  const counted = countWhile(
    times,
    () => opened,
    () => latency.reset(),
  );
  try {
    const { perSecond, busy } = await Promise.race([counted, loops.then(() => counted)]);
    const { p50Us, p99Us } = latency.summary();
    return { perSecond, busy, p50Us, p99Us, opened };
  } finally {
    isRunning = false;
    await loops;
  }
}

async function countWhile(
  { warmupMs, measuredMs }: Times,
  countNow: () => number,
  onWarm: () => void = ignore,
): Promise<{ readonly perSecond: number; readonly busy: number }> {
  await wait(warmupMs);
  onWarm();
  const startedMs = performance.now();
  const [counted, processor] = [countNow(), process.cpuUsage()];
  await wait(measuredMs);
  const elapsedMs = performance.now() - startedMs;
  const { user, system } = process.cpuUsage(processor);
  return {
    perSecond: ((countNow() - counted) / elapsedMs) * 1000,
    busy: (user + system) / 1000 / elapsedMs,
  };
}

async function hold(route: Route, tunnels: number): Promise<object> {
  let begun = 0;
  const openSome = async (): Promise<void> => {
    while (begun < tunnels) {
      begun += 1;
      held.push(await openTunnel(route, ignore, ignore));
    }
  };
  await Promise.all(Array.from({ length: Math.min(openingMax, tunnels) }, openSome));
  return {};
}

async function release(): Promise<object> {
  for (const client of held.splice(0)) client.end();
  return {};
}

function ignore(): void {
  // A tunnel that is held carries nothing, and one that is lost is found by whoever waits for it.
}

answerQuestions<TunnelQuestion>((question) => {
  switch (question.ask) {
    case 'octets':
      return measureOctets(question.route, question.tunnels, question);
    case 'setups':
      return measureSetups(question.route, question.atOnce, question);
    case 'hold':
      return hold(question.route, question.tunnels);
    case 'release':
      return release();
  }
});
