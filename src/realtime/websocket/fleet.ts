/**
 * State that all WebSockets of a server share: the frame of a message to many of them, the turn in which it is written, and
 * one timer for all pings (RFC 6455 §5.5.2). The timer walks round a wheel of slots, so that ten thousand pings go out
 * a hundred at a time, and stops without WebSockets.
 */

import type { Writable } from 'node:stream';
import { Frames } from './frames.ts';

/** Ten thousand WebSockets and pings each 30 s: a hundred pings each 300 ms. */
const slotsMax = 100;
/** A shorter slot would be inexact. */
const slotMsMin = 10;

export type Pinged = {
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
