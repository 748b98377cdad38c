/**
 * The process that keeps one PostgreSQL cluster in a folder of its own below the system's temporary folder. It lives as
 * long as its standard input is open: whoever started it may be killed in any way, and the server and its folder still
 * go. Reads one command a line, `start | stop fast | stop immediate | kill | freeze | thaw | save | load`, and answers each with one line of
 * JSON. keeper-process.ts speaks to it.
 *
 * Usage: node test/harness/postgres-server/keeper.ts '{"max_connections":"50"}'
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../../wire/free-port.ts';
import { findBinaries, findOwner } from './binaries.ts';

export type KeeperAnswer = { readonly url: string } | { readonly error: string };

/** How often a start is tried: after SIGKILL the old server's children hold its memory until they notice. */
const startAttempts = 100;
const startPauseMs = 50;
const logCharactersMax = 8000;

const settings = JSON.parse(process.argv[2] ?? '{}') as Readonly<Record<string, string>>;
const folder = mkdtempSync(join(tmpdir(), `comity-postgres-${process.pid}-`));
const data = join(folder, 'data');
const saved = join(folder, 'saved');
const password = randomBytes(12).toString('hex');
let port = 0;
let running: ChildProcess | undefined;
let preparing: ChildProcess | undefined;
let ending = false;
let isFrozen = false;
let log = '';

// Its owner decides when it ends, and an interrupt from the keyboard goes to the owner.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
process.stdout.on('error', () => undefined); // The owner is gone; standard input says so too.

const owner = findOwner();
const binaries = findBinaries(owner, folder);
let commands: Promise<void> = Promise.resolve();
createInterface({ input: process.stdin })
  .on('line', (line) => {
    commands = commands.then(() => answer(line));
  })
  .on('close', () => void end());

async function answer(line: string): Promise<void> {
  let told: KeeperAnswer;
  try {
    await obey(line);
    told = { url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres` };
  } catch (error) {
    told = { error: `${error instanceof Error ? error.message : String(error)}\n${log}` };
  }
  process.stdout.write(`${JSON.stringify(told)}\n`);
}

async function obey(line: string): Promise<void> {
  if (line === 'start') await start();
  else if (line === 'stop fast') await stop('SIGINT');
  else if (line === 'stop immediate') await stop('SIGQUIT');
  else if (line === 'kill') await stop('SIGKILL');
  else if (line === 'freeze') signalAll('SIGSTOP');
  else if (line === 'thaw') signalAll('SIGCONT');
  else if (line === 'save') execFileSync('cp', ['-a', data, saved]);
  else if (line === 'load') {
    rmSync(data, { recursive: true });
    execFileSync('cp', ['-a', saved, data]);
  } else throw new Error(`No such command: ${line}`);
}

async function end(): Promise<void> {
  ending = true;
  if (preparing !== undefined) {
    const closed = once(preparing, 'close');
    // Its group: initdb works through children of its own, which still write into the folder.
    if (preparing.pid !== undefined) process.kill(-preparing.pid, 'SIGKILL');
    await closed;
  }
  await stop('SIGQUIT');
  process.exit(0);
}

async function start(): Promise<void> {
  if (running !== undefined) return;
  if (port === 0) await initialise();
  for (let attempt = 1; ; attempt += 1) {
    if (ending) throw new Error('The keeper is ending');
    if (await startOnce()) return;
    if (attempt === startAttempts || !/shared memory block|could not bind/.test(log)) {
      throw new Error('PostgreSQL did not start');
    }
    await pause(startPauseMs);
  }
}

async function initialise(): Promise<void> {
  // The server's user must be able to walk through the folder; what is in it is its own.
  chmodSync(folder, 0o711);
  mkdirSync(data, { mode: 0o700 });
  const passwordFile = join(folder, 'password');
  writeFileSync(passwordFile, `${password}\n`);
  if (owner.uid !== undefined && owner.gid !== undefined) {
    chownSync(data, owner.uid, owner.gid);
    chownSync(passwordFile, owner.uid, owner.gid);
  }
  chmodSync(passwordFile, 0o600);
  const options = ['--username=postgres', '--auth=password', `--pwfile=${passwordFile}`];
  const kind = ['--encoding=UTF8', '--locale=C', '--no-sync', '--no-instructions', '--set=fsync=off'];
  // Of 4096, which make a password dear to guess, each connection pays a third of what it costs.
  const cheapPassword = '--set=scram_iterations=1';
  preparing = spawnQuietly(binaries.initdb, [`--pgdata=${data}`, ...options, ...kind, cheapPassword]);
  const [code] = (await once(preparing, 'close')) as [number | null];
  preparing = undefined;
  if (code !== 0) throw new Error(`initdb ended with ${code}`);
  port = await freePort();
}

/** @returns false when the server ended before it was ready */
async function startOnce(): Promise<boolean> {
  log = '';
  const fixed = { listen_addresses: '127.0.0.1', unix_socket_directories: '', lc_messages: 'C' };
  const all = Object.entries({ fsync: 'on', ...fixed, ...settings });
  const options = all.flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const child = spawnQuietly(binaries.postgres, ['-D', data, '-p', String(port), ...options]);
  running = child;
  const closed = once(child, 'close');
  closed.then(() => {
    if (running === child) running = undefined;
  });
  return await new Promise((resolve) => {
    child.stderr?.on('data', () => {
      if (log.includes('database system is ready to accept connections')) resolve(true);
    });
    closed.then(() => resolve(false));
  });
}

/** Signals the server and then its children, so that it makes no further ones; each has a process group of its own. */
function signalAll(signal: 'SIGSTOP' | 'SIGCONT'): void {
  const pid = running?.pid;
  if (pid === undefined) return;
  process.kill(pid, signal);
  const processes = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' });
  for (const [, child, parent] of processes.matchAll(/(\d+)\s+(\d+)/g)) {
    if (Number(parent) === pid) killIfThere(Number(child), signal);
  }
  isFrozen = signal === 'SIGSTOP';
}

/** The child of a session goes when that ends. */
function killIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

async function stop(signal: NodeJS.Signals): Promise<void> {
  const child = running;
  if (child === undefined) return;
  if (isFrozen) signalAll('SIGCONT');
  const closed = once(child, 'close');
  child.kill(signal);
  await closed;
}

function spawnQuietly(file: string, args: readonly string[]): ChildProcess {
  const child = spawn(file, args, {
    ...owner,
    cwd: '/',
    detached: true,
    env: { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const keep = (text: string) => {
    log = (log + text).slice(-logCharactersMax);
  };
  child.stdout.setEncoding('utf8').on('data', keep);
  child.stderr.setEncoding('utf8').on('data', keep);
  return child;
}
