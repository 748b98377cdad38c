/**
 * Bounds of everything that a connection can make the server hold or wait for (§8; design §7). The values come from
 * the settings table; the defaults below are for whoever mounts the listener without it.
 */

export type ServerLimits = {
  /** Open connections; how one that comes then is treated is said in connection-shares.ts. */
  readonly connectionsMax: number;
  /** Of one address (IPv6: of one /64); 0 sets no limit. */
  readonly connectionsPerAddressMax: number;
  /** Accepted beyond these bounds, for health and administrators alone. */
  readonly connectionsReservedMax: number;
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
  /** Of one principal, and of one address without a principal; then 429. 0 sets no limit. */
  readonly streamsPerPrincipalMax: number;
  readonly streamsPerAddressMax: number;
  /** That administrators may open beyond `streamsMax`. */
  readonly streamsReservedMax: number;
  /** What may wait in memory for a slow reader of a stream, who is then cut off. */
  readonly streamBufferBytesMax: number;
  /**
   * On draining, a connection that was answered less than this long ago stays open for a request that may already be
   * on its way; older ones are closed at once.
   */
  readonly drainIdleMs: number;
  /** Streams that a client may have open at once on an HTTP/2 connection; a further one is reset with REFUSED_STREAM. */
  readonly http2StreamsMax: number;
  /** What a client may send on one stream, and on all of a connection, before it is read. */
  readonly http2StreamWindowBytesMax: number;
  readonly http2ConnectionWindowBytesMax: number;
  /** Streams that a client may reset, on average; `http2ResetsBurstSeconds` times as many at once. */
  readonly http2ResetsPerSecondMax: number;
  /** For the preface of HTTP/2 after an upgrade, and for the first octets that tell the protocol in cleartext. */
  readonly h2cTimeoutMs: number;
  /** Content of a request that asks for h2c; with more it is answered over HTTP/1.1. */
  readonly h2cContentBytesMax: number;
  /** Open WebSockets; a further one is answered 503. */
  readonly realtimeSocketsMax: number;
  /** Of one principal, and of one address without a principal; then 429. 0 sets no limit. */
  readonly realtimeSocketsPerPrincipalMax: number;
  readonly realtimeSocketsPerAddressMax: number;
  /** That administrators may open beyond `realtimeSocketsMax`. */
  readonly realtimeSocketsReservedMax: number;
  /** Between two pings of a WebSocket; who answered none until the next is cut. */
  readonly realtimePingMs: number;
  /** A longer message closes with 1009. */
  readonly realtimeMessageBytesMax: number;
  /** What may wait for a slow client, who is then closed with 1013. */
  readonly realtimeBufferBytesMax: number;
  /** For a client to answer the end of a WebSocket. */
  readonly realtimeCloseMs: number;
  readonly realtimeCompression: 'on' | 'off';
  /** Shorter messages are sent uncompressed. */
  readonly realtimeCompressionBytesMin: number;
};

/** Of resets on an HTTP/2 connection: as nghttp2 has it, 33 a second and a thousand at once. */
export const http2ResetsBurstSeconds = 30;
/**
 * HTTP/2 counts 32 octets more for each field (RFC 9113 §6.5.2). Up to this many times `fieldsBytesMax` is taken, so that what
 * is too long for the program is answered 431, as over HTTP/1.1, and not reset.
 */
export const http2HeaderListFactor = 4;
/** Entries of one SETTINGS frame; PINGs of ours without an answer. */
export const http2SettingsMax = 32;
export const http2PingsMax = 4;
/** Frames that make no sense, and streams that are refused at their beginning, on one connection. */
export const http2InvalidFramesMax = 100;
export const http2RejectedStreamsMax = 100;
/** What one HTTP/2 connection may hold; beyond it new streams are refused. Holds 250 answers of 256 KiB that wait. */
export const http2MemoryMebibytesMax = 64;
/** Shorter content and shorter answers are not counted against the memory budget: as many as there are connections are small. */
export const uncountedBytesMax = 4 * 1024;
/** What an answer that waits takes besides its octets: the stream or socket, its request and its queues. An estimate. */
export const waitingAnswerBytes = 8 * 1024;
/** Longer text is sent as octets, which the network needs no further copy of. */
export const textBytesMax = 64 * 1024;

export const defaultServerLimits: ServerLimits = {
  connectionsMax: 10_000,
  connectionsPerAddressMax: 2_000,
  connectionsReservedMax: 100,
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
  streamsPerPrincipalMax: 100,
  streamsPerAddressMax: 100,
  streamsReservedMax: 20,
  streamBufferBytesMax: 262_144,
  drainIdleMs: 250,
  http2StreamsMax: 250,
  http2StreamWindowBytesMax: 262_144,
  http2ConnectionWindowBytesMax: 1_048_576,
  http2ResetsPerSecondMax: 33,
  h2cTimeoutMs: 5_000,
  h2cContentBytesMax: 32_768,
  realtimeSocketsMax: 10_000,
  realtimeSocketsPerPrincipalMax: 1_000,
  realtimeSocketsPerAddressMax: 1_000,
  realtimeSocketsReservedMax: 100,
  realtimePingMs: 30_000,
  realtimeMessageBytesMax: 16_384,
  realtimeBufferBytesMax: 262_144,
  realtimeCloseMs: 2_000,
  realtimeCompression: 'on',
  realtimeCompressionBytesMin: 1_024,
};
