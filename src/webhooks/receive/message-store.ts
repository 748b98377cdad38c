/** The store that `receive` writes to: one insert that detects repetitions (§4.14.4). */

export type VerifiedMessage = {
  /** The name of the sender: `name` of the options, or else that of the preset. */
  readonly sender: string;
  /** Identifies the message among those of its sender: at most 256 printable ASCII characters. */
  readonly dedupeKey: string;
  /** At most 200 printable ASCII characters; null: the message has no type. */
  readonly type: string | null;
  /** The signed Unix seconds; null: the sender signs none. */
  readonly timestamp: number | null;
  /** ISO 8601. */
  readonly receivedAt: string;
  readonly contentType: string | null;
  readonly contentEncoding: string | null;
  /** Header fields that the sender's rule keeps, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /** The octets as received. */
  readonly body: Uint8Array;
  /** Returns the body as UTF-8. @throws TypeError if it is not UTF-8 */
  text(): string;
  /** Returns the body as JSON. @throws SyntaxError or TypeError if it is not JSON */
  json(): unknown;
};

export type MessageStore = {
  /**
   * Stores the message unless one with the same `sender` and `dedupeKey` exists, in one atomic step: with a lookup
   * before the insert, two concurrent requests would both pass. `stored` means that the message is durable, because the
   * sender learns it.
   */
  insert(message: VerifiedMessage): InsertOutcome | Promise<InsertOutcome>;
};

export type InsertOutcome = 'stored' | 'duplicate';

/*
 * A store in memory: it remembers recent messages of this process by their keys, and stores no message. For tests, and
 * for receivers that may lose a message; others need a table with a unique key.
 */

export type MemoryStoreOptions = {
  /** Greatest number of remembered messages; the oldest is dropped. Default 10,000. */
  readonly max?: number | undefined;
  /** Time for which a message is remembered. Default 259,200 (three days), the time for which common senders retry. */
  readonly seconds?: number | undefined;
  /** Milliseconds since the epoch; default: the runtime's clock. */
  readonly nowMs?: (() => number) | undefined;
};

const maxDefault = 10_000;
const secondsDefault = 3 * 24 * 3600;

/** @throws TypeError for bounds that are not positive numbers */
export function memoryStore(options: MemoryStoreOptions = {}): MessageStore {
  const { max = maxDefault, seconds = secondsDefault, nowMs = Date.now } = options;
  if (!(max >= 1) || !(seconds > 0))
    throw new TypeError('max and seconds of memoryStore must be positive numbers');
  /** Time of receipt by key, the oldest first. */
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
