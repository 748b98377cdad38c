/**
 * Request and response as values: the boundary between the folders that know sockets (`server/`) and those that know conduct. Nothing here
 * does I/O; the server supplies the function that reads `content`.
 */
import type { Problem } from './problem.ts';
import type { ProblemCode } from './problem-registry.ts';
import type { RequestFields } from './request-fields.ts';
import type { Extent } from './syntax/range.ts';

/** The methods that this server knows; any other is answered 501 (RFC 9110 §9.1). */
export const knownMethods: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'QUERY',
  'TRACE',
  'CONNECT',
]);

/** The methods of all resources together, for what is about no resource; TRACE is added if it is enabled. */
export const serverMethods: readonly string[] = [...knownMethods].filter(
  (method) => method !== 'CONNECT' && method !== 'TRACE',
);

export type Request = {
  readonly method: string;
  /** The request target as received (RFC 9112 §3.2); over HTTP/2, rebuilt from the pseudo-headers. */
  readonly target: string;
  readonly version: string;
  readonly fields: RequestFields;
  /** Name, value, name, value ... as received. */
  readonly rawFields: readonly string[];
  /**
   * `:protocol` of an extended CONNECT (RFC 8441 §4), which becomes the GET of the equivalent Upgrade over HTTP/1.1; undefined for every
   * other request, where the fields name the protocol.
   */
  readonly protocol?: string | undefined;
  /**
   * Reads the whole content as transferred (still content-coded), at most `bytesMax` octets. May be called once. Sends 100 (Continue) first
   * if the client waits for it.
   */
  readonly readContent: (bytesMax: number) => Promise<ReceivedContent>;
  /**
   * Opens the content, in place of `readContent`, to be taken as it arrives, at most `bytesMax` octets. Absent for requests that the program
   * makes or repeats, whose content is there.
   */
  openContent?(bytesMax: number): Promise<OpenedContent>;
  /** Sends an interim response (1xx). Absent if no client waits, and for protocols without them. */
  inform?(status: number, fields: readonly string[]): void;
  /**
   * Calls back if the client leaves before the response; returns a function that removes the listener. Absent if no client waits, as for a
   * stored request.
   */
  onGone?(listener: () => void): () => void;
  /** The client has left. Absent if no client waits. */
  readonly isGone?: boolean;
  /** Address of the peer, for logs and limits. */
  readonly peer: string;
  /** Request id in the log and in error responses. */
  readonly id: string;
  /** Context of the span of this request (W3C Trace Context §3.2), which its events keep. Absent: it is not traced. */
  readonly traceparent?: string | undefined;
  /** The request came over a reserved connection (`connectionsReservedMax`), where only health and administrators are served. */
  readonly reserved?: boolean;
  /** Counts the memory of this request; absent: not counted, as for a request that the program repeats. */
  readonly memory?: RequestMemory;
};

/** The share of one request in the memory budget, released after its response. */
export type RequestMemory = {
  /** Sets the principal that further memory counts against. `isReserved`: an administrator, who may use the reserve. */
  ofPrincipal(id: string, isReserved: boolean): void;
  /** Counts more octets; false if there is no room, and the response must be 503. */
  hold(octets: number): boolean;
  giveBack(octets: number): void;
  /** Octets that one request may make out of less: the whole budget. More would never find room. */
  readonly madeMax: number;
  /**
   * Waits for the room to process content of this length, which takes several times its memory until the response. Undefined: process it now.
   */
  roomToProcess(octets: number): Promise<void> | undefined;
  /** Waits for a turn of the event loop to understand content of this length. Undefined: it is now. */
  nextTurn(octets: number): Promise<void> | undefined;
  /**
   * Waits until this many octets may be made out of less, and holds them until the response; once for each request, before any turn at a row.
   * @param answered octets of the response, where they are known before it is made
   * @throws StoreUnavailable if too much waits already, or there is no room for the response
   */
  makeRoom(octets: number, answered?: number): Promise<void> | undefined;
};

/** The share of a stream or a conversation in the memory budget. */
export type HeldMemory = {
  /** Calls back, at once or later, when there is room for this many more octets, which count from then on. */
  whenRoom(octets: number, go: () => void): void;
  /** Sets the number of octets that are held, besides shared ones. */
  set(octets: number): void;
  /** Sets the shared octets that are held, counted once for all their holders; undefined: none. */
  share(octets: Uint8Array | undefined): void;
};

export type ReceivedContent =
  | { readonly ok: true; readonly bytes: Uint8Array }
  /** `content_too_large`, `request_timeout`; or `content_malformed` if the client left or broke the framing. */
  | { readonly ok: false; readonly code: ProblemCode; readonly message?: string };

export type OpenedContent =
  | { readonly ok: true; readonly content: ArrivingContent }
  | Exclude<ReceivedContent, { ok: true }>;

/**
 * Content that is taken as it arrives, once. A slow reader slows the client down. A failure rejects with `ContentFailed`, after what
 * arrived before it. What is left when the iterator returns is unread content. A chunk has its octets until the next one is asked for: who
 * needs them longer copies them.
 */
