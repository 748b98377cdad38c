/** The figures of tunnels as text. */
import { spreadOf } from '../cell.ts';
import { spreadText, verdict } from '../table.ts';
import { connectionTargets } from '../targets.ts';
import type { ProxyName } from './proxies.ts';
import { proxyTitles } from './proxies.ts';
import { ratioOf, type TunnelRates, type TunnelRow, tunnelCounts } from './tunnel-rates.ts';

const clientsBusyMost = 0.95;
/** Those that Comity must open more tunnels a second than. */
const setupRivals: readonly ProxyName[] = ['proxy-chain', 'tinyproxy'];

export function tunnelTable({ rows, idle, clientsBusy, leftOut }: TunnelRates): readonly string[] {
  const lines = [
    'Comity is sent a key with every CONNECT, and judges address, port and scope; the others ask for nothing and judge nothing.',
    '',
    `| through | ${tunnelCounts.map((count) => `GB/s, ${tunnels(count)} (spread)`).join(' | ')} | CPU us/MB | tunnels opened/s (spread) | p50/p99 ms | CPU us/tunnel |`,
    '|---|---|---|---|---|---|---|',
    ...rows.map(rowLine),
    '',
    ...verdicts(rows),
  ];
  for (const { name, tunnels: held, bytes } of idle)
    lines.push(
      `${held.toLocaleString('en')} idle tunnels through ${proxyTitles[name]}: ${kibibytes(bytes)} KiB of memory each`,
    );
  const warning = clientsBusy > clientsBusyMost ? ': TOO BUSY, the figures above are partly its own' : '';
  lines.push(
    `Clients: at most ${(clientsBusy * 100).toFixed(0)} % of the processor that they share with the destination${warning}.`,
    ...leftOut.map((sentence) => `${sentence}.`),
  );
  return lines;
}

function rowLine({ name, octets, usPerMegabyte, setups, usPerSetup }: TunnelRow): string {
  const rates = octets.map((values) => spreadText(spreadOf(values.map((value) => value / 1_000_000_000))));
  const latency = [setups.map(({ p50Us }) => p50Us), setups.map(({ p99Us }) => p99Us)].map((values) =>
    (spreadOf(values).median / 1000).toFixed(2),
  );
  const cells = [
    ...[proxyTitles[name], ...rates, figure(usPerMegabyte)],
    ...[whole(setups.map(({ perSecond }) => perSecond)), latency.join(' / '), figure(usPerSetup)],
  ];
  return `| ${cells.join(' | ')} |`;
}

function verdicts(rows: readonly TunnelRow[]): readonly string[] {
  const of = (name: ProxyName) => rows.find((row) => row.name === name);
  const comity = of('comity');
  if (comity === undefined) return [];
  const lines: string[] = [];
  const squid = of('squid');
  const least = connectionTargets.toSquidLeast;
  for (const [at, count] of tunnelCounts.entries()) {
    if (squid === undefined) break;
    const ratio = ratioOf(comity.octets[at] ?? [], squid.octets[at] ?? []);
    lines.push(
      `octets through ${tunnels(count)}, Comity/squid: ${spreadText(ratio)}, target >= ${least} ${verdict(ratio.median >= least)}`,
    );
  }
  for (const name of setupRivals) {
    const rival = of(name);
    if (rival === undefined) continue;
    const ratio = ratioOf(
      comity.setups.map(({ perSecond }) => perSecond),
      rival.setups.map(({ perSecond }) => perSecond),
    );
    lines.push(
      `tunnels opened a second, Comity/${name}: ${spreadText(ratio)}, target > 1 ${verdict(ratio.median > 1)}`,
    );
  }
  return lines;
}

function tunnels(count: number): string {
  return count === 1 ? 'one tunnel' : `${count} tunnels`;
}

function figure(values: readonly number[]): string {
  const { median } = spreadOf(values);
  return Number.isNaN(median) ? '-' : median.toFixed(0);
}

function whole(values: readonly number[]): string {
  const { median, least, most } = spreadOf(values);
  return `${Math.round(median)} (${Math.round(least)}-${Math.round(most)})`;
}

function kibibytes(bytes: number): string {
  return (bytes / 1024).toFixed(1);
}
