/**
 * Requests over HTTP/2 by `h2load` of nghttp2, on the second processor: prior knowledge in cleartext, so many connections with so many
 * streams each always under way.
 */
import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Pinning } from '../pin.ts';
import { processorOf, type ServerProcess } from '../server-process.ts';

/** Warm-up and measurement over, it must soon have ended. */
const graceMs = 10_000;
const processorPollMs = 100;
const wrongFigures = [/(\d+) failed/, /(\d+) timeout/, /(\d+) 3xx/, /(\d+) 4xx/, /(\d+) 5xx/];

export type H2Plan = {
  readonly paths: readonly string[];
  readonly connections: number;
  readonly streams: number;
  readonly warmupMs: number;
  readonly measuredMs: number;
};
export type H2Result = {
  readonly requestsPerSecond: number;
  readonly meanUs: number;
  /** Of the server for each request, the warm-up included. */
  readonly processorUsPerRequest: number;
  /** Share of one processor that `h2load` used. */
  readonly generatorBusy: number;
};

/** @returns its version; undefined where it is not installed */
export function h2loadVersion(): string | undefined {
  const asked = spawnSync('h2load', ['--version'], { encoding: 'utf8' });
  return asked.status === 0 ? asked.stdout.trim() : undefined;
}

/** @throws where an answer was not 200 or a stream failed */
export async function runH2load(
  pinning: Pinning,
  folder: string,
  server: ServerProcess,
  plan: H2Plan,
): Promise<H2Result> {
  const { warmupMs, measuredMs, connections, streams } = plan;
  const origin = `http://${server.host}:${server.port}`;
  const list = join(folder, 'h2load-paths');
  writeFileSync(list, plan.paths.map((path) => `${origin}${path}\n`).join(''));
  const load = ['h2load', '-t', '1', '-c', String(connections), '-m', String(streams)];
  const times = ['--warm-up-time', `${warmupMs}ms`, '-D', `${measuredMs}ms`];
  const words = [...(pinning.pinned ? ['taskset', '-c', '1'] : []), ...load, ...times];
  const [command = '', ...args] = [...words, '-H', 'accept: application/json', '-i', list];
  const before = server.processorUs() ?? Number.NaN;
  const startedMs = performance.now();
  const { output, ownUs } = await runToEnd(command, args, warmupMs + measuredMs + graceMs);
  const elapsedMs = performance.now() - startedMs;
  const processorUs = (server.processorUs() ?? Number.NaN) - before;
  const requestsPerSecond = figure(output, /finished in .*?, ([\d.]+) req\/s/);
  // What is under way at the end is not counted in every line alike.
  const wrong = wrongFigures.reduce((sum, pattern) => sum + figure(output, pattern), 0);
  if (!(requestsPerSecond > 0) || wrong !== 0)
    throw new Error(`h2load was not answered as it should be:\n${output}`);
  return {
    requestsPerSecond,
    meanUs: microseconds(/time for request:\s+\S+\s+\S+\s+([\d.]+)(us|ms|s)/.exec(output)),
    processorUsPerRequest: processorUs / ((requestsPerSecond * elapsedMs) / 1000),
    generatorBusy: ownUs / 1000 / elapsedMs,
  };
}

function runToEnd(
  command: string,
  args: readonly string[],
  boundMs: number,
): Promise<{ readonly output: string; readonly ownUs: number }> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, [...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    let ownUs = 0;
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    const poll = setInterval(() => {
      ownUs = Math.max(ownUs, processorOf(child.pid ?? 0) ?? 0);
    }, processorPollMs);
    const bound = setTimeout(() => child.kill('SIGKILL'), boundMs);
    const over = (): void => {
      clearInterval(poll);
      clearTimeout(bound);
    };
    child.once('error', (error) => {
      over();
      reject(error);
    });
    child.once('close', (code) => {
      over();
      if (code === 0) resolve({ output, ownUs });
      else reject(new Error(`${command} ended with ${code}:\n${output}`));
    });
  });
}

function figure(output: string, pattern: RegExp): number {
  return Number(pattern.exec(output)?.[1]);
}

function microseconds(found: RegExpExecArray | null): number {
  const unit = found?.[2] === 's' ? 1_000_000 : found?.[2] === 'ms' ? 1000 : 1;
  return Number(found?.[1]) * unit;
}
