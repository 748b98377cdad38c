/**
 * Counts the frames that a server sends on a WebSocket, at the least cost: it reads the headers of frames and skips what they hold
 * (RFC 6455 §5.2). It checks nothing and takes no extensions.
 */

const headerBytesMax = 10;
const textOpcode = 1;
export const closeOpcode = 8;
export const pingOpcode = 9;

export type FrameCount = {
  /** Text frames whose last octet has come. */
  readonly texts: number;
  /** Length of the last of them. */
  readonly textBytes: number;
  /** @returns the opcode of a control frame that came, if one did */
  take(bytes: Uint8Array, from: number, to: number): number;
};

export class FrameCounter implements FrameCount {
  texts = 0;
  textBytes = 0;
  readonly #header = new Uint8Array(headerBytesMax);
  #headerBytes = 0;
  /** Of the frame under way, what has not come. */
  #left = 0;
  #opcode = 0;
  #bytes = 0;

  take(bytes: Uint8Array, from: number, to: number): number {
    let control = 0;
    let at = from;
    while (at < to) {
      if (this.#left === 0) {
        this.#header[this.#headerBytes] = bytes[at] ?? 0;
        this.#headerBytes += 1;
        at += 1;
        if (!this.#isHeaderWhole()) continue;
        this.#headerBytes = 0;
        this.#left = this.#bytes;
      }
      const taken = Math.min(this.#left, to - at);
      this.#left -= taken;
      at += taken;
      if (this.#left > 0) break;
      if (this.#opcode >= closeOpcode) control = this.#opcode;
      if (this.#opcode !== textOpcode) continue;
      this.texts += 1;
      this.textBytes = this.#bytes;
    }
    return control;
  }

  #isHeaderWhole(): boolean {
    const header = this.#header;
    if (this.#headerBytes < 2) return false;
    const short = (header[1] ?? 0) & 0x7f;
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
    if (this.#headerBytes < 2 + lengthBytes) return false;
    this.#opcode = (header[0] ?? 0) & 0x0f;
    this.#bytes = short;
    if (lengthBytes === 0) return true;
    this.#bytes = 0;
    for (let at = 2; at < 2 + lengthBytes; at += 1) this.#bytes = this.#bytes * 256 + (header[at] ?? 0);
    return true;
  }
}
