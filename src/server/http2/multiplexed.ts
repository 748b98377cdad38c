/**
 * The interface of a stream of a multiplexed connection (RFC 9113 §5), on which exchange, content and responses are
 * built. `ServerHttp2Stream` of node:http2 implements it; so must an adapter for HTTP/3, whose streams have the same
 * life cycle (RFC 9114 §4.1).
 */
import type { Duplex } from 'node:stream';

/** Half-open: the end of the client's octets does not end the other direction. */
export type MultiplexedStream = Duplex & {
  /** The client sent no content. */
  readonly endAfterHeaders: boolean;
  readonly headersSent: boolean;
  /** It was reset before both sides ended. */
  readonly aborted: boolean;
  readonly closed: boolean;
  /** Sends the final header section: name, value ..., `:status` first. Throws if the stream is closed. */
  respond(fields: readonly string[], options?: { readonly endStream?: boolean }): void;
  /** Sends an interim one (1xx). */
  additionalHeaders(fields: Record<string, string | number>): void;
  /** Sends RST_STREAM; with NO_ERROR, after everything that was written. */
  close(code: number): void;
};

export const noError = 0x0;
export const refusedStream = 0x7;
export const cancelled = 0x8;
export const connectError = 0xa;
