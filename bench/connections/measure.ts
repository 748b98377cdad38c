/** The rows of connections, as text: requests over HTTP/2, events to WebSockets, tunnels. */
import { type Spread, spreadOf } from '../cell.ts';
import { hardware, type Run, say } from '../measured-run.ts';
import type { ConnectionRowName } from '../options.ts';
import { spreadText, verdict } from '../table.ts';
import { connectionTargets } from '../targets.ts';
import { type FanOutRow, type IdleRow, measureFanOut, measureIdleSockets } from './fan-out.ts';
import type { H2Result } from './h2load.ts';
import { h2loadVersion } from './h2load.ts';
import { type H2Row, measureHttp2, streamsPerConnection } from './http2-rates.ts';
import { proxyNames } from './proxies.ts';
import { measureTunnels } from './tunnel-rates.ts';
import { tunnelTable } from './tunnel-table.ts';

/** A cell that is shorter than this only shows that everything runs. */
const smokeMs = 500;
const generatorBusyMost = 0.95;
const subscriberCounts = [1000, 10_000] as const;
const smokeSubscribers = 50;
const idleSockets = 10_000;

/** Says the rows, and returns every figure of them. */
export async function measureConnections(run: Run, name: ConnectionRowName): Promise<unknown> {
  const { measuredMs, warmupMs, rounds, settlingRounds, connections } = run.options;
  say(
    run,
    hardware(run),
    `${rounds} interleaved rounds of ${measuredMs / 1000} s after ${warmupMs / 1000} s, and ${settlingRounds} thrown away before them; medians, spread in brackets; ${connections} requests or tunnels asked for at once; rate limits off.`,
    '',
  );
  const isSmoke = measuredMs < smokeMs;
  if (name === 'http2') return await sayHttp2(run);
  return name === 'fan-out' ? await sayFanOut(run, isSmoke) : await sayTunnels(run, isSmoke);
}

async function sayHttp2(run: Run): Promise<unknown> {
  const version = h2loadVersion();
  if (version === undefined) {
    say(run, 'HTTP/2 is not measured: `h2load` is not installed (Debian: nghttp2-client).');
    return undefined;
  }
  const rows = await measureHttp2(run);
  say(
    run,
    `Requests over HTTP/2 in cleartext, prior knowledge, by ${version} with ${streamsPerConnection} streams a connection; the floors are node:http2 with the same answers:`,
    '',
    '| request | Comity/stream API (spread) | target | Comity/compatibility API (spread) | Comity req/s | stream API req/s | compatibility API req/s | mean ms | CPU us |',
    '|---|---|---|---|---|---|---|---|---|',
    ...rows.map(http2Line),
    '',
    ...rows.flatMap(unequalLine),
  );
  const busy = Math.max(...rows.flatMap(({ results }) => Object.values(results).flat()).map(busyOf));
  say(run, `h2load: at most ${percent(busy)} of its processor${tooBusy(busy)}.`);
  return { report: run.report, rows };
}

function http2Line({ title, results, toStream, toCompat }: H2Row): string {
  const sides = [results.comity, results.stream, results.compat];
  const medians = (figure: (result: H2Result) => number): readonly number[] =>
    sides.map((side) => spreadOf(side.map(figure)).median);
  const least = connectionTargets.http2Least;
  const cells = [
    ...[
      title,
      spreadText(toStream),
      `>= ${least} ${verdict(toStream.median >= least)}`,
      spreadText(toCompat),
    ],
    ...medians(({ requestsPerSecond }) => requestsPerSecond).map((rate) => rate.toFixed(0)),
    medians(({ meanUs }) => meanUs / 1000)
      .map((mean) => mean.toFixed(2))
      .join(', '),
    medians(({ processorUsPerRequest }) => processorUsPerRequest)
      .map((us) => us.toFixed(1))
      .join(', '),
  ];
  return `| ${cells.join(' | ')} |`;
}

function unequalLine({ title, unequalFields }: H2Row): readonly string[] {
  if (unequalFields.length === 0) return [];
  return [`${title}: fields that only one of Comity and the floors sends: ${unequalFields.join(', ')}`];
}

function busyOf({ generatorBusy }: H2Result): number {
  return generatorBusy;
}

async function sayFanOut(run: Run, isSmoke: boolean): Promise<unknown> {
  const rows: FanOutRow[] = [];
  for (const count of isSmoke ? [smokeSubscribers] : subscriberCounts)
    rows.push(await measureFanOut(run, count));
  say(
    run,
    `Events to WebSockets over HTTP/1.1, uncompressed, texts of ${rows[0]?.textBytes} octets; Comity stores each event first, the floor is \`ws\` alone:`,
    '',
    '| subscribers | Comity/ws (spread) | target | Comity deliveries/s | ws deliveries/s | one event from its post to the last client, ms: Comity | ws | Comity answered that post after, ms | CPU us a delivery: Comity, ws |',
    '|---|---|---|---|---|---|---|---|---|',
    ...rows.map(fanOutLine),
    '',
  );
  const busy = Math.max(...rows.map(({ clientsBusy }) => clientsBusy));
  say(run, `Clients: at most ${percent(busy)} of their processor${tooBusy(busy)}.`);
  const idle = isSmoke ? undefined : await measureIdleSockets(run, idleSockets);
  if (idle !== undefined) say(run, idleLine(idle));
  return { report: run.report, rows, idle };
}

function fanOutLine(row: FanOutRow): string {
  const least = connectionTargets.fanOutLeast;
  const cells = [
    row.subscribers.toLocaleString('en'),
    spreadText(row.toFloor),
    `>= ${least} ${verdict(row.toFloor.median >= least)}`,
    ...[row.comityPerSecond, row.floorPerSecond].map(whole),
    ...[row.comityArrivalMs, row.floorArrivalMs, row.comityAnswerMs].map(spreadText),
    `${row.comityProcessorUs.toFixed(1)}, ${row.floorProcessorUs.toFixed(1)}`,
  ];
  return `| ${cells.join(' | ')} |`;
}

function idleLine({ sockets, comityBytes, floorBytes }: IdleRow): string {
  const beyond = comityBytes - floorBytes;
  const most = connectionTargets.idleSocketBytesMost;
  const KiB = (bytes: number): string => (bytes / 1024).toFixed(1);
  return (
    `${sockets.toLocaleString('en')} idle WebSockets: ${KiB(comityBytes)} KiB of memory each, ${KiB(floorBytes)} with \`ws\`: ` +
    `${KiB(beyond)} beyond it, target < ${KiB(most)} ${verdict(beyond < most)}`
  );
}

async function sayTunnels(run: Run, isSmoke: boolean): Promise<unknown> {
  const rates = isSmoke
    ? await measureTunnels(run, ['direct', 'comity', 'net-pipe'], [])
    : await measureTunnels(run, proxyNames, ['comity', 'squid', 'proxy-chain', 'tinyproxy', 'net-pipe']);
  say(run, ...tunnelTable(rates));
  return { report: run.report, ...rates };
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}

function tooBusy(share: number): string {
  return share > generatorBusyMost ? ': TOO BUSY, the figures above are partly its own' : '';
}

function whole(spread: Spread): string {
  return `${Math.round(spread.median)} (${Math.round(spread.least)}-${Math.round(spread.most)})`;
}
