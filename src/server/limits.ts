/**
 * Bounds of everything that a connection can make the server hold or wait for (§8; design §7). The values come from
 * the settings table; the defaults below are for whoever mounts the listener without it.
 */

export type ServerLimits = {
  /** Open connections; a further one is closed as soon as it is accepted. */
  readonly connectionsMax: number;
  /** Request line and header section together; then 431, or 414 where the target alone is longer. */
  readonly fieldsBytesMax: number;
  /** From the first octet of a request (or the connection's start) to the end of its header section; then 408. */
  readonly headersTimeoutMs: number;
  /** From the first octet of a request to the last of its content; then 408. */
  readonly requestTimeoutMs: number;
  /** Between two requests on a connection. */
  readonly keepAliveTimeoutMs: number;
  /** From the start of reading content to its end; then 408. */
  readonly contentTimeoutMs: number;
  /** After this time of reading, content must have come at `contentBytesPerSecondMin` on average; else 408. */
  readonly contentGraceMs: number;
  readonly contentBytesPerSecondMin: number;
  /** Content that nobody reads and that is thrown away, so that the client sees an early answer. */
  readonly unreadContentBytesMax: number;
  /** How long such content is waited for after the answer, before the connection is cut. */
  readonly unreadContentTimeoutMs: number;
  /** Requests of one connection that may wait for their answers; the connection closes after the last of them. */
  readonly pipelinedRequestsMax: number;
  /** An answer of which the client takes nothing for this long is given up. */
  readonly answerStallTimeoutMs: number;
  /** Open event streams; a further one is answered 503. */
  readonly streamsMax: number;
  /** What may wait in memory for a slow reader of a stream, who is then cut off. */
  readonly streamBufferBytesMax: number;
  /**
   * On draining, a connection that was answered less than this long ago stays open for a request that may already be
   * on its way; older ones are closed at once.
   */
  readonly drainIdleMs: number;
};

export const defaultServerLimits: ServerLimits = {
  connectionsMax: 10_000,
  fieldsBytesMax: 16_384,
  headersTimeoutMs: 15_000,
  requestTimeoutMs: 60_000,
  keepAliveTimeoutMs: 65_000,
  contentTimeoutMs: 30_000,
  contentGraceMs: 5_000,
  contentBytesPerSecondMin: 500,
  unreadContentBytesMax: 65_536,
  unreadContentTimeoutMs: 2_000,
  pipelinedRequestsMax: 100,
  answerStallTimeoutMs: 30_000,
  streamsMax: 1_000,
  streamBufferBytesMax: 262_144,
  drainIdleMs: 250,
};
