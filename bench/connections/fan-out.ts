/**
 * Events to WebSockets: Comity, which stores each event before it answers the post of it and then sends it to whoever may read it, against
 * bare `ws`, which sends a text of the same length to every client. Events are posted some at a time; the next come when the last client
 * has the last of those. And what an idle WebSocket takes of memory on both.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Spread, spreadOf } from '../cell.ts';
import type { Run } from '../measured-run.ts';
import { productDocument } from '../product.ts';
import { type ServerProcess, startServer } from '../server-process.ts';
import { type Part, startPart } from '../webhooks/part.ts';
import { roundsOf } from '../webhooks/rounds.ts';
import { authorization, eventsPath, realtimePath, startConnections } from './program.ts';
import type { Opened, Posted, SubscribersQuestion } from './subscribers.ts';

const broadcast = fileURLToPath(new URL('../floor/connections/broadcast.ts', import.meta.url));
const eventType = 'kettle.boiled';
const subscribe = JSON.stringify({ subscribe: [eventType] });
const content = `{"type":"${eventType}","data":{"object":${productDocument(1)}}}`;
/** Deliveries of one posting, which so few sockets make in many events and many sockets in few. */
const deliveriesAtOnce = 50_000;
/** Fewer than what would be taken for a client that fell behind (256 KiB). */
const eventsAtOnceMax = 50;
/** Single events of a round, for the time that one takes. */
const singles = 10;
const settleMs = 3000;

export type FanOutRow = {
  readonly subscribers: number;
  readonly textBytes: number;
  readonly comityPerSecond: Spread;
  readonly floorPerSecond: Spread;
  readonly toFloor: Spread;
  /** From the post of one event until the last client has it, in ms. */
  readonly comityArrivalMs: Spread;
  readonly floorArrivalMs: Spread;
  /** Until that post is answered; `ws` answers before it sends, and stores nothing. */
  readonly comityAnswerMs: Spread;
  /** Of a server for a delivery. */
  readonly comityProcessorUs: number;
  readonly floorProcessorUs: number;
  /** Most of its processor that the process of the clients used. */
  readonly clientsBusy: number;
};
export type IdleRow = {
  readonly sockets: number;
  readonly comityBytes: number;
  readonly floorBytes: number;
};

type Side = {
  readonly server: ServerProcess;
  readonly clients: Part;
  readonly perSecond: number[];
  readonly arrivalMs: number[];
  readonly answerMs: number[];
  readonly processorUs: number[];
  busy: number;
};

export async function measureFanOut(run: Run, subscribers: number): Promise<FanOutRow> {
  const comity = await startSide(run, () => startConnections(run.pinning, run.engine.newPlace()));
  const sides = [comity];
  try {
    await openSockets(comity, subscribers);
    const { textBytes } = await postOnce(comity, 1);
    const floor = await startSide(run, () => startServer(run.pinning, [broadcast, String(textBytes)]));
    sides.push(floor);
    await openSockets(floor, subscribers);
    const other = await postOnce(floor, 1);
    if (other.textBytes !== textBytes) throw new Error(`texts of ${textBytes} and ${other.textBytes} octets`);
    for (const { round, isMeasured } of roundsOf(run)) {
      const order = round % 2 === 0 ? [comity, floor] : [floor, comity];
      for (const side of order) await measureRound(run, side, subscribers, isMeasured);
    }
    const ratios = comity.perSecond.map((perSecond, at) => perSecond / (floor.perSecond[at] ?? 0));
    return {
      ...{ subscribers, textBytes, toFloor: spreadOf(ratios) },
      ...{ comityPerSecond: spreadOf(comity.perSecond), floorPerSecond: spreadOf(floor.perSecond) },
      ...{ comityArrivalMs: spreadOf(comity.arrivalMs), floorArrivalMs: spreadOf(floor.arrivalMs) },
      comityAnswerMs: spreadOf(comity.answerMs),
      comityProcessorUs: spreadOf(comity.processorUs).median,
      floorProcessorUs: spreadOf(floor.processorUs).median,
      clientsBusy: Math.max(comity.busy, floor.busy),
    };
  } finally {
    await Promise.all(sides.map(stopSide));
  }
}

