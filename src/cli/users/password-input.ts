/** A password for an account: read from a pipe, or made here and shown once. Never an argument, which other processes can see. */
import { randomBytes } from 'node:crypto';
import { CommandFailure, exitCodes } from '../failure.ts';

/** More than any server takes. */
const inputCharactersMax = 65_536;
const lineBreak = /\r?\n/;

/** 120 bits. */
export function madePassword(): string {
  return randomBytes(15).toString('base64url');
}

/** The first line of stdin, without its end. */
export async function readPassword(): Promise<string> {
  if (process.stdin.isTTY) {
    const message = '--password-stdin reads a pipe; without it a password is made and shown';
    throw new CommandFailure(message, { exitCode: exitCodes.usage });
  }
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) {
    text += chunk;
    if (text.length > inputCharactersMax) break;
  }
  const password = text.split(lineBreak, 1)[0] ?? '';
  if (password === '') throw new CommandFailure('stdin has no password', { exitCode: exitCodes.usage });
  return password;
}
