/**
 * Frames of WebSockets, over `ws`: the parts of it that this folder uses, the frames that the server sends, and what all
 * WebSockets of a server share. @types/ws describes neither the receiver nor the extensions, though the package exports
 * both. Its WebSocket class is not used: it needs HTTP/1.1, and keeps a sender for each socket.
 */

import type { Writable } from 'node:stream';
import { constants, deflateRawSync } from 'node:zlib';
import * as ws from 'ws';

/** Reads frames and assembles messages (RFC 6455 §5); emits `message`, `ping`, `pong`, `conclude`, `error`. */
export type Receiver = Writable & {
  on(event: 'message', listener: (data: Buffer, isBinary: boolean) => void): Receiver;
  on(event: 'ping' | 'pong', listener: (data: Buffer) => void): Receiver;
  on(event: 'conclude', listener: (code: number, reason: Buffer) => void): Receiver;
};

/** The receiver's permessage-deflate extension, called once for each frame of a compressed message. */
export type MessageInflater = {
  /** Calls back in a later turn: the receiver does not support a synchronous call. */
  decompress(data: Buffer, fin: boolean, callback: (error: Error | null, data?: Buffer) => void): void;
};

type ExtensionParameters = { readonly [name: string]: string | number | boolean };
type Offers = { readonly [extension: string]: readonly object[] };

type WsExports = {
  readonly Receiver: new (options: {
    readonly allowSynchronousEvents: boolean;
    readonly extensions: { readonly 'permessage-deflate'?: MessageInflater };
    readonly isServer: boolean;
    readonly maxBufferedChunks: number;
    readonly maxFragments: number;
    readonly maxPayload: number;
  }) => Receiver;
  readonly Sender: {
    frame(
      data: Uint8Array,
      options: { fin: boolean; opcode: number; mask: boolean; readOnly: boolean; rsv1: boolean },
    ): readonly Uint8Array[];
  };
  readonly PerMessageDeflate: new (options: {
    readonly isServer: boolean;
    readonly serverNoContextTakeover: boolean;
    readonly clientNoContextTakeover: boolean;
  }) => { accept(offers: readonly object[]): ExtensionParameters };
  readonly extension: {
    parse(value: string): Offers;
    format(extensions: { readonly [extension: string]: readonly object[] }): string;
  };
};

export const { Receiver, Sender, PerMessageDeflate, extension } = ws as unknown as WsExports;

// Frames that the server sends (RFC 6455 §5.2), as octets for one write. A message to many WebSockets is framed once a turn, and
// compressed once for each window size.

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

// State that all WebSockets of a server share: the frame of a message to many of them, the turn in which it is written, and one timer for
// all pings (RFC 6455 §5.5.2). The timer walks round a wheel of slots, so that ten thousand pings go out a hundred at a time, and stops
// without WebSockets.

/** Ten thousand WebSockets and pings each 30 s: a hundred pings each 300 ms. */
const slotsMax = 100;
/** A shorter slot would be inexact. */
const slotMsMin = 10;

type Pinged = {
  beat(): void;
};

export type Fleet = {
  readonly frames: Frames;
  readonly turn: Turn;
  /** Calls `beat` each `realtimePingMs`, the first time sooner, until the returned function is called. */
  readonly ping: (socket: Pinged) => () => void;
};

export function createFleet(limits: {
  readonly realtimePingMs: number;
  readonly realtimeCompressionBytesMin: number;
}): Fleet {
  const wheel = new PingWheel(limits.realtimePingMs);
  return {
    frames: new Frames(limits.realtimeCompressionBytesMin),
    turn: new Turn(),
    ping: (socket) => wheel.add(socket),
  };
}

class PingWheel {
  readonly #slots: readonly Set<Pinged>[];
  readonly #slotMs: number;
  #next = 0;
  #at = 0;
  #count = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(pingMs: number) {
    const slots = Math.max(1, Math.min(slotsMax, Math.floor(pingMs / slotMsMin)));
    this.#slotMs = pingMs / slots;
    this.#slots = Array.from({ length: slots }, () => new Set<Pinged>());
  }

  add(socket: Pinged): () => void {
    // In turn: WebSockets that open together, as after a restart, are spread over the whole round, the first of them to its end.
    if (this.#count === 0) this.#next = this.#at + 1;
    this.#next = (this.#next + this.#slots.length - 1) % this.#slots.length;
    const slot = this.#slots[this.#next];
    slot?.add(socket);
    this.#count += 1;
    this.#timer ??= setInterval(this.#turn, this.#slotMs).unref();
    return () => {
      if (slot?.delete(socket) !== true) return;
      this.#count -= 1;
      if (this.#count > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  readonly #turn = (): void => {
    this.#at = (this.#at + 1) % this.#slots.length;
    for (const socket of this.#slots[this.#at] ?? []) socket.beat();
  };
}

/**
 * Collects the writes of one turn of the event loop, so that a stream gets them in one system call: a call costs 5 to
 * 10 µs, whatever it carries, and is most of what a message costs. Nothing waits longer than the turn.
 */
class Turn {
  #corked: Writable[] = [];

  /** Corks the stream until the end of the turn, or until it is uncorked sooner. */
  gather(stream: Writable): void {
    if (stream.writableCorked > 0) return;
    stream.cork();
    if (this.#corked.push(stream) === 1) queueMicrotask(this.#release);
  }

  readonly #release = (): void => {
    const corked = this.#corked;
    this.#corked = [];
    for (const stream of corked) stream.uncork();
  };
}
