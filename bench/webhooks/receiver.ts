/**
 * The receiver of the benchmark, a process of its own: `node:http` that reads each request to its end and answers 204. It counts what
 * arrives, notes when, and can let some of its ports hang. It also posts events at a rate, since whoever posts has then the
 * clock of whoever receives.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { LatencyHistogram } from '../load/histogram.ts';
import { Polling } from '../load/polling.ts';
import { answerQuestions, nowMs } from './answer-questions.ts';
import type { JobsPlan } from './peer-jobs.ts';
import { type PostingPlan, postEvents } from './post-events.ts';
import { sentAtOf } from './sent-events.ts';

export type ReceiverQuestion =
  | ({ readonly do: 'open' } & OpenPlan)
  /** Forgets what was counted. */
  | { readonly do: 'reset' }
  /** Waits until so many have arrived since the reset. */
  | { readonly do: 'await'; readonly count: number; readonly timeoutMs: number }
  /** So many ports do not answer from now on; those that did not until now answer what they have. */
  | { readonly do: 'hang'; readonly ports: number }
  | ({ readonly do: 'post' } & PostingPlan)
  | ({ readonly do: 'add-jobs' } & JobsPlan);

type OpenPlan = {
  readonly ports: number;
  /** The first ones are left out of the latencies, whether they hang or not. */
  readonly unmeasured: number;
  /** From a reset until the next `await` is answered the process does not sleep (bench/load/polling.ts). */
  readonly polls: boolean;
};

/** Milliseconds since the epoch. */
export type Hung = { readonly sinceMs: number };

export type Arrivals = {
  readonly count: number;
  readonly firstMs: number;
  readonly lastMs: number;
  /** Share of its processor that the process kept busy since the reset. */
  readonly busy: number;
  /** From when the poster sent it to its arrival, of ports that never hang; 0 where nothing said when. */
  readonly p50Ms: number;
  readonly p95Ms: number;
};

const latencies = new LatencyHistogram();
const hanging: ServerResponse[] = [];
/** Ports before this one do not answer. */
let hangingPorts = 0;
/** Ports before this one are left out of the latencies. */
let unmeasuredPorts = 0;
let count = 0;
let firstMs = 0;
let lastMs = 0;
let wanted = Number.POSITIVE_INFINITY;
let onWanted: (() => void) | undefined;
let since = process.cpuUsage();
let sinceMs = nowMs();
let idleBeforeMs = 0;
let polls = false;
const polling = new Polling(() => count);

function receive(request: IncomingMessage, response: ServerResponse, port: number): void {
  let body = '';
  request.setEncoding('latin1');
  request.on('data', (chunk: string) => {
    body += chunk;
  });
  request.on('end', () => {
    const at = nowMs();
    if (count === 0) firstMs = at;
    lastMs = at;
    count += 1;
    if (port >= unmeasuredPorts) {
      const sentAt = sentAtOf(body);
      if (sentAt !== undefined) latencies.record((at - sentAt) * 1000);
    }
    if (port < hangingPorts) hanging.push(response);
    else response.writeHead(204).end();
    if (count >= wanted) onWanted?.();
  });
}

function open(port: number): Promise<number> {
  const server = createServer((request, response) => receive(request, response, port));
  server.keepAliveTimeout = 120_000;
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}

async function openAll({ ports, unmeasured, polls: isAwake }: OpenPlan): Promise<object> {
  unmeasuredPorts = unmeasured;
  polls = isAwake;
  const opened: number[] = [];
  for (let port = 0; port < ports; port += 1) opened.push(await open(port));
  return { ports: opened };
}

function reset(): object {
  if (polls) polling.start();
  latencies.reset();
  count = 0;
  firstMs = 0;
  lastMs = 0;
  since = process.cpuUsage();
  sinceMs = nowMs();
  idleBeforeMs = polling.idleMs;
  return {};
}

function arrivals(): Arrivals {
  const { user, system } = process.cpuUsage(since);
  const idleMs = polling.idleMs - idleBeforeMs;
  const busy = ((user + system) / 1000 - idleMs) / (nowMs() - sinceMs);
  const [p50Ms, p95Ms] = [latencies.quantileUs(0.5) / 1000, latencies.quantileUs(0.95) / 1000];
  return { count, firstMs, lastMs, busy, p50Ms, p95Ms };
}

async function awaitCount(most: number, timeoutMs: number): Promise<Arrivals> {
  if (count < most) {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      wanted = most;
      onWanted = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
  polling.stop();
  wanted = Number.POSITIVE_INFINITY;
  onWanted = undefined;
  return arrivals();
}

function hang(ports: number): Hung {
  hangingPorts = ports;
  for (const response of hanging.splice(0)) response.writeHead(204).end();
  return { sinceMs: nowMs() };
}

answerQuestions<ReceiverQuestion>(async (question) => {
  switch (question.do) {
    case 'open':
      return openAll(question);
    case 'reset':
      return reset();
    case 'await':
      return awaitCount(question.count, question.timeoutMs);
    case 'hang':
      return hang(question.ports);
    case 'post':
      return postEvents(question);
    case 'add-jobs': {
      // Not loaded where it is not asked for: with it comes the peer.
      const { addJobs } = await import('./peer-jobs.ts');
      return addJobs(question);
    }
  }
});
