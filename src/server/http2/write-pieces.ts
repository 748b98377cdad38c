/**
 * Long content, piece by piece: node:http2 tells when a write has left, not how far it has come, and a client that takes
 * its answer slowly is to be told from one that takes nothing. A piece is one DATA frame of the usual size (RFC 9113 §4.2).
 */
import type { MultiplexedStream } from './multiplexed.ts';

/** What a client must take within the bound for a stalled answer. */
export const pieceBytesMax = 16_384;

/** @param onProgress the client has taken a piece, or its window has room for it */
export function writePieces(stream: MultiplexedStream, bytes: Uint8Array, onProgress: () => void): void {
  let at = 0;
  const next = (error?: Error | null): void => {
    if (error != null || stream.closed || stream.destroyed) return;
    if (at > 0) onProgress();
    const piece = bytes.subarray(at, at + pieceBytesMax);
    at += piece.length;
    if (at < bytes.length) stream.write(piece, next);
    else stream.end(piece);
  };
  next();
}
