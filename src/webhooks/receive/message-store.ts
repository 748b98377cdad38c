/** What `receive` hands over, and to what: one insert that finds repetitions (§4.14.4). */

/** A message that its sender signed. */
export type VerifiedMessage = {
  /** The name of the sender: `name` of the options, or else that of the preset. */
  readonly sender: string;
  /** What tells it apart among those of its sender: at most 256 printable ASCII characters. */
  readonly dedupeKey: string;
  /** At most 200 printable ASCII characters; null where it says none. */
  readonly type: string | null;
  /** The Unix seconds that were signed with it; null where the sender signs none. */
  readonly timestamp: number | null;
  /** ISO 8601. */
  readonly receivedAt: string;
  readonly contentType: string | null;
  readonly contentEncoding: string | null;
  /** Header fields that the sender's rule keeps, by name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The octets as they came. */
  readonly body: Uint8Array;
  /** The body as UTF-8. @throws TypeError where it is none */
  text(): string;
  /** The body as JSON. @throws SyntaxError or TypeError where it is none */
  json(): unknown;
};

export type MessageStore = {
  /**
   * Keeps the message unless there is one with its `sender` and `dedupeKey`, in one atomic step: no look before the insert, which two
   * requests at once would both pass. When it says `stored` the message is durable, since the sender is told so.
   */
  insert(message: VerifiedMessage): InsertOutcome | Promise<InsertOutcome>;
};

export type InsertOutcome = 'stored' | 'duplicate';

/*
 * A store of messages that forgets: it knows what came lately, in this process, and keeps no message. For tests, and for receivers that may
 * lose one; a table with a unique key is what others need.
 */

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
