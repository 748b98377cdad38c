/**
 * The environment and standard streams of a command. Commands reach them by argument only, so that tests run them in
 * their own process with other ones.
 */
import { Console } from 'node:console';
import type { Readable, Writable } from 'node:stream';
import type { Environment } from '../config/load-settings.ts';

export type Input = Readable & { readonly isTTY?: boolean };
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
