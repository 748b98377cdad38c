/** What a command prints when it runs in the process of a test: lines of the console, and what goes to stderr past it. */
import { mock } from 'node:test';
import type { Outcome } from './spawn-program.ts';

/** @param run answers with the exit code */
export async function captureOutput(run: () => Promise<number>): Promise<Outcome> {
  const texts = { stdout: '', stderr: '' };
  const log = mock.method(console, 'log', (text: string) => {
    texts.stdout += `${text}\n`;
  });
  const error = mock.method(console, 'error', (text: string) => {
    texts.stderr += `${text}\n`;
  });
  const write = mock.method(process.stderr, 'write', (text: string) => {
    texts.stderr += text;
    return true;
  });
  try {
    return { code: await run(), ...texts };
  } finally {
    for (const mocked of [log, error, write]) mocked.mock.restore();
  }
}
