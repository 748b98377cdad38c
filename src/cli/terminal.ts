/**
 * The environment and standard streams of a command, with questions at a terminal and progress on one line of it. Commands reach them by
 * argument only, so that tests run them in their own process with other ones.
 */
import { Console } from 'node:console';
import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import type { Environment } from '../config/load-settings.ts';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import { usageFailure } from './failure.ts';

type Input = Readable & { readonly isTTY?: boolean };
export type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number };

/**
 * Writes octets to stdout as they come. A reader that closed the pipe, such as `head`, has enough.
 * @param send passes each piece on when the one before is written
 */
export async function writeOctets(
  stdout: Output,
  send: (take: (chunk: Uint8Array) => Promise<void>) => Promise<void>,
): Promise<void> {
  // The callback of each write reports the error as well; an unhandled event would end the program.
  stdout.on('error', () => undefined);
  const write = (chunk: Uint8Array): Promise<void> =>
    new Promise((written, failed) => {
      stdout.write(chunk, (error) => (error ? failed(error) : written()));
    });
  try {
    await send(write);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EPIPE')) throw error;
  }
}

export type Streams = { readonly stdin: Input; readonly stdout: Output; readonly stderr: Output };

export type Terminal = Streams & {
  readonly environment: Environment;
  /** Receives the lines that `serve` logs; undefined: standard error, past `stderr` (observe/log.ts). */
  readonly log: { write(line: string): void } | undefined;
  /** Prints a line on stdout. */
  readonly out: (line: string) => void;
  /** Prints a line on stderr. */
  readonly err: (line: string) => void;
};

/** Drops lines that cannot be printed because the reader of a pipe is gone, as `console` does. */
export function openTerminal(environment: Environment, streams: Streams, log?: Terminal['log']): Terminal {
  const { stdout, stderr } = streams;
  const lines = new Console({ stdout, stderr });
  return {
    environment,
    // A getter, since the first access opens the stdin of a process.
    get stdin() {
      return streams.stdin;
    },
    stdout,
    stderr,
    log,
    out: (line) => lines.log(line),
    err: (line) => lines.error(line),
  };
}

export async function isConfirmed(terminal: Terminal, question: string): Promise<boolean> {
  if (!terminal.stdin.isTTY || !terminal.stdout.isTTY) return true;
  const lines = ownEmitter(createInterface({ input: terminal.stdin, output: terminal.stderr }), ignoreError);
  try {
    const answer = await lines.question(`${question} [y/N] `);
    return ['y', 'yes'].includes(answer.trim().toLowerCase());
  } finally {
    lines.close();
  }
}

/** More than any server accepts. */
const inputCharactersMax = 65_536;
const lineBreak = /\r?\n/;

/**
 * Returns the first line of stdin, without its line break: a secret, which an argument would show to other processes.
 * @param what names the secret in the error message, such as `password`
 * @param atTerminal the error message if stdin is a terminal
 */
export async function stdinLine(stdin: Input, what: string, atTerminal: string): Promise<string> {
  if (stdin.isTTY) throw usageFailure(atTerminal);
  let text = '';
  for await (const chunk of stdin.setEncoding('utf8')) {
    text += chunk;
    if (text.length > inputCharactersMax) break;
  }
  const line = text.split(lineBreak, 1)[0] ?? '';
  if (line === '') throw usageFailure(`stdin has no ${what}`);
  return line;
}

export type Progress = {
  /** May be called often; the line is drawn at most once every `drawEveryMs`. */
  readonly advance: (done: number, total: number) => void;
  /** Clears the line. */
  readonly end: () => void;
};

const drawEveryMs = 100;
const barCells = 30;

/** @param label a word or two for the work */
export function showProgress(stream: Output, label: string): Progress {
  if (!stream.isTTY) return { advance: ignore, end: ignore };
  let drawnAt = Number.NEGATIVE_INFINITY;
  return {
    advance: (done, total) => {
      const now = performance.now();
      if (now - drawnAt < drawEveryMs && done < total) return;
      drawnAt = now;
      const share = total === 0 ? 1 : Math.min(1, done / total);
      const filled = Math.round(share * barCells);
      const bar = '█'.repeat(filled) + '░'.repeat(barCells - filled);
      stream.write(`\r${label} ${bar} ${Math.round(share * 100)} %`);
    },
    end: () => {
      stream.write('\r\u001b[2K');
    },
  };
}

function ignore(): void {
  // A pipe gets no progress.
}

export type StatusLine = {
  /** May be called often; the line is drawn at most once every `drawEveryMs`. */
  readonly show: (text: string) => void;
  /** Clears the line. */
  readonly end: () => void;
};
const clearLine = '\r\u001b[2K';

/** A status line for work of unknown length; nothing if stderr is a file or a pipe. */
export function showStatusLine(stream: Output): StatusLine {
  let drawnAt = Number.NEGATIVE_INFINITY;
  return {
    show: (text) => {
      const now = performance.now();
      if (!stream.isTTY || now - drawnAt < drawEveryMs) return;
      drawnAt = now;
      stream.write(`${clearLine}${text}`);
    },
    end: () => {
      if (stream.isTTY) stream.write(clearLine);
    },
  };
}

/**
 * Calls `act` on the first SIGINT or SIGTERM, which would end the process otherwise.
 * @returns function that restores the default
 */
export function onInterrupt(act: () => void): () => void {
  process.once('SIGINT', act).once('SIGTERM', act);
  return () => {
    process.off('SIGINT', act).off('SIGTERM', act);
  };
}