export type ArrivingContent = AsyncIterable<Uint8Array>;

/** Why no more of the content comes: a refusal of `ReceivedContent`. */
export class ContentFailed extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.message ?? problem.code);
    this.problem = problem;
  }
}

export type Response = {
  readonly status: number;
  /** Name, value, name, value ...; the server adds Date and connection fields only. */
  readonly fields: readonly string[];
  /** Null: no content, and for 204 and 304 no Content-Length. A string is sent as UTF-8. */
  readonly content: string | Uint8Array | null | ContentStream | ContentFile;
  /** The length of a text in UTF-8, if it is known. */
  readonly octets?: number | undefined;
  /** For HEAD: the fields of GET without its content. */
  readonly headOnly?: boolean;
  /**
   * What the connection, or the stream of HTTP/2, becomes with this response (§4.13). Status 101 and no content; over HTTP/2 the server sends
   * 200 (RFC 8441 §5). The server adds Upgrade, Connection and the fields of the handshake.
   */
  readonly conversation?: Conversation | undefined;
  /** The holder of a response that stays open, for the limits of one caller. Without an id, its address is counted. */
  readonly holder?: { readonly id: string | undefined; readonly isAdministrator: boolean } | undefined;
  /** The connection must close after this response. */
  readonly close?: boolean;
  /** For the log and metrics, never sent: the pattern of the resource, and the code of a refusal. */
  readonly route?: string;
  readonly code?: string | undefined;
};

export function isStream(content: Response['content']): content is ContentStream {
  return content !== null && typeof content === 'object' && 'open' in content;
}

export function isFile(content: Response['content']): content is ContentFile {
  return content !== null && typeof content === 'object' && 'read' in content;
}

/**
 * Octets of one piece of a file, for readers and for the socket: a download is counted as three of them in the memory budget. 334 downloads
 * whose clients stopped reading took 110 MiB with it; with 512 KiB they took all of 512 MiB, and the kernel ended the program.
 */
export const filePieceBytesMax = 128 * 1024;

/** Octets of a known length that are read while they are sent; a representation of them can be sent in ranges. */
export type ContentFile = {
  readonly bytes: number;
  /**
   * Reads from `first` up to but not including `end`, exactly as many octets: fewer, more and an error end the connection. Called before the
   * header section is sent, so that a rejection is still answered. Pieces have at most `filePieceBytesMax` octets. What it returns is
   * destroyed, or its iterator ended, when the client leaves.
   * @param further extents whose octets follow; no piece holds octets of two
   */
  readonly read: (first: number, end: number, further?: readonly Extent[]) => Promise<Pieces>;
};

export type Pieces = AsyncIterable<Uint8Array> & {
  /** Takes back a piece whose octets have left: its memory may hold a later one. */
  readonly giveBack?: (piece: Uint8Array) => void;
};

/** Content that is produced while it is sent, such as text/event-stream. */
export type ContentStream = {
  /** Starts producing; the server calls the returned function once, when the client has left or the server drains. */
  readonly open: (sink: ContentSink) => () => void;
};

export type ContentSink = {
  /** False: the client is slow; wait for `onReady` before the next write. */
  write(content: string | Uint8Array): boolean;
  onReady(listener: () => void): void;
  end(): void;
  /** Cuts the connection, because the rest of the content cannot be produced: what was sent must not look complete. */
  fail(error: unknown): void;
  /** For what the producer holds for this client; released when the stream ends. */
  readonly memory: HeldMemory;
};

/** Messages in both directions, over any transport (§4.13). */
export type Conversation = {
  /** The chosen subprotocol; undefined: the client requested none. */
  readonly subprotocol: string | undefined;
  /** Called once, when messages can be sent. It may close the conversation first. */
  readonly open: (peer: ConversationPeer) => ConversationListener;
};

export type ConversationPeer = {
  /**
   * Sends one text, as UTF-8 if it is octets. False: the client is slow, and `onReady` follows; nothing is lost, and the caller may go on
   * sending. Does nothing after the close.
   */
  send(text: string | Uint8Array): boolean;
  /** Octets that the client has not received yet; infinite if there is no memory for them. */
  waitingBytes(): number;
  /** For what is read for this client before it is sent; released when the conversation ends. */
  readonly memory: HeldMemory;
  onReady(listener: () => void): void;
  /**
   * Closes with a status code of RFC 6455 §7.4 and a reason of at most 123 octets, after earlier messages as far as the client receives them
   * in time.
   */
  close(code: number, reason: string): void;
};

export type ConversationListener = {
  onMessage(text: string): void;
  /** Called once, for every kind of end; nothing is received afterwards. */
  onClosed(): void;
};

export type Handler = (request: Request) => Response | Promise<Response>;

/** The state of a rate limit for one request (§7, RFC 6585 §4). */
export type Allowance = {
  readonly exceeded: boolean;
  /** Values of RateLimit-Policy, RateLimit and X-RateLimit-Remaining. */
  readonly policy: string;
  readonly rate: string;
  readonly remaining: string;
  /** Time until one more request is admitted; at least 1 if `exceeded`. */
  readonly retryAfterSeconds: number;
};
