/**
 * What all WebSockets of a server have together: the frame of a message that goes to many of them, the turn in
 * which it goes out, and one timer that pings them all
 * (RFC 6455 §5.5.2). The timer walks round a wheel of slots, so that ten thousand pings are a hundred at a time, and stands still while
 * nobody is there.
 */
import { Frames } from './frames.ts';
import { Turn } from './turn.ts';

/** Ten thousand WebSockets and pings each 30 s: a hundred pings each 300 ms. */
const slotsMax = 100;
/** A shorter turn of the wheel would be inexact anyway. */
const slotMsMin = 10;

export type Pinged = {
  /** A ping is due. */
  beat(): void;
};

export type Fleet = {
  readonly frames: Frames;
  readonly turn: Turn;
  /** From now on `beat` is called each `realtimePingMs`, at first sooner; the returned function ends that. */
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
    // In turn: those that come together, as after a restart, are spread over the whole round.
    this.#next = (this.#next + 1) % this.#slots.length;
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