/** Memory of a socket that is subscribed and to which nothing is sent, on servers that have just started. */
export async function measureIdleSockets(run: Run, sockets: number): Promise<IdleRow> {
  const bytesOf = async (start: () => Promise<ServerProcess>): Promise<number> => {
    const side = await startSide(run, start);
    try {
      // The first few bring the code into memory.
      await openSockets(side, 10);
      await wait(settleMs);
      const before = side.server.memoryBytes() ?? Number.NaN;
      await openSockets(side, sockets);
      await wait(settleMs);
      return ((side.server.memoryBytes() ?? Number.NaN) - before) / sockets;
    } finally {
      await stopSide(side);
    }
  };
  const comityBytes = await bytesOf(() => startConnections(run.pinning, run.engine.newPlace()));
  const floorBytes = await bytesOf(() => startServer(run.pinning, [broadcast]));
  return { sockets, comityBytes, floorBytes };
}

async function startSide(run: Run, start: () => Promise<ServerProcess>): Promise<Side> {
  const clients = await startPart(run.pinning, 1, 'connections/subscribers.ts');
  try {
    const server = await start();
    return { server, clients, perSecond: [], arrivalMs: [], answerMs: [], processorUs: [], busy: 0 };
  } catch (error) {
    await clients.stop();
    throw error;
  }
}

async function stopSide({ server, clients }: Side): Promise<void> {
  await clients.stop();
  await server.stop();
}

async function openSockets({ server, clients }: Side, count: number): Promise<void> {
  const { host, port } = server;
  const plan = {
    host,
    port,
    path: realtimePath,
    fieldLines: `Authorization: ${authorization}\r\n`,
    subscribe,
  };
  await clients.ask<Opened>({ ask: 'open', plan, count } satisfies SubscribersQuestion);
}

function postOnce({ server, clients }: Side, events: number): Promise<Posted> {
  const origin = `http://${server.host}:${server.port}`;
  const post = { origin, path: eventsPath, authorization, content };
  return clients.ask<Posted>({ ask: 'post', events, post } satisfies SubscribersQuestion);
}

/** Posts again and again for the time of a measurement, and then some events one by one. */
async function measureRound(run: Run, side: Side, subscribers: number, isMeasured: boolean): Promise<void> {
  const events = Math.max(1, Math.min(eventsAtOnceMax, Math.round(deliveriesAtOnce / subscribers)));
  const before = side.server.processorUs() ?? Number.NaN;
  let [deliveries, elapsedMs, ownMs] = [0, 0, 0];
  while (elapsedMs < run.options.measuredMs) {
    const posted = await postOnce(side, events);
    deliveries += posted.deliveries;
    elapsedMs += posted.arrivedMs - posted.startedMs;
    ownMs += posted.ownMs;
  }
  const processorUs = ((side.server.processorUs() ?? Number.NaN) - before) / deliveries;
  const [arrivalsMs, answersMs]: [number[], number[]] = [[], []];
  for (let single = 0; single < singles; single += 1) {
    const { startedMs, answeredMs, arrivedMs } = await postOnce(side, 1);
    arrivalsMs.push(arrivedMs - startedMs);
    answersMs.push(answeredMs - startedMs);
  }
  if (!isMeasured) return;
  side.perSecond.push((deliveries / elapsedMs) * 1000);
  side.processorUs.push(processorUs);
  side.arrivalMs.push(spreadOf(arrivalsMs).median);
  side.answerMs.push(spreadOf(answersMs).median);
  side.busy = Math.max(side.busy, ownMs / elapsedMs);
}
