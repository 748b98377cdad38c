/**
 * The seam under everything that answers on a stream of a multiplexed connection (RFC 9113 §5): exchange, content and
 * answers lean on this type alone. `ServerHttp2Stream` of node:http2 fulfils it as it is; an adapter for HTTP/3, whose
 * streams have the same life (RFC 9114 §4.1), has to.
 */
import type { Duplex } from 'node:stream';

/** Half-open: the end of what the client sends is not the end of what is sent to it. */
export type MultiplexedStream = Duplex & {
  /** The client had nothing to send after its header section. */
  readonly endAfterHeaders: boolean;
  /** A final header section was sent. */
  readonly headersSent: boolean;
  /** It was broken off before both sides had ended. */
  readonly aborted: boolean;
  /** It ended, or is about to: nothing more can be sent. */
  readonly closed: boolean;
  /** Sends the final header section: name, value ..., `:status` first. Throws where the stream is closed. */
  respond(fields: readonly string[], options?: { readonly endStream?: boolean }): void;
  /** Sends an interim one (1xx). */
  additionalHeaders(fields: Record<string, string | number>): void;
  /** RST_STREAM; with NO_ERROR after what was written has gone out. */
  close(code: number): void;
};

/** Error codes of RFC 9113 §7. */
export const noError = 0x0;
export const refusedStream = 0x7;
export const cancelled = 0x8;
export const connectError = 0xa;
