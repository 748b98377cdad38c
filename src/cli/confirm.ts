/** User input: confirmation of irreversible actions at a terminal (never in scripts), and secrets from a pipe. */
import { createInterface } from 'node:readline/promises';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import { CommandFailure, exitCodes } from './failure.ts';
import type { Input, Terminal } from './terminal.ts';

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
  if (stdin.isTTY) throw new CommandFailure(atTerminal, { exitCode: exitCodes.usage });
  let text = '';
  for await (const chunk of stdin.setEncoding('utf8')) {
    text += chunk;
    if (text.length > inputCharactersMax) break;
  }
  const line = text.split(lineBreak, 1)[0] ?? '';
  if (line === '') throw new CommandFailure(`stdin has no ${what}`, { exitCode: exitCodes.usage });
  return line;
}
