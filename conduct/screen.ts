/** The screen of a process: color and a progress bar at a terminal alone, and questions where a person can answer. */
import { createInterface } from 'node:readline/promises';
import type { Screen } from './command.ts';

type Stream = NodeJS.WritableStream & { readonly isTTY?: boolean };

type Streams = {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: Stream;
  readonly stderr: Stream;
};

type Environment = { readonly NO_COLOR?: string | undefined };

const barColumns = 30;

export function screenOf({ stdin, stdout, stderr }: Streams, { NO_COLOR = '' }: Environment): Screen {
  const isWatched = stderr.isTTY === true;
  const clear = (): void => void (isWatched && stderr.write('\r\u001b[K'));
  const print = (stream: Stream) => (line: string) => {
    clear();
    stream.write(`${line}\n`);
  };
  return {
    out: print(stdout),
    err: print(stderr),
    // https://no-color.org
    hasColor: stdout.isTTY === true && NO_COLOR === '',
    confirm:
      stdin.isTTY === true && isWatched
        ? async (question) => {
            const line = createInterface({ input: stdin, output: stderr });
            const answer = await line.question(`${question} [y/N] `);
            line.close();
            return /^y(?:es)?$/i.test(answer.trim());
          }
        : undefined,
    progress: (done, all, { id }) => {
      if (!isWatched) return;
      const filled = Math.floor((done / all) * barColumns);
      stderr.write(`\r\u001b[K${'#'.repeat(filled)}${'.'.repeat(barColumns - filled)} ${done}/${all} ${id}`);
    },
  };
}
