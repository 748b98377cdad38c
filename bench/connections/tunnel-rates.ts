/**
 * Tunnels through Comity and through other proxies, one proxy at a time within each round: octets a second through one and through eight,
 * tunnels opened a second, and what ten thousand idle ones take of memory. Both ends of every tunnel have the second processor, the proxy
 * the first.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { type Spread, spreadOf } from '../cell.ts';
import type { Run } from '../measured-run.ts';
import { type Part, startPart } from '../webhooks/part.ts';
import { roundsOf } from '../webhooks/rounds.ts';
import type { DestinationQuestion, Ports } from './destination.ts';
import { type ProxyName, proxyTitles, type StartedProxy, startProxy } from './proxies.ts';
import type { Route } from './tunnel-client.ts';
import type { Octets, Setups, TunnelQuestion } from './tunnel-clients.ts';

export const tunnelCounts = [1, 8] as const;
const idleTunnelsMost = 10_000;
/** Two sockets of a tunnel are open files of a proxy, beside a few of its own. */
const otherFiles = 200;
const settleMs = 3000;
/** Thrown away: these programs need less of it than those that look things up, and each round is long. */
const settlingRounds = 2;

export type TunnelRow = {
  readonly name: ProxyName;
  /** Octets a second by number of tunnels, in the order of `tunnelCounts`; a round each. */
  readonly octets: readonly (readonly number[])[];
  /** Processor time of the proxy for a megabyte, in microseconds, through one tunnel. */
  readonly usPerMegabyte: readonly number[];
  readonly setups: readonly Setups[];
  /** Processor time of the proxy for one tunnel that is opened and closed, in microseconds. */
  readonly usPerSetup: readonly number[];
};
export type IdleTunnels = { readonly name: ProxyName; readonly tunnels: number; readonly bytes: number };
export type TunnelRates = {
  readonly rows: readonly TunnelRow[];
  readonly idle: readonly IdleTunnels[];
  /** Most that the clients used of their processor, which the destination shares. */
  readonly clientsBusy: number;
  /** What was left out, in sentences. */
  readonly leftOut: readonly string[];
};

type Ends = { readonly clients: Part; readonly ports: Ports };

export async function measureTunnels(
  run: Run,
  names: readonly ProxyName[],
  idleNames: readonly ProxyName[],
): Promise<TunnelRates> {
  const destination = await startPart(run.pinning, 1, 'connections/destination.ts');
  const clients = await startPart(run.pinning, 1, 'connections/tunnel-clients.ts');
  const leftOut: string[] = [];
  try {
    const ports = await destination.ask<Ports>({ ask: 'ports' } satisfies DestinationQuestion);
    const { rows, clientsBusy } = await measureRows(run, names, { clients, ports }, leftOut);
    const idle: IdleTunnels[] = [];
    for (const name of idleNames) {
      const found = await measureIdle(run, name, { clients, ports });
      if (typeof found === 'string') leftOut.push(found);
      else idle.push(found);
    }
    return { rows, idle, clientsBusy, leftOut: [...new Set(leftOut)] };
  } finally {
    await clients.stop();
    await destination.stop();
  }
}

async function measureRows(run: Run, names: readonly ProxyName[], ends: Ends, leftOut: string[]) {
  const proxies: StartedProxy[] = [];
  try {
    const rows = new Map<ProxyName, Row>();
    for (const name of names) {
      const proxy = await startProxy(run, name);
      const trouble = typeof proxy === 'string' ? proxy : await firstTrouble(proxy, ends);
      if (typeof proxy !== 'string') proxies.push(proxy);
      if (trouble === undefined) rows.set(name, emptyRow(name));
      else leftOut.push(trouble);
    }
    let clientsBusy = 0;
    for (const { round, isMeasured } of roundsOf(run, settlingRounds)) {
      process.stderr.write(`tunnels: round ${round + 1}\n`);
      for (const proxy of round % 2 === 0 ? proxies : [...proxies].reverse()) {
        const row = rows.get(proxy.name);
        if (row === undefined) continue;
        const busy = await measureProxy(run, proxy, ends, isMeasured ? row : emptyRow(proxy.name));
        if (isMeasured) clientsBusy = Math.max(clientsBusy, busy);
      }
    }
    return { rows: [...rows.values()], clientsBusy };
  } finally {
    await Promise.all(proxies.map((proxy) => proxy.stop()));
  }
}

