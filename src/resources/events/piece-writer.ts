/**
 * Writes texts to a client that may be slow (§6): piece by piece, waiting wherever the client is slower than we. A batch
 * of events may be larger than what may wait for one client; in pieces it passes any link. Texts are asked for one by one, so
 * that no more of them is made than the client takes.
 */
import type { ContentSink } from '../../http/message.ts';

/** Of what is written at once: with what the socket holds back, less than what may wait for a slow client. */
const pieceCharactersMax = 16 * 1024;

export type PieceWriter = {
  /** Calls `done` when the client has taken all texts. One call at a time. */
  write(texts: Iterator<string>, done: () => void): void;
  /** Nothing more is written, and no `done` is called. */
  close(): void;
};

export function createPieceWriter(sink: ContentSink): PieceWriter {
  let open = true;
  /** Used once: a full socket may also empty of a comment that somebody else wrote. */
  let goOn: (() => void) | undefined;

  sink.onReady(() => {
    const next = goOn;
    goOn = undefined;
    next?.();
  });

  function writeFrom(text: string, from: number, rest: Iterator<string>, done: () => void): void {
    let current = text;
    let at = from;
    while (open) {
      if (at >= current.length) {
        const next = rest.next();
        if (next.done === true) break;
        current = next.value;
        at = 0;
      }
      const end = pieceEnd(current, at);
      const taken = sink.write(current.slice(at, end));
      at = end;
      if (!taken) {
        goOn = () => writeFrom(current, at, rest, done);
        return;
      }
    }
    if (open) done();
  }

  return {
    write: (texts, done) => writeFrom('', 0, texts, done),
    close: () => {
      open = false;
    },
  };
}

/** Where a piece ends: never between the two halves of a surrogate pair, which apart are no character. */
function pieceEnd(text: string, from: number): number {
  const end = Math.min(from + pieceCharactersMax, text.length);
  const last = text.charCodeAt(end - 1);
  return end < text.length && last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
}
