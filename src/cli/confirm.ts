/** Asks a person at a terminal before what cannot be taken back. A script that calls a command has decided already. */
import { createInterface } from 'node:readline/promises';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';

export async function isConfirmed(question: string): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return true;
  const terminal = ownEmitter(createInterface({ input: process.stdin, output: process.stderr }), ignoreError);
  try {
    const answer = await terminal.question(`${question} [y/N] `);
    return ['y', 'yes'].includes(answer.trim().toLowerCase());
  } finally {
    terminal.close();
  }
}
