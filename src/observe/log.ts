/**
 * The log: one JSON object per line on standard error; standard output is for the ready line and the output of
 * commands. Observations hold no credential, query string or content (observation.ts), so neither does a line.
 *
 * At `info`, the default, a response is logged only if its status is 500 or more by a fault of the program; `debug` logs every response, which
 * costs about 5 us of a request that takes 15. Warnings and errors are written immediately, after the lines waiting
 * before them, so that a crash loses none. Other lines wait for the end of the turn of the event loop.
 */

import process from 'node:process';
import pino from 'pino';
import { type Observation, type Observe, othersFailures } from './observation.ts';
import { type Line, lines } from './observation-lines.ts';
import { ignoreError, ownEmitter } from './own-emitter.ts';
import { createSourceStacks } from './source-stack.ts';

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'silent';

type LogOptions = {
  readonly level: LogLevel;
  /** Receives whole lines. Default: standard error. */
  readonly destination?: { write(line: string): void };
  /** A monotonic clock in milliseconds. Default: `performance.now`. */
  readonly monotonic?: () => number;
  /** Number of the worker, in every line; absent in a process that serves alone. */
  readonly worker?: number;
};

type Output = { write(line: string): void; flush?(): void };

const standardError = 2;
const firstServerError = 500;
const readyRoute = '/health/ready';
/** Characters kept of lines that could not be written. */
const waitingCharactersMax = 1_048_576;
export const provokedLinesPerSecondMax = 10;
const slowMigrationMs = 1000;

