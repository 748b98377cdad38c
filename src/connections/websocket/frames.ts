/**
 * Frames that the server sends (RFC 6455 §5.2), each as octets for one write. A message that goes to thousands of WebSockets in one turn
 * is framed once, and compressed once for each size of window: the frame before is kept until the turn is over.
 */
import { constants, deflateRawSync } from 'node:zlib';
import { Sender } from './ws-parts.ts';

/** Compressing is done in the turn: 0.2 ms for 1 KiB of JSON, 2 ms for 64 KiB. A longer message would hold everybody up, and goes as it is. */
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

  /** @param compressionBytesMin shorter messages are sent as they are */
  constructor(compressionBytesMin: number) {
    this.#compressionBytesMin = compressionBytesMin;
  }

  /**
   * The frame of a text message. Octets must be UTF-8, and stay as they are until the turn is over.
   *
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
    // One that is kept already is let go by the microtask that its predecessor of this turn asked for.
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
  // Never within a character.
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
