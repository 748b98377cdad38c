/**
 * Frames that the server sends (RFC 6455 §5.2), as octets for one write. A message to many WebSockets is framed once a
 * turn, and compressed once for each window size.
 */
import { constants, deflateRawSync } from 'node:zlib';
import { Sender } from './ws-exports.ts';

/**
 * Compression runs in the turn: 0.2 ms for 1 KiB of JSON, 2 ms for 64 KiB. A longer message would delay everything
 * else, and is sent uncompressed.
 */
const compressedBytesMax = 64 * 1024;
const flushTailBytes = 4;
const noOctets = new Uint8Array();
const opcodes = { text: 1, close: 8, ping: 9, pong: 10 } as const;

export class Frames {
  readonly #compressionBytesMin: number;
  #message: string | Uint8Array | undefined;
  #octets: Uint8Array = noOctets;
  #plain: Buffer | undefined;
  readonly #deflated = new Map<number, Buffer>();

  /** @param compressionBytesMin shorter messages are sent uncompressed */
  constructor(compressionBytesMin: number) {
    this.#compressionBytesMin = compressionBytesMin;
  }

  /**
   * The frame of a text message. Octets must be UTF-8, and must not change until the turn is over.
   * @param sentWindowBits undefined: compression is not agreed
   */
  ofText(message: string | Uint8Array, sentWindowBits: number | undefined): Buffer {
    if (message !== this.#message) this.#begin(message);
    if (sentWindowBits !== undefined && this.#isWorthCompressing()) {
      return this.#deflated.get(sentWindowBits) ?? this.#deflate(sentWindowBits);
    }
    this.#plain ??= frame(opcodes.text, this.#octets);
    return this.#plain;
  }

  #begin(message: string | Uint8Array): void {
    // The microtask of an earlier frame in this turn drops the kept one.
    if (this.#message === undefined) queueMicrotask(this.#forget);
    this.#message = message;
    this.#octets = typeof message === 'string' ? Buffer.from(message) : message;
    this.#plain = undefined;
    this.#deflated.clear();
  }

  #isWorthCompressing(): boolean {
    const { length } = this.#octets;
    return length >= this.#compressionBytesMin && length <= compressedBytesMax;
  }

  #deflate(windowBits: number): Buffer {
    const deflated = deflateRawSync(this.#octets, {
      finishFlush: constants.Z_SYNC_FLUSH,
      level: constants.Z_BEST_SPEED,
      windowBits,
    });
    const payload = deflated.subarray(0, deflated.length - flushTailBytes);
    const isShorter = payload.length < this.#octets.length;
    const framed = isShorter ? frame(opcodes.text, payload, true) : frame(opcodes.text, this.#octets);
    this.#deflated.set(windowBits, framed);
    return framed;
  }

  readonly #forget = (): void => {
    this.#message = undefined;
    this.#octets = noOctets;
    this.#plain = undefined;
    this.#deflated.clear();
  };
}

const reasonBytesMax = 123;

/** @param code 1005: without a code (RFC 6455 §7.4.1) */
export function closeFrame(code: number, reason: string): Buffer {
  if (code === 1005) return frame(opcodes.close, new Uint8Array());
  const octets = Buffer.from(reason);
  let end = Math.min(octets.length, reasonBytesMax);
  // Not within a character.
  while (end < octets.length && end > 0 && ((octets[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  const payload = Buffer.allocUnsafe(2 + end);
  payload.writeUInt16BE(code, 0);
  octets.copy(payload, 2, 0, end);
  return frame(opcodes.close, payload);
}

export function pongFrame(payload: Uint8Array): Buffer {
  return frame(opcodes.pong, payload);
}

export const pingFrame: Buffer = frame(opcodes.ping, new Uint8Array());

function frame(opcode: number, payload: Uint8Array, rsv1 = false): Buffer {
  return Buffer.concat(Sender.frame(payload, { fin: true, opcode, mask: false, readOnly: true, rsv1 }));
}

const codes: { readonly [code: string]: number | undefined } = {
  WS_ERR_INVALID_UTF8: 1007,
  // Too many fragments of one message, or pieces of a frame.
  WS_ERR_TOO_MANY_BUFFERED_PARTS: 1009,
  WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH: 1009,
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: 1009,
  // From zlib: the message exceeds its limit.
  ERR_BUFFER_TOO_LARGE: 1009,
};

/**
 * The status code for a protocol error of the client (RFC 6455 §7.4.1), from the receiver's error: 1007 for invalid
 * compressed data, 1002 for all unlisted ones.
 */
export function failureCodeOf(error: Error & { readonly code?: unknown }): number {
  const { code } = error;
  if (typeof code !== 'string') return 1002;
  return codes[code] ?? (code.startsWith('Z_') ? 1007 : 1002);
}
