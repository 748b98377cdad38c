/**
 * A request and a response as values: the border between the rooms that know sockets (`server/`) and
 * those that know conduct. Nothing here does I/O; `content` is read through a function the server supplies.
 */
import type { ProblemCode } from './problem-registry.ts';
import type { RequestFields } from './request-fields.ts';

/** The methods this server knows; any other is 501 (RFC 9110 §9.1). */
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
   * `:protocol` of an extended CONNECT (RFC 8441 §4), which is handed on as the GET that an Upgrade over HTTP/1.1 would have been; undefined
   * for every other request. What an Upgrade asks for stands in the fields.
   */
  readonly protocol?: string | undefined;
  /**
   * Reads the whole content as transferred (still content-coded), at most `bytesMax` octets.
   * May be called once. Sends 100 (Continue) first where the client waits for it.
   */
  readonly readContent: (bytesMax: number) => Promise<ReceivedContent>;
  /**
   * Calls back when the client has left before it was answered; returns the way to stop. Missing where no client waits, as for a stored
   * request.
   */
  onGone?(listener: () => void): () => void;
  /** Address of the peer, for logs and limits. */
  readonly peer: string;
  /** Identifies the request in the log and in error answers. */
  readonly id: string;
  /** It came by a connection of the reserve (`connectionsReservedMax`): only health and administrators are answered there. */
  readonly reserved?: boolean;
  /** Counts what answering holds in memory; absent: nothing counts it, as for a request that the program repeats. */
  readonly memory?: RequestMemory;
};

/** What a request holds of the memory for everything under way; all of it is given back once it is answered. */
export type RequestMemory = {
  /** Names the principal, against whose share it counts from then on. `isReserved`: an administrator, who may use what is reserved. */
  ofPrincipal(id: string, isReserved: boolean): void;
  /** Counts so many octets more; false where there is no room, and the answer is 503. */
  hold(octets: number): boolean;
  giveBack(octets: number): void;
  /**
   * Waits for the turn to work on so many octets of content, which takes several times their memory until the request is
   * answered. Undefined: now.
   */
  takeTurn(octets: number): Promise<void> | undefined;
};

/** What a stream or a conversation holds of the memory for everything under way. */
export type HeldMemory = {
  /** Calls back, at once or later, when there is room for so many octets more, which count from then on. */
  whenRoom(octets: number, go: () => void): void;
  /** Exactly so many octets are held from now on, besides shared ones. */
  set(octets: number): void;
  /** Exactly these octets are held from now on, counted once however many hold them; undefined: none. */
  share(octets: Uint8Array | undefined): void;
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
  /**
   * What the connection, over HTTP/2 the stream, becomes with this answer (§4.13). Status 101 and no content; over HTTP/2 the
   * server says 200 instead (RFC 8441 §5). It adds Upgrade, Connection and the fields of the handshake.
   */
  readonly conversation?: Conversation | undefined;
  /** Who holds an answer that stays open, for the bounds on a caller's share. Without an id it is counted by address. */
  readonly holder?: { readonly id: string | undefined; readonly isAdministrator: boolean };
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
  write(content: string | Uint8Array): boolean;
  onReady(listener: () => void): void;
  end(): void;
  /** Of what the producer holds for this client; given back when the stream ends. */
  readonly memory: HeldMemory;
};

/** Messages in both directions, whatever carries them (§4.13). */
export type Conversation = {
  /** The subprotocol that was chosen; undefined: the client asked for none. */
  readonly subprotocol: string | undefined;
  /** Called once, when the client can be spoken to. What it does first may be to close. */
  readonly open: (peer: ConversationPeer) => ConversationListener;
};

export type ConversationPeer = {
  /**
   * Sends one text, UTF-8 where it is octets. False: more waits than a client should have waiting, and `onReady` tells when it has taken
   * it; nothing is lost, and nothing keeps the caller from sending on. Does nothing once closed.
   */
  send(text: string | Uint8Array): boolean;
  /** Octets that the client has not taken yet; without end where there is no memory for them. */
  waitingBytes(): number;
  /** Of what is read for this client before it is sent; given back when the conversation ends. */
  readonly memory: HeldMemory;
  onReady(listener: () => void): void;
  /**
   * Ends it with a status code of RFC 6455 §7.4 and a reason of at most 123 octets. What was sent before still goes out, as far as the client
   * takes it within its time.
   */
  close(code: number, reason: string): void;
};

export type ConversationListener = {
  onMessage(text: string): void;
  /** Called once, whoever ended it and however; nothing is received afterwards. */
  onClosed(): void;
};

/** Answers one request. Synchronous where nothing had to be waited for. */
export type Handler = (request: Request) => Response | Promise<Response>;
