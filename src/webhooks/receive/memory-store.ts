/**
 * A store of messages that forgets: it knows what came lately, in this process, and keeps no message. For tests, and for receivers that may
 * lose one; a table with a unique key is what others need.
 */
import type { MessageStore } from './message-store.ts';

export type MemoryStoreOptions = {
  /** How many messages are known; the oldest is forgotten for another. 10,000 if not said. */
  readonly max?: number | undefined;
  /** How long a message is known. 259,200 (three days) if not said, for which the common senders send again. */
  readonly seconds?: number | undefined;
  /** Milliseconds since the epoch; the runtime's clock if not said. */
  readonly nowMs?: (() => number) | undefined;
};

const maxDefault = 10_000;
const secondsDefault = 3 * 24 * 3600;

/** @throws TypeError for bounds that are no positive numbers */
export function memoryStore(options: MemoryStoreOptions = {}): MessageStore {
  const { max = maxDefault, seconds = secondsDefault, nowMs = Date.now } = options;
  if (!(max >= 1) || !(seconds > 0)) throw new TypeError('max and seconds must be positive numbers');
  /** When each came, the oldest first. */
  const known = new Map<string, number>();

  function forget(now: number): void {
    for (const [key, at] of known) {
      if (known.size <= max && now - at < seconds * 1000) return;
      known.delete(key);
    }
  }

  return {
    insert({ sender, dedupeKey }) {
      const now = nowMs();
      forget(now);
      const key = JSON.stringify([sender, dedupeKey]);
      if (known.has(key)) return 'duplicate';
      known.set(key, now);
      forget(now);
      return 'stored';
    },
  };
}
