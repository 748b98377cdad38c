/** A secret that a command takes from a pipe: the first line of stdin. Never an argument, which other processes can see. */
import { CommandFailure, exitCodes } from './failure.ts';
import type { Input } from './terminal.ts';

/** More than any server takes. */
const inputCharactersMax = 65_536;
const lineBreak = /\r?\n/;

/**
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
