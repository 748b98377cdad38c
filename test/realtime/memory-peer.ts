/** The client of a conversation, in memory: what it was sent, how much of that it has taken, and how it ended. */
import type { ConversationListener, ConversationPeer } from '../../src/http/message.ts';
import { ampleMemory } from '../memory/ample.ts';

export type Frame = Readonly<Record<string, unknown>>;

export type Closed = { readonly code: number; readonly reason: string };

export class MemoryPeer implements ConversationPeer {
  readonly memory = ampleMemory;
  readonly frames: Frame[] = [];
  closed: Closed | undefined;
  /** What is sent after it was closed: nobody should. */
  late = 0;
  listener: ConversationListener | undefined;
  /** Octets above which it says that much waits. */
  readonly #fullBytes: number;
  /** Takes everything at once. */
  #isQuick = true;
  #waiting = 0;
  #onReady: () => void = () => undefined;
  readonly #watches = new Set<() => void>();

  constructor(fullBytes = 64 * 1024) {
    this.#fullBytes = fullBytes;
  }

  send(text: string | Uint8Array): boolean {
    if (this.closed !== undefined) this.late += 1;
    const whole = typeof text === 'string' ? text : Buffer.from(text).toString('utf8');
    this.frames.push(JSON.parse(whole) as Frame);
    if (!this.#isQuick) this.#waiting += Buffer.byteLength(whole);
    for (const look of this.#watches) look();
    return this.#waiting <= this.#fullBytes;
  }

  waitingBytes(): number {
    return this.#waiting;
  }

  onReady(listener: () => void): void {
    this.#onReady = listener;
  }

  close(code: number, reason: string): void {
    this.closed ??= { code, reason };
    this.listener?.onClosed();
    for (const look of this.#watches) look();
  }

  /** Takes nothing any more. */
  stall(): void {
    this.#isQuick = false;
  }

  /** Takes what waits, and goes on as slowly. */
  take(): void {
    this.#waiting = 0;
    this.#onReady();
  }

  /** Takes what waits, and everything at once from now on. */
  hurry(): void {
    this.#isQuick = true;
    this.take();
  }

  say(frame: unknown): void {
    this.listener?.onMessage(typeof frame === 'string' ? frame : JSON.stringify(frame));
  }

  /** Ids of the events that it was sent, in order. */
  get events(): readonly string[] {
    return this.frames.flatMap(({ event }) => (event === undefined ? [] : [(event as { id: string }).id]));
  }

  /** Resolves when the condition holds, which is looked at after each frame and the end. */
  when(holds: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (!holds()) return;
        this.#watches.delete(look);
        resolve();
      };
      this.#watches.add(look);
      look();
    });
  }
}
