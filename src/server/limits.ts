/**
 * Limits on everything that a connection can make the server hold or wait for (§8), with the meanings of the settings
 * of the same names (docs/reference/settings.md). A listener that gets no limits uses the defaults below.
 * The question `target_fits` of http/conduct/request-nodes.ts limits the length of a request target.
 */

export type ServerLimits = {
  readonly connectionsMax: number;
  readonly connectionsPerAddressMax: number;
  readonly connectionsReservedMax: number;
  readonly fieldsBytesMax: number;
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  readonly contentTimeoutMs: number;
  readonly contentGraceMs: number;
  readonly contentBytesPerSecondMin: number;
  readonly unreadContentBytesMax: number;
  readonly unreadContentTimeoutMs: number;
  readonly pipelinedRequestsMax: number;
  readonly answerStallTimeoutMs: number;
  readonly streamsMax: number;
  readonly streamsPerPrincipalMax: number;
  readonly streamsPerAddressMax: number;
  readonly streamsReservedMax: number;
  readonly streamBufferBytesMax: number;
  readonly drainIdleMs: number;
  readonly http2StreamsMax: number;
  readonly http2StreamWindowBytesMax: number;
  readonly http2ConnectionWindowBytesMax: number;
  readonly http2ResetsPerSecondMax: number;
  readonly h2cTimeoutMs: number;
  readonly h2cContentBytesMax: number;
  readonly realtimeSocketsMax: number;
  readonly realtimeSocketsPerPrincipalMax: number;
  readonly realtimeSocketsPerAddressMax: number;
  readonly realtimeSocketsReservedMax: number;
  readonly realtimePingMs: number;
  readonly realtimeMessageBytesMax: number;
  readonly realtimeBufferBytesMax: number;
  readonly realtimeCloseMs: number;
  readonly realtimeCompression: 'on' | 'off';
  readonly realtimeCompressionBytesMin: number;
};

/** Burst of resets on an HTTP/2 connection; nghttp2's default is 33 a second and a thousand at once. */
export const http2ResetsBurstSeconds = 30;
/**
 * HTTP/2 counts 32 octets more for each field (RFC 9113 §6.5.2). nghttp2 accepts up to this many times
 * `fieldsBytesMax`, so that a header section over the limit is answered 431, as over HTTP/1.1, and not reset.
 */
export const http2HeaderListFactor = 4;
/** Entries of one SETTINGS frame; our PINGs without an acknowledgement. */
export const http2SettingsMax = 32;
export const http2PingsMax = 4;
/** Invalid frames, and streams that are refused when they open, on one connection. */
export const http2InvalidFramesMax = 100;
export const http2RejectedStreamsMax = 100;
/** Memory of one HTTP/2 connection; beyond it new streams are refused. Holds 250 waiting responses of 256 KiB. */
export const http2MemoryMebibytesMax = 64;
/** Unread content of at most this length is discarded before the next request; after longer one the connection closes. */
export const keptContentBytesMax = 64 * 1024;
/** Shorter content and shorter responses are not counted in the memory budget. */
export const uncountedBytesMax = 4 * 1024;
/** Memory of a waiting response besides its octets: the stream or socket, its request and its queues. An estimate. */
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
  unreadContentBytesMax: 134_217_728,
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
  realtimePingMs: 25_000,
  realtimeMessageBytesMax: 16_384,
  realtimeBufferBytesMax: 262_144,
  realtimeCloseMs: 2_000,
  realtimeCompression: 'on',
  realtimeCompressionBytesMin: 1_024,
};
