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
import { type Line, roomLines } from './room-lines.ts';

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'silent';

export type LogOptions = {
  readonly level: LogLevel;
  /** Receives whole lines; default: standard error. */
  readonly destination?: { write(line: string): void };
};

type Lines = { write(line: string): void; flush?(): void };

const standardError = 2;
const firstServerError = 500;
const slowMigrationMs = 1000;

export function createLog(options: LogOptions): Observe {
  const lines: Lines =
    options.destination ?? createLinesByTurn(pino.destination({ dest: standardError, sync: true }));
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
  return (observation) => {
    // The one fact of every request must cost nothing when it is not logged.
    if (observation.kind === 'answered' && !debug && !isOwnFailure(observation)) return;
    const { level, message } = lineOf(observation);
    logger[level](membersOf(observation), message);
    if (isUrgent(level)) lines.flush?.();
  };
}

function isUrgent(level: Line['level']): boolean {
  return level === 'warn' || level === 'error';
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
    case 'stream-cut':
      return { level: 'warn', message: 'stream reader too slow' };
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
