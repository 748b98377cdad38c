/** A progress bar on one line of a terminal; nothing at all where stderr is a file or a pipe. */
import type { Output } from './terminal.ts';

export type Progress = {
  /** May be called often; the line is drawn at most once every `drawEveryMs`. */
  readonly advance: (done: number, total: number) => void;
  /** Clears the line. */
  readonly end: () => void;
};

const drawEveryMs = 100;
const barCells = 30;

/** @param label what is under way, in a word or two */
export function showProgress(stream: Output, label: string): Progress {
  if (!stream.isTTY) return { advance: ignore, end: ignore };
  let drawnAt = Number.NEGATIVE_INFINITY;
  return {
    advance: (done, total) => {
      const now = performance.now();
      if (now - drawnAt < drawEveryMs && done < total) return;
      drawnAt = now;
      const share = total === 0 ? 1 : Math.min(1, done / total);
      const filled = Math.round(share * barCells);
      const bar = '█'.repeat(filled) + '░'.repeat(barCells - filled);
      stream.write(`\r${label} ${bar} ${Math.round(share * 100)} %`);
    },
    end: () => {
      stream.write('\r\u001b[2K');
    },
  };
}

function ignore(): void {
  // A pipe gets the outcome alone.
}
