/**
 * `comity serve`: starts the program, prints the ready line, and stops on a signal or an uncaught error.
 *
 * Starting -> serving -> draining -> ended. The first signal begins the drain; during the start, the start is finished
 * first. A second signal ends the process at once. The program bounds its drain itself; `lateMs` after that bound this
 * file gives up, so that a fault in the drain cannot keep the process alive.
 *
 * An uncaught error drains as a signal does and exits 70; while starting it exits at once (decision 0037).
 */
import { resolve } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { compose, type Running } from '../compose.ts';
import type { WrittenSettings } from '../config/load-settings.ts';
import type { Settings } from '../config/settings.ts';
import { createLog } from '../observe/log.ts';
import { createMetrics } from '../observe/metrics.ts';
import { fanOut, type Observe } from '../observe/observation.ts';
import { addressOf, describe } from '../store/postgres/connection/address.ts';
import { CommandFailure, exitCodes } from './failure.ts';
import { type Reading, readConfiguration, tellWarnings } from './read-configuration.ts';
import type { Terminal } from './terminal.ts';
import { welcomeText } from './welcome.ts';

const lateMs = 5000;

/** Uncaught errors that are logged; a repeating one would fill the disk. */
const uncaughtLinesMax = 10;

/** npm repeats a signal that the terminal has sent to the whole process group: within this time both count as one. */
const echoMs = 500;

/** Resolves with the exit code once the program has stopped. */
export async function serve(terminal: Terminal, options: WrittenSettings): Promise<number> {
  const signal = hearSignals(terminal.environment.npm_lifecycle_event === undefined ? 0 : echoMs);
  try {
    return await serveUntil(signal.first, terminal, options);
  } finally {
    signal.forget();
  }
}

/** The first occurrence of an event that may repeat, and a function that removes the listener. */
type Heard<T> = { readonly first: Promise<T>; readonly forget: () => void };

async function serveUntil(
  signal: Promise<string>,
  terminal: Terminal,
  options: WrittenSettings,
): Promise<number> {
  const { warnings, ...reading } = await readConfiguration(terminal.environment, options);
  const { settings } = reading;
  tellWarnings(terminal, warnings);
  const metrics = createMetrics();
  const log = createLog({
    level: settings.logLevel,
    ...(terminal.log === undefined ? {} : { destination: terminal.log }),
  });
  const observe = fanOut(log, metrics.observe);
  const uncaught = hearUncaught(observe);
  try {
    const starting = start(() => compose({ ...reading, observe, metrics }), settings);
    const running = await Promise.race([starting, uncaught.first.then(fail)]);
    tellStarted(terminal, running, reading);
    return await stopAt(await Promise.race([signal, uncaught.first]), running, settings);
  } finally {
    uncaught.forget();
  }
}

function tellStarted(
  terminal: Terminal,
  { url, tlsUrl, adminKey, madeSecrets: senderSecrets }: Running,
  { configuration, settings }: Pick<Reading, 'configuration' | 'settings'>,
): void {
  tellWarnings(terminal, keyWarnings(settings));
  terminal.stdout.write(
    welcomeText({ url, tlsUrl, data: whereOf(settings), adminKey, senderSecrets, configuration }),
  );
  giveBackMemorySoon();
}

async function stopAt(cause: string | Uncaught, running: Running, settings: Settings): Promise<number> {
  const reason = typeof cause === 'string' ? cause : 'uncaught error';
  const stopped = stop(running, reason, settings.drainMs + lateMs);
  if (typeof cause === 'string') await stopped;
  // The exit code reports the uncaught error, whether the drain succeeded or not.
  else
    await stopped.then(
      () => fail(cause),
      () => fail(cause),
    );
  return exitCodes.done;
}

/** An error that no code caught. */
type Uncaught = { readonly error: unknown };

/**
 * Resolves with the first uncaught error. Each is logged with its origin and stack, up to `uncaughtLinesMax`; later
 * ones have no other effect, so that a repeating fault neither ends the drain nor begins another.
 */
function hearUncaught(observe: Observe): Heard<Uncaught> {
  const { promise, resolve: first } = Promise.withResolvers<Uncaught>();
  let seen = 0;
  // Node calls it for unhandled rejections too, as `origin` reports.
  const hear = (error: Error, origin: NodeJS.UncaughtExceptionOrigin): void => {
    seen += 1;
    first({ error });
    if (seen > uncaughtLinesMax) return;
    try {
      observe({ kind: 'uncaught', origin, error });
    } catch {
      // The log itself may have thrown the error. An error thrown here would end the process without a drain.
    }
  };
  process.on('uncaughtException', hear);
  return { first: promise, forget: () => void process.off('uncaughtException', hear) };
}

function fail({ error }: Uncaught): never {
  const message = `ended by an uncaught error: ${error instanceof Error ? error.message : String(error)}`;
  throw new CommandFailure(message, { exitCode: exitCodes.uncaught, cause: error });
}

function keyWarnings({ databaseUrl, secretKey, data }: Settings): readonly string[] {
  if (databaseUrl === undefined || secretKey !== undefined) return [];
  const file = resolve(data, 'secret.key');
  return [
    `COMITY_SECRET_KEY is not set: secrets are encrypted with the key in ${file}, which every process on this database needs`,
  ];
}

/** Location of the data: a folder, or a database without the secret parts of its URL. */
function whereOf({ data, databaseUrl, databaseSchema }: Settings): string {
  if (databaseUrl === undefined) return resolve(data);
  return `${describe(addressOf(databaseUrl))}, schema ${databaseSchema}`;
}

async function start(begin: () => Promise<Running>, settings: Settings): Promise<Running> {
  try {
    return await begin();
  } catch (error) {
    const { startFailure } = await import('./start-failure.ts');
    throw startFailure(error, settings);
  }
}

async function stop(running: Running, reason: string, boundMs: number): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    reject(new CommandFailure(`the program did not stop within ${boundMs} ms and was ended`));
  }, boundMs);
  try {
    await Promise.race([running.stop(reason), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves with the name of the first signal, and ends the process on one that comes more than `sameMs` later. */
function hearSignals(sameMs: number): Heard<string> {
  const { promise, resolve: first } = Promise.withResolvers<string>();
  let firstAt: number | undefined;
  const hear = (name: string): void => {
    const now = performance.now();
    if (firstAt === undefined) {
      firstAt = now;
      first(name);
    } else if (now - firstAt >= sameMs) process.exit(exitCodes.interrupted);
  };
  process.on('SIGTERM', hear).on('SIGINT', hear);
  return { first: promise, forget: () => void process.off('SIGTERM', hear).off('SIGINT', hear) };
}

/** After the ready line, when its reader has been served. */
const afterMs = 1000;

type Collect = (options: { type: 'major'; execution: 'async'; flavor: 'last-resort' }) => Promise<void>;

/**
 * Frees the memory of the start. Loading modules and compiling schemas leaves some 18 MB of garbage in pages that V8
 * keeps until the heap is under pressure, which an idle program never is; one full collection soon after the start
 * returns them. It takes about 80 ms, once. The timer does not keep the process alive.
 */
function giveBackMemorySoon(): void {
  const timer = setTimeout(() => {
    setFlagsFromString('--expose-gc');
    const collect: unknown = runInNewContext('gc');
    setFlagsFromString('--no-expose-gc');
    if (typeof collect === 'function') {
      void (collect as Collect)({ type: 'major', execution: 'async', flavor: 'last-resort' });
    }
  }, afterMs);
  timer.unref();
}
