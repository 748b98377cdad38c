/**
 * Failures of a command. Exit codes are part of the interface: 0 done, 1 failed, 2 the command line or the
 * configuration is wrong, 3 `migrate --dry-run` found steps, 4 the store is damaged, 5 documents in the store do not fit
 * the configuration, 70 `serve` ended by an uncaught
 * error (EX_SOFTWARE of sysexits.h), 130 a second signal interrupted the drain. A failure prints one line for each
 * fault; its stack is printed at log level `debug` only.
 */
import { ConfigurationError } from '../config/inspection.ts';
import { createSourceStacks } from '../observe/source-stack.ts';

export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  pending: 3,
  damaged: 4,
  unfit: 5,
  uncaught: 70,
  interrupted: 130,
} as const;

/** A failure whose message is sufficient without a stack. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
  readonly exitCode: number;

  constructor(message: string, options: { readonly exitCode?: number; readonly cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.exitCode = options.exitCode ?? exitCodes.failed;
  }
}

/** The command line, a setting or a file that one of them names is wrong. */
export function usageFailure(message: string, cause?: unknown): CommandFailure {
  return new CommandFailure(message, { exitCode: exitCodes.usage, cause });
}

export function exitCodeOf(error: unknown): number {
  if (error instanceof ConfigurationError) return exitCodes.usage;
  return error instanceof CommandFailure ? error.exitCode : exitCodes.failed;
}

/** Returns the text to print, without a final line break. */
export function failureText(error: unknown, withStack: boolean): string {
  const lines = linesOf(error);
  const text = lines.map((line) => `comity: ${line}`).join('\n');
  if (!withStack || !(error instanceof Error)) return text;
  const cause = error.cause instanceof Error ? `\ncaused by ${error.cause.stack}` : '';
  return createSourceStacks()(`${text}\n${error.stack}${cause}`);
}

function linesOf(error: unknown): readonly string[] {
  if (error instanceof ConfigurationError) return error.mistakes;
  // Comity's own messages may have a line for each collection.
  return error instanceof CommandFailure ? error.message.split('\n') : [firstLine(error)];
}

function firstLine(error: unknown): string {
  const message = error instanceof Error ? error.message || error.name : String(error);
  const [line = ''] = message.split('\n');
  return line;
}

/** Takes the exit code of the called subcommand. */
export type Finish = (exitCode: number) => void;
