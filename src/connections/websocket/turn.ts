/**
 * Gathers what is written within one turn of the program, so that a stream takes it with one call of the system: a call costs 5 to 10 µs,
 * whatever it carries, and is most of what a message costs. Nothing waits longer than the turn.
 */
import type { Writable } from 'node:stream';

export class Turn {
  #corked: Writable[] = [];

  /** What is written to it from now on goes out at the end of the turn, or when it is uncorked sooner. */
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
