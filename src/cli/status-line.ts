/** One line of a terminal that says how far work has come whose end nobody knows; nothing where stderr is a file or a pipe. */
import type { Output } from './terminal.ts';

export type StatusLine = {
  /** May be called often; the line is drawn at most once every `drawEveryMs`. */
  readonly show: (text: string) => void;
  /** Clears the line. */
  readonly end: () => void;
};

const drawEveryMs = 100;
const clearLine = '\r\u001b[2K';

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
