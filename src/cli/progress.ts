/** Progress on one line of a terminal; nothing if stderr is a file or a pipe. */
import type { Output } from './terminal.ts';

export type Progress = {
  /** May be called often; the line is drawn at most once every `drawEveryMs`. */
  readonly advance: (done: number, total: number) => void;
  /** Clears the line. */
  readonly end: () => void;
};

const drawEveryMs = 100;
const barCells = 30;

/** @param label a word or two for the work */
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
  // A pipe gets no progress.
}

type StatusLine = {
  /** May be called often; the line is drawn at most once every `drawEveryMs`. */
  readonly show: (text: string) => void;
  /** Clears the line. */
  readonly end: () => void;
};
const clearLine = '\r\u001b[2K';

/** A status line for work of unknown length; nothing if stderr is a file or a pipe. */
export function showStatusLine(stream: Output): StatusLine {
  let drawnAt = Number.NEGATIVE_INFINITY;
  return {
    show: (text) => {
      const now = performance.now();
      if (!stream.isTTY || now - drawnAt < drawEveryMs) return;
      drawnAt = now;
      stream.write(`${clearLine}${text}`);
    },
    end: () => {
      if (stream.isTTY) stream.write(clearLine);
    },
  };
}

/**
 * Calls `act` on the first SIGINT or SIGTERM, which would end the process otherwise.
 * @returns function that restores the default
 */
export function onInterrupt(act: () => void): () => void {
  process.once('SIGINT', act).once('SIGTERM', act);
  return () => {
    process.off('SIGINT', act).off('SIGTERM', act);
  };
}
