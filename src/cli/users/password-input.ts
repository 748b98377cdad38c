/** A password for an account: read from a pipe, or made here and shown once. */
import { randomBytes } from 'node:crypto';
import { stdinLine } from '../stdin-line.ts';
import type { Terminal } from '../terminal.ts';

/** 120 bits. */
export function madePassword(): string {
  return randomBytes(15).toString('base64url');
}

/** The first line of stdin, without its end. */
export function readPassword(terminal: Terminal): Promise<string> {
  return stdinLine(
    terminal.stdin,
    'password',
    '--password-stdin reads a pipe; without it a password is made and shown',
  );
}
