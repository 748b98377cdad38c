/** A JSON object as the value of an option: JSON, `@file`, or `-` for stdin. */
import { readFileSync } from 'node:fs';
import { isRecord } from '../../config/inspection.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import type { Terminal } from '../terminal.ts';

export type Members = Readonly<Record<string, unknown>>;

/** @param option its name, for the error message */
export async function readObject(terminal: Terminal, option: string, written: string): Promise<Members> {
  const text =
    written === '-' ? (await terminal.stdin.setEncoding('utf8').toArray()).join('') : textIn(written);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Reported below.
  }
  if (isRecord(value)) return value;
  throw new CommandFailure(`${option} must be a JSON object, @file or -`, { exitCode: exitCodes.usage });
}

function textIn(written: string): string {
  if (!written.startsWith('@')) return written;
  const file = written.slice(1);
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new CommandFailure(`${file} cannot be read (${reason})`, {
      exitCode: exitCodes.usage,
      cause: error,
    });
  }
}
