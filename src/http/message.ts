/**
 * A request and a response as values: the border between the rooms that know sockets (`server/`) and
 * those that know conduct. Nothing here does I/O; `content` is read through a function the server supplies.
 */
import type { ProblemCode } from './problem-registry.ts';
import type { RequestFields } from './request-fields.ts';

export type Request = {
  readonly method: string;
  /** The request target as it came (RFC 9112 §3.2); over HTTP/2 rebuilt from the pseudo-headers. */
  readonly target: string;
  /** `1.0`, `1.1` or `2.0`. */
  readonly version: string;
  readonly fields: RequestFields;
  /** Name, value, name, value ... as received. */
  readonly rawFields: readonly string[];
  /**
   * Reads the whole content as transferred (still content-coded), at most `bytesMax` octets.
   * May be called once. Sends 100 (Continue) first where the client waits for it.
   */
  readonly readContent: (bytesMax: number) => Promise<ReceivedContent>;
  /** Address of the peer, for logs and limits. */
  readonly peer: string;
  /** Identifies the request in the log and in error answers. */
  readonly id: string;
};

export type ReceivedContent =
  | { readonly ok: true; readonly bytes: Uint8Array }
  /** `content_too_large`, `request_timeout`; or `content_malformed` when the client went away or broke the framing. */
  | { readonly ok: false; readonly code: ProblemCode };

export type Response = {
  readonly status: number;
  /** Name, value, name, value ...; the server adds Date and connection fields only. */
  readonly fields: readonly string[];
  /** Null: no content, and no Content-Length either for 204 and 304. A string is sent as UTF-8. */
  readonly content: string | Uint8Array | null | ContentStream;
  /** For HEAD: the fields are those of GET, the content is not sent. */
  readonly headOnly?: boolean;
  /** The connection cannot be used after this answer. */
  readonly close?: boolean;
  /** For the log and metrics: the pattern of the resource, and the code of a refusal. Never sent. */
  readonly route?: string;
  readonly code?: ProblemCode | undefined;
};

/** Content that is produced while it is sent, such as text/event-stream. */
export type ContentStream = {
  /** Starts producing; the returned function is called once when the client is gone or the server drains. */
  readonly open: (sink: ContentSink) => () => void;
};

export type ContentSink = {
  /** False: the client reads slowly; wait for `onReady` before writing more. */
  write(text: string): boolean;
  onReady(listener: () => void): void;
  end(): void;
};

/** Answers one request. Synchronous where nothing had to be waited for. */
export type Handler = (request: Request) => Response | Promise<Response>;
