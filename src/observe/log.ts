/**
 * The log: one JSON object a line, on standard error so that standard output carries the ready line and what the program
 * is asked to print. Facts hold no credential, query string or content (observation.ts), so neither does any line.
 *
 * At `info`, the default, an answer is logged only when its status is 500 or more; `debug` logs every answer, which
 * costs about 5 us of a request that takes 15. Warnings and errors are written at once, with what waits before them: the last line before
 * a crash is the one wanted. Others wait for the end of the turn of the event loop (lines-by-turn.ts).
 */
import pino from 'pino';
import { describeError, describeForeignError } from './describe-error.ts';
import { createLinesByTurn } from './lines-by-turn.ts';
import type { Observation, Observe } from './observation.ts';
import { ignoreError, ownEmitter } from './own-emitter.ts';
import { type Line, roomLines } from './room-lines.ts';

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'silent';

export type LogOptions = {
  readonly level: LogLevel;
  /** Receives whole lines; default: standard error. */
  readonly destination?: { write(line: string): void };
  /** Milliseconds that never go back; default: `performance.now`. */
  readonly monotonic?: () => number;
};

type Lines = { write(line: string): void; flush?(): void };

const standardError = 2;
const firstServerError = 500;
/** What is kept of lines that could not be written. */
const waitingCharactersMax = 1_048_576;
/** Lines of one provoked kind. */
export const provokedLinesPerSecondMax = 10;
const slowMigrationMs = 1000;

export function createLog(options: LogOptions): Observe {
  const lines: Lines = options.destination ?? createLinesByTurn(ownEmitter(openStandardError(), ignoreError));
  const logger = pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    lines,
  );
  const debug = logger.isLevelEnabled('debug');
  const thin = createThinning(options.monotonic ?? (() => performance.now()));
  return (observation) => {
    // The one fact of every request must cost nothing when it is not logged.
    if (observation.kind === 'answered' && !debug && !isOwnFailure(observation)) return;
    const { level, message } = lineOf(observation);
    const omitted = thin(provokedKind(observation));
    if (omitted === undefined) return;
    const members = membersOf(observation);
    logger[level](omitted === 0 ? members : { ...members, omitted }, message);
    if (isUrgent(level)) lines.flush?.();
  };
}

/** Where lines cannot be written (a full disk behind a redirected stream), further ones are dropped and the program goes on. */
function openStandardError() {
  return pino.destination({ dest: standardError, sync: true, maxLength: waitingCharactersMax });
}

/** Of facts that any client can bring about as often as it likes: 503, too, says that there is too much. */
function provokedKind(observation: Observation): string | undefined {
  if (observation.kind === 'answered') return observation.status === overloadedStatus ? '503' : undefined;
  return provoked.has(observation.kind) ? observation.kind : undefined;
}

const provoked: ReadonlySet<Observation['kind']> = new Set(['connection-refused', 'http2-cut', 'stream-cut']);
const overloadedStatus = 503;

/**
 * Lets so many lines of a provoked kind through in a second, so that an attack neither fills the disk nor costs a write for each of its packets. The
 * metrics count them all. Returns how many lines were left out before this one, or undefined where it is to be left out as well.
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

/** What became of a tunnel is told by itself, and is its destination's failure. */
function isOwnFailure({ status, code }: Extract<Observation, { kind: 'answered' }>): boolean {
  return status >= firstServerError && code !== 'destination_failed' && code !== 'destination_timeout';
}

function lineOf(observation: Observation): Line {
  switch (observation.kind) {
    case 'listening':
      return { level: 'info', message: 'listening' };
    case 'draining':
      return { level: 'info', message: 'draining' };
    case 'stopped':
      return { level: 'info', message: 'stopped' };
    case 'answered':
      return { level: isOwnFailure(observation) ? 'error' : 'debug', message: 'answered' };
    case 'client-error':
      return { level: 'debug', message: 'not an HTTP request' };
    case 'connection-refused':
      return { level: 'warn', message: 'too many connections' };
    case 'accept-failed':
      return { level: 'error', message: 'a connection could not be accepted' };
    case 'uncaught':
      return { level: 'fatal', message: 'an error that nothing caught: the program drains and exits' };
    case 'stream-cut':
      return { level: 'warn', message: 'stream reader too slow' };
    case 'loop-held':
      return { level: 'warn', message: 'the event loop was held' };
    case 'failed':
      return { level: 'error', message: 'request failed' };
    case 'store-opened':
      return { level: 'info', message: 'store opened' };
    case 'store-migrated':
      // A new store makes a dozen tables in as many milliseconds; only what kept people waiting is news.
      return {
        level: observation.durationMs < slowMigrationMs ? 'debug' : 'info',
        message: 'store migrated',
      };
    case 'store-failed':
      return { level: 'error', message: 'store failed' };
    case 'units-committed':
      return { level: 'debug', message: 'committed' };
    case 'operation-failed':
      return { level: 'error', message: 'operation failed' };
    case 'rows-purged':
      return { level: 'debug', message: 'purged' };
    case 'store-following':
      return {
        level: 'info',
        message:
          observation.how === 'notify'
            ? 'other processes tell of their changes'
            : 'changes of other processes are looked for, because the connection cannot LISTEN',
      };
    case 'processes-differ':
      return {
        level: 'warn',
        message: `another process on the same store has ${observation.what}: start all with the same configuration`,
      };
    default:
      return roomLines[observation.kind];
  }
}

/** The members of the fact as they are; an error becomes its name, message and stack. */
function membersOf(observation: Observation): Record<string, unknown> {
  if (observation.kind === 'answered') {
    const { exchange, ...facts } = observation;
    return { ...facts, id: exchange.id, peer: exchange.peer };
  }
  if (!('error' in observation)) return observation;
  const { error, ...rest } = observation;
  return {
    ...rest,
    error: ofOthers.has(observation.kind) ? describeForeignError(error) : describeError(error),
  };
}

/** Kinds whose error a mail server, an issuer or a provider had a hand in. */
const ofOthers: ReadonlySet<Observation['kind']> = new Set([
  'mail-delayed',
  'mail-given-up',
  'issuer-failed',
  'provider-failed',
]);
