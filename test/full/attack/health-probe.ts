/**
 * Asks `/health/live` of two programs every 20 ms, each time on a connection of its own, as a load balancer would. It runs on a thread so
 * that the attack does not delay it. Answers `report` with what it saw since the last report, and `now` with one more probe of the attacked
 * program, which it sends at once.
 *
 * A delay is the program's own where its event loop was busy. On Linux that is measured: as the processor time of its main thread while
 * the answer was awaited, which is the same however many other programs want the processor.
 */
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';

const everyMs = 20;
const patienceMs = 10_000;

type Seen = { answers: number; failures: number; slowestMs: number; secondMs: number };

const { attacked, idle, pid } = workerData as { attacked: number; idle: number; pid: number };
let seen = { attacked: nothing(), idle: nothing() };
let busyAtReportMs = busyMs();

function nothing(): Seen {
  return { answers: 0, failures: 0, slowestMs: 0, secondMs: 0 };
}

function ask(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = request({ host: '127.0.0.1', port, path: '/health/live', agent: false }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode === 200));
    });
    asked.setTimeout(patienceMs, () => asked.destroy());
    asked.once('error', () => resolve(false));
    asked.end();
  });
}

/** Processor time of the attacked program's main thread in ms; undefined where the system does not report it. */
function busyMs(): number | undefined {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ', 1)[0]) / 1e6;
  } catch {
    return undefined;
  }
}

type Probe = { readonly isGood: boolean; readonly tookMs: number };

async function probe(which: 'attacked' | 'idle'): Promise<Probe> {
  const startedAt = performance.now();
  const busyBefore = which === 'attacked' ? busyMs() : undefined;
  const isGood = await ask(which === 'attacked' ? attacked : idle);
  const busyAfter = busyBefore === undefined ? undefined : busyMs();
  const elapsedMs = performance.now() - startedAt;
  if (busyBefore === undefined || busyAfter === undefined) return { isGood, tookMs: elapsedMs };
  return { isGood, tookMs: Math.min(elapsedMs, busyAfter - busyBefore) };
}

async function probeAgainAndAgain(which: 'attacked' | 'idle'): Promise<void> {
  for (;;) {
    const { isGood, tookMs } = await probe(which);
    const counted = seen[which];
    counted.answers += 1;
    if (!isGood) counted.failures += 1;
    counted.secondMs = Math.max(counted.secondMs, Math.min(counted.slowestMs, tookMs));
    counted.slowestMs = Math.max(counted.slowestMs, tookMs);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}

parentPort?.on('message', (asked: 'report' | 'now') => {
  if (asked === 'report') report();
  else void probe('attacked').then((now) => parentPort?.postMessage({ now }));
});

function report(): void {
  const busyNowMs = busyMs();
  const report = {
    answers: seen.attacked.answers,
    failures: seen.attacked.failures,
    attackedMs: seen.attacked.secondMs,
    attackedMostMs: seen.attacked.slowestMs,
    idleMs: seen.idle.slowestMs,
    busyMs: busyNowMs === undefined || busyAtReportMs === undefined ? undefined : busyNowMs - busyAtReportMs,
  };
  parentPort?.postMessage({ report });
  busyAtReportMs = busyNowMs;
  seen = { attacked: nothing(), idle: nothing() };
}

void probeAgainAndAgain('attacked');
void probeAgainAndAgain('idle');
