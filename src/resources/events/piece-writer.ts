/**
 * Writes octets to a client that may be slow (§6): piece by piece, waiting wherever the client is slower than we. A batch
 * of events may be larger than what may wait for one client; in pieces it passes any link, and a client that takes little is told from
 * one that takes nothing. Pieces are views of the octets and no copies.
 */
import type { ContentSink } from '../../http/message.ts';
import type { WriteTurns } from './write-turns.ts';

/** Of what is written at once, and what a client must take within the bound for a stalled answer. */
const pieceBytesMax = 16 * 1024;

export type PieceWriter = {
  /** Calls `done` when the client has taken all octets but the last piece. One call at a time. */
  write(octets: Uint8Array, done: () => void): void;
  /** Nothing more is written, and no `done` is called. */
  close(): void;
};

export function createPieceWriter(sink: ContentSink, turns: WriteTurns): PieceWriter {
  let open = true;
  /** Used once: a full socket may also empty of a comment that somebody else wrote. */
  let goOn: (() => void) | undefined;

  sink.onReady(() => {
    const next = goOn;
    goOn = undefined;
    next?.();
  });

  function writeFrom(octets: Uint8Array, from: number, done: () => void): void {
    turns.enter(() => {
      if (!open) return 0;
      const piece = octets.subarray(from, from + pieceBytesMax);
      const next = (): void => {
        if (from + piece.length < octets.length) writeFrom(octets, from + piece.length, done);
        else if (open) done();
      };
      if (sink.write(piece)) next();
      else goOn = next;
      return piece.length;
    });
  }

  return {
    write(octets, done) {
      if (octets.length === 0) done();
      else writeFrom(octets, 0, done);
    },
    close: () => {
      open = false;
    },
  };
}
