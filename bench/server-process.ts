/** A server under measurement as a child process: started, known ready by its own line, weighed, stopped. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { type Pinning, pinnedCommand } from './pin.ts';

/** The first start on a million rows that were stored beside the program rewrites the file once. */
const readyTimeoutMs = 300_000;
const stderrKeptBytes = 4_000;

export type ServerProcess = {
  readonly host: string;
  readonly port: number;
  readonly readyMs: number;
  readonly pid: number;
  /** Resident memory now, in bytes; undefined where /proc is missing. */
  memoryBytes(): number | undefined;
  /** Of that, what is not mapped from files, of the database above all. */
  ownMemoryBytes(): number | undefined;
  /** Processor time of all threads so far, in microseconds; undefined where /proc is missing. */
  processorUs(): number | undefined;
  stop(): Promise<void>;
};

/** Starts `node ...args`; rejects with the program's own words when it ends or stays silent instead of listening. */
export async function startServer(
  pinning: Pinning,
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
  wrap: (command: string, args: readonly string[]) => readonly [string, readonly string[]] = bare,
): Promise<ServerProcess> {
  const [command, commandArgs] = wrap(...pinnedCommand(pinning, 0, args));
  const startedMs = performance.now();
  const child = spawn(command, [...commandArgs], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const address = await readyAddress(child);
  const readyMs = performance.now() - startedMs;
  const pid = child.pid ?? 0;
  return {
    ...address,
    readyMs,
    pid,
    memoryBytes: () => memoryOf(pid, 'VmRSS'),
    ownMemoryBytes: () => memoryOf(pid, 'RssAnon'),
    processorUs: () => processorOf(pid),
    stop: () => stop(child),
  };
}

function bare(command: string, args: readonly string[]): readonly [string, readonly string[]] {
  return [command, args];
}

function readyAddress(child: ChildProcess): Promise<{ readonly host: string; readonly port: number }> {
  return new Promise((resolve, reject) => {
    let output = '';
    let complaints = '';
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`not listening after ${readyTimeoutMs / 1000} s. ${complaints}`));
    }, readyTimeoutMs);
    child.stdout?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      const found = /listening on http:\/\/([^:/\s]+):(\d+)/.exec(output);
      if (found === null) return;
      clearTimeout(timer);
      output = '';
      resolve({ host: found[1] ?? '', port: Number(found[2]) });
    });
    child.stderr?.on('data', (chunk: Buffer) => {
      complaints = (complaints + chunk.toString()).slice(0, stderrKeptBytes);
    });
    child.once('error', reject);
    child.once('exit', (code) => {
      clearTimeout(timer);
      reject(new Error(`ended with code ${code} before listening. ${complaints}`));
    });
  });
}

function stop(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) {
      resolve();
      return;
    }
    child.once('exit', () => resolve());
    child.kill('SIGTERM');
    setTimeout(() => child.kill('SIGKILL'), 10_000).unref();
  });
}

/** @returns bytes; undefined where /proc is missing or the process is gone */
export function memoryOf(pid: number, name: 'VmRSS' | 'RssAnon'): number | undefined {
  const found = new RegExp(`${name}:\\s+(\\d+) kB`).exec(readText(`/proc/${pid}/status`));
  return found === null ? undefined : Number(found[1]) * 1024;
}

/** @returns microseconds of all threads so far; undefined where /proc is missing or the process is gone */
export function processorOf(pid: number): number | undefined {
  let nanoseconds = 0;
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      nanoseconds += Number(readText(`/proc/${pid}/task/${thread}/schedstat`).split(' ')[0] ?? 0);
    }
  } catch {
    // No /proc on this system, or the process is gone: the figure is left out.
    return undefined;
  }
  return nanoseconds / 1000;
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // A thread may end between the listing and the reading; it then counts as nothing.
    return '';
  }
}