export function createLog(options: LogOptions): Observe {
  const output: Output =
    options.destination ?? createLinesByTurn(ownEmitter(openStandardError(), ignoreError));
  const logger = pino(
    {
      level: options.level,
      base: options.worker === undefined ? null : { worker: options.worker },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    output,
  );
  const debug = logger.isLevelEnabled('debug');
  const sourceStack = createSourceStacks();
  const thin = createThinning(options.monotonic ?? (() => performance.now()));
  let isDraining = false;
  return (observation) => {
    if (observation.kind === 'draining') isDraining = true;
    // Probes are meant to find that the program is leaving: that is no failure.
    if (isDraining && observation.kind === 'answered' && observation.route === readyRoute && !debug) return;
    // Every request has this observation: it must cost nothing when it is not logged.
    if (observation.kind === 'answered' && !debug && !isOwnFailure(observation)) return;
    const { level, message } = lineOf(observation);
    if (level === 'debug' && !debug) return;
    const omitted = thin(provokedKind(observation));
    if (omitted === undefined) return;
    const members = membersOf(observation, sourceStack);
    logger[level](omitted === 0 ? members : { ...members, omitted }, message);
    if (isUrgent(level)) output.flush?.();
  };
}

/** If standard error cannot be written (a full disk behind a redirection), lines are dropped and Comity continues. */
function openStandardError() {
  return pino.destination({ dest: standardError, sync: true, maxLength: waitingCharactersMax });
}

/** The kind of an observation that any client can cause at will, including a response with 503. */
function provokedKind(observation: Observation): string | undefined {
  if (observation.kind === 'answered') return observation.status === overloadedStatus ? '503' : undefined;
  return provoked.has(observation.kind) ? observation.kind : undefined;
}

const provoked: ReadonlySet<Observation['kind']> = new Set([
  'connection-refused',
  'function-escaped',
  'http2-cut',
  'stream-cut',
]);
const overloadedStatus = 503;

/**
 * Limits the lines of each provoked kind per second, so that an attack neither fills the disk nor costs a write per
 * packet. The metrics count all.
 *
 * @returns for a kind: the number of lines omitted before this one, or undefined if this one is omitted too
 */
function createThinning(monotonic: () => number): (kind: string | undefined) => number | undefined {
  const seen = new Map<string, { second: number; lines: number; omitted: number }>();
  return (kind) => {
    if (kind === undefined) return 0;
    const second = Math.floor(monotonic() / 1000);
    const state = seen.get(kind) ?? { second, lines: 0, omitted: 0 };
    seen.set(kind, state);
    if (state.second !== second) Object.assign(state, { second, lines: 0 });
    state.lines += 1;
    if (state.lines > provokedLinesPerSecondMax) {
      state.omitted += 1;
      return undefined;
    }
    const { omitted } = state;
    state.omitted = 0;
    return omitted;
  };
}

function isUrgent(level: Line['level']): boolean {
  return level === 'warn' || level === 'error' || level === 'fatal';
}

function isOwnFailure({ status, code = '' }: Extract<Observation, { kind: 'answered' }>): boolean {
  return status >= firstServerError && !othersFailures.has(code);
}

function lineOf(observation: Observation): Line {
  const line = lines[observation.kind];
  switch (observation.kind) {
    case 'answered':
      return isOwnFailure(observation) ? { ...line, level: 'error' } : line;
    case 'store-migrated':
      // A new store creates a dozen tables in as many milliseconds; only a slow migration matters to an operator.
      return observation.durationMs < slowMigrationMs ? { ...line, level: 'debug' } : line;
    case 'store-following':
      return observation.how === 'notify' ? line : { ...line, message: pollingMessage };
    case 'processes-differ':
      return {
        ...line,
        message: `another process on the same store has ${observation.what}: ${line.message}`,
      };
    case 'function-failed':
      return observation.nextAt === null ? { level: 'error', message: failedForGoodMessage } : line;
    default:
      return line;
  }
}

const pollingMessage = 'Comity polls for changes by other processes, because the connection cannot LISTEN';
const failedForGoodMessage = 'a function failed, and is not called again';

function membersOf(observation: Observation, sourceStack: SourceStack): Record<string, unknown> {
  if (observation.kind === 'answered') {
    const { exchange, ...facts } = observation;
    const { traceId } = exchange;
    return { ...facts, id: exchange.id, ...(traceId === undefined ? {} : { traceId }), peer: exchange.peer };
  }
  if (observation.kind === 'function-failed') {
    const { frames, ...facts } = observation;
    return frames === undefined ? facts : { ...facts, frames: sourceStack(frames) };
  }
  if (!('error' in observation)) return observation;
  const { error, ...rest } = observation;
  return {
    ...rest,
    error: foreignErrorKinds.has(observation.kind)
      ? describeForeignError(error)
      : describeError(error, sourceStack),
  };
}

/** Kinds whose error may contain text of a mail server, an issuer or a provider. */
const foreignErrorKinds: ReadonlySet<Observation['kind']> = new Set([
  'mail-delayed',
  'mail-given-up',
  'issuer-failed',
  'provider-failed',
]);

/** Depth of `cause` in a line. */
const causesMax = 4;
const foreignCharactersMax = 200;

type SourceStack = ReturnType<typeof createSourceStacks>;

function describeError(error: unknown, sourceStack: SourceStack, depth = 0): unknown {
  if (!(error instanceof Error)) return { message: String(error) };
  const { name, message, cause } = error;
  const stack = error.stack === undefined ? undefined : sourceStack(error.stack);
  if (cause === undefined || depth >= causesMax) return { name, message, stack };
  return { name, message, stack, cause: describeError(cause, sourceStack, depth + 1) };
}

/** Describes an error of another service, whose text may repeat secrets: name, code, short message, causes (§5.1). */
function describeForeignError(error: unknown, depth = 0): unknown {
  if (error === undefined) return undefined;
  if (!(error instanceof Error)) return { message: withoutSecrets(String(error)) };
  const { name, message, cause } = error;
  const code = 'code' in error ? { code: withoutSecrets(String(error.code)) } : {};
  const described = { name, ...code, message: withoutSecrets(message) };
  if (!(cause instanceof Error) || depth >= causesMax) return described;
  return { ...described, cause: describeForeignError(cause, depth + 1) };
}

/** 128 bits of randomness are 22 characters of base64url; the prefixes are those of Comity's tokens and of a JWT. */
const secretWord = /(?:\b(?:[sp]k_|rt_|eyJ)[\w.~+=-]*|[\w~+=-]{22,}(?:\.[\w~+=-]*)*)/g;
const mailAddress = /[^\s<>@]+@[^\s<>@]+/g;
const queryOfUrl = /\?\S*/g;
const lastWord = /\S*$/;

function withoutSecrets(text: string): string {
  return cutAtWord(text, 2 * foreignCharactersMax)
    .replace(queryOfUrl, '?...')
    .replace(mailAddress, '...')
    .replace(secretWord, '...')
    .slice(0, foreignCharactersMax);
}

/** Bounds the work of the expressions that follow. Drops the word at the cut, which may be half a secret. */
function cutAtWord(text: string, charactersMax: number): string {
  return text.length <= charactersMax ? text : text.slice(0, charactersMax).replace(lastWord, '');
}

type LinesByTurn = {
  write(line: string): void;
  flush(): void;
};

const turnCharactersMax = 64 * 1024;

/**
 * Writes the lines of one turn of the event loop with one system call. With two lines per tunnel, 1,990 tunnels were
 * opened per second without a log, 1,370 and 1,410 with a call per line; in another run 1,880 to 2,230 and, by turns,
 * 1,680 to 1,940.
 *
 * Waiting lines are written when the process exits; only SIGKILL loses those of the last turn.
 *
 * @param sink writes synchronously
 */
function createLinesByTurn(sink: { write(text: string): unknown }): LinesByTurn {
  let waiting = '';
  const flush = (): void => {
    if (waiting === '') return;
    const text = waiting;
    waiting = '';
    sink.write(text);
  };
  process.on('exit', flush);
  return {
    write(line) {
      if (waiting === '') setImmediate(flush);
      waiting += line;
      if (waiting.length > turnCharactersMax) flush();
    },
    flush,
  };
}
