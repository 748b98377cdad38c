/** Asks a person at a terminal before what cannot be taken back. A script that calls a command has decided already. */
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

/** More than any server takes. */
const inputCharactersMax = 65_536;
const lineBreak = /\r?\n/;

/**
 * A secret that a command takes from a pipe: the first line of stdin. Never an argument, which other processes can see.
 *
 * Without its end.
 * @param what `password`, for the sentence that there is none
 * @param atTerminal says what to do where stdin is no pipe
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
