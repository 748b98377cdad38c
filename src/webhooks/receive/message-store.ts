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
