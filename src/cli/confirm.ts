/** Asks a person at a terminal before what cannot be taken back. A script that calls a command has decided already. */
import { createInterface } from 'node:readline/promises';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import type { Terminal } from './terminal.ts';

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