type Row = TunnelRow & {
  readonly octets: readonly number[][];
  readonly usPerMegabyte: number[];
  readonly setups: Setups[];
  readonly usPerSetup: number[];
};

function emptyRow(name: ProxyName): Row {
  return { name, octets: tunnelCounts.map(() => []), usPerMegabyte: [], setups: [], usPerSetup: [] };
}

/** Undefined where a tunnel opens. */
async function firstTrouble(proxy: StartedProxy, { clients, ports }: Ends): Promise<string | undefined> {
  try {
    const route = routeOf(proxy, ports.quiet);
    await clients.ask({ ask: 'hold', route, tunnels: 1 } satisfies TunnelQuestion);
    await clients.ask({ ask: 'release' } satisfies TunnelQuestion);
    return undefined;
  } catch (error) {
    const words = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
    return `${proxyTitles[proxy.name]} is not measured: ${words}`;
  }
}

/** @returns how busy the clients were */
async function measureProxy(
  { options }: Run,
  proxy: StartedProxy,
  { clients, ports }: Ends,
  row: Row,
): Promise<number> {
  const { warmupMs, measuredMs } = options;
  let mostBusy = 0;
  for (const [at, tunnels] of tunnelCounts.entries()) {
    const route = routeOf(proxy, ports.source);
    const before = proxy.processorUs();
    const startedMs = performance.now();
    const question: TunnelQuestion = { ask: 'octets', route, tunnels, warmupMs, measuredMs };
    const { bytesPerSecond, busy } = await clients.ask<Octets>(question);
    const elapsedS = (performance.now() - startedMs) / 1000;
    row.octets[at]?.push(bytesPerSecond);
    const megabytes = (bytesPerSecond * elapsedS) / 1_000_000;
    if (at === 0) row.usPerMegabyte.push((proxy.processorUs() - before) / megabytes);
    mostBusy = Math.max(mostBusy, busy);
  }
  const route = routeOf(proxy, ports.quiet);
  const before = proxy.processorUs();
  const setups = await clients.ask<Setups>({
    ...{ ask: 'setups', route, atOnce: options.connections, warmupMs, measuredMs },
  } as TunnelQuestion);
  row.setups.push(setups);
  row.usPerSetup.push((proxy.processorUs() - before) / setups.opened);
  return Math.max(mostBusy, setups.busy);
}

async function measureIdle(
  run: Run,
  name: ProxyName,
  { clients, ports }: Ends,
): Promise<IdleTunnels | string> {
  const proxy = await startProxy(run, name);
  if (typeof proxy === 'string') return proxy;
  const tunnels = Math.min(idleTunnelsMost, Math.floor((filesMax() - otherFiles) / 2));
  const route = routeOf(proxy, ports.quiet);
  try {
    // The first few bring the code into memory.
    await clients.ask({ ask: 'hold', route, tunnels: 10 } satisfies TunnelQuestion);
    await wait(settleMs);
    const before = proxy.memoryBytes();
    await clients.ask({ ask: 'hold', route, tunnels: tunnels - 10 } satisfies TunnelQuestion);
    await wait(settleMs);
    return { name, tunnels, bytes: (proxy.memoryBytes() - before) / (tunnels - 10) };
  } catch (error) {
    const words = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
    return `${proxyTitles[name]} did not hold ${tunnels} tunnels: ${words}`;
  } finally {
    await clients.ask({ ask: 'release' } satisfies TunnelQuestion);
    await proxy.stop();
  }
}

/** Files that a process may open here, which a program that is started inherits. */
function filesMax(): number {
  try {
    const found = /Max open files\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'));
    return Number(found?.[1] ?? 1024);
  } catch {
    // No /proc here: what most systems give.
    return 1024;
  }
}

function routeOf({ address, fieldLines }: StartedProxy, port: number): Route {
  if (address === undefined) return { host: '127.0.0.1', port, fieldLines };
  return { ...address, target: `127.0.0.1:${port}`, fieldLines };
}

/** Round by round, what one row has over another. */
export function ratioOf(above: readonly number[], below: readonly number[]): Spread {
  return spreadOf(above.map((value, at) => value / (below[at] ?? Number.NaN)));
}
