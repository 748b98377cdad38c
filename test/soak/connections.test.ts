/**
 * Connections of every kind come and go for COMITY_SOAK_SECONDS (600), well-behaved and wrong ones beside each other: the program's memory
 * stays flat, it gives back every file and counts nothing as open at the end, and a WebSocket that is cut and resumes gets every event
 * that was acknowledged, once. COMITY_SOAK_SEED repeats the chances of a run.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { it } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { shopConfig } from '../harness/running-server.ts';
import { type ServerProcess, spawnServer } from '../harness/server-process.ts';
import { startEcho } from './connections/echo-server.ts';
import { growthOf, type MemorySample } from './connections/flat-memory.ts';
import { type ResumingReader, startResuming } from './connections/resuming-reader.ts';
import * as visitors from './connections/visitors.ts';

const seconds = Number(process.env.COMITY_SOAK_SECONDS ?? 600);
const seed = Number(process.env.COMITY_SOAK_SEED ?? Date.now() % 1_000_000);
const visitorsOfAKind = 4;
const sampleMs = Math.max(100, (seconds * 1000) / 200);
const cutMs = 700;
const postMs = 20;
/** Caches fill and code is compiled. */
const warmupShare = 0.3;
/** What a collection that is due may make between two samples. */
const noiseBytes = 24 * 1024 * 1024;
const growthMost = 1.1;
/** What the last connections take to be noticed as gone, tunnels that one side ended among them. */
const calmMsMax = 30_000;
/** Files that are opened at the first use of something: threads, readers of the database. */
const lateFilesMost = 24;
const eventType = 'soak.counted';
const env = {
  COMITY_RATE_LIMIT_READS: '0',
  COMITY_RATE_LIMIT_WRITES: '0',
  COMITY_REALTIME_ATTEMPT_MS: '0',
  COMITY_EGRESS_ALLOW: '127.0.0.0/8',
  COMITY_TUNNEL_PORTS: '1-65535',
  COMITY_LOG_LEVEL: 'error',
};
const gauges = ['comity_connections', 'comity_streams', 'comity_websockets', 'comity_tunnels'];

it('keeps memory, files and counts flat and loses no event while connections of every kind come and go', async (context) => {
  const program = await spawnServer({ config: shopConfig, env });
  context.after(() => program.kill());
  const echo = await startEcho();
  context.after(() => echo.close());
  const random = numbersFrom(seed);
  const site = { port: program.port, echoPort: echo.port, random };
  const filesBefore = filesOf(program);
  const first = await post(program);
  const reader = startResuming(program.port, eventType, first);
  context.after(() => reader.stop());

  let untilMs = performance.now() + seconds * 1000;
  const isOver = () => performance.now() >= untilMs;
  const visits = new Map<string, number>();
  const tenths = new Array<number>(10).fill(0);
  const loops = Object.entries(visitors).flatMap(([name, visit]) =>
    Array.from({ length: visitorsOfAKind }, async () => {
      while (!isOver()) {
        await visit(site).catch((error: unknown) => {
          throw new Error(`${name}, seed ${seed}`, { cause: error });
        });
        visits.set(name, (visits.get(name) ?? 0) + 1);
        const tenth = 9 - Math.floor(((untilMs - performance.now()) / 1000 / seconds) * 10);
        if (tenth < tenths.length) tenths[tenth] = (tenths[tenth] ?? 0) + 1;
      }
    }),
  );
  const samples: MemorySample[] = [];
  const [posted] = await Promise.all([
    postUntil(program, isOver),
    sampleUntil(program, samples, isOver),
    cutUntil(reader, isOver),
    ...loops,
  ]).catch((error: unknown) => {
    untilMs = 0;
    throw error;
  });

  const lastId = posted.at(-1) ?? first;
  await reader.awaitEvent(lastId);
  await reader.stop();
  assert.deepEqual(reader.ids.toSorted(), posted.toSorted());
  await calm(program);
  assert.equal(echo.count(), 0, 'connections with the destination are open');
  const filesAfter = filesOf(program);
  const growth = growthOf(samples, warmupShare);
  const figures = {
    seed,
    visitsByTenth: tenths,
    ...Object.fromEntries(visits),
    posted: posted.length,
    cuts: reader.cuts(),
    ...growth,
  };
  context.diagnostic(JSON.stringify({ ...figures, filesBefore, filesAfter }));
  assert.ok(filesAfter <= filesBefore + lateFilesMost, `${filesBefore} files before, ${filesAfter} after`);
  assert.ok(growth.lateBytes <= growth.earlyBytes * growthMost + noiseBytes, JSON.stringify(growth));
  assert.equal(await program.stop(), 0);
  assert.ok(!/uncaught|unhandled/i.test(program.stderr()), program.stderr());
});

/** @returns the id of an event that was acknowledged */
async function post(program: ServerProcess): Promise<string> {
  const json = { type: eventType, data: { object: { text: 'x'.repeat(200) } } };
  const answer = await program.send('POST', '/api/v1/events', { json });
  assert.ok(answer.status < 300, `${answer.status} ${answer.body}`);
  return String(answer.json().id);
}

async function postUntil(program: ServerProcess, isOver: () => boolean): Promise<readonly string[]> {
  const ids: string[] = [];
  do {
    ids.push(await post(program));
    await wait(postMs);
  } while (!isOver());
  return ids;
}

async function sampleUntil(
  program: ServerProcess,
  samples: MemorySample[],
  isOver: () => boolean,
): Promise<void> {
  while (!isOver()) {
    const status = readFileSync(`/proc/${program.process.pid}/status`, 'utf8');
    const bytes = Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
    samples.push({ atMs: performance.now(), bytes });
    await wait(sampleMs);
  }
}

async function cutUntil(reader: ResumingReader, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    await wait(cutMs);
    reader.cut();
  }
}

/** Waits until the program counts nothing as open but the connection that asks. */
async function calm(program: ServerProcess): Promise<void> {
  const untilMs = performance.now() + calmMsMax;
  for (;;) {
    const { body } = await program.send('GET', '/metrics');
    const open = gauges.map((name) => [name, gaugeOf(body, name)] as const);
    if (open.every(([name, count]) => count <= (name === 'comity_connections' ? 1 : 0))) return;
    assert.ok(performance.now() < untilMs, `still open: ${JSON.stringify(open)}`);
    await wait(sampleMs);
  }
}

function gaugeOf(metrics: string, name: string): number {
  const found = new RegExp(`^${name} (\\d+)$`, 'm').exec(metrics);
  assert.ok(found, `${name} is not told`);
  return Number(found[1]);
}

function filesOf({ process: { pid } }: ServerProcess): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/** Numbers from 0 to 1 that are the same for the same seed (mulberry32). */
function numbersFrom(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
