/**
 * What the server asks of the room that leads elsewhere (§4.10; RFC 9110 §9.3.6, RFC 9298), in terms that hold for HTTP/1.1 and HTTP/2 alike:
 * the server reads the request and writes the answer, and whoever opened the tunnel has the octets after it.
 */
import type { Duplex, Readable, Writable } from 'node:stream';
import type { Request, Response } from '../http/message.ts';

export type ProxyCall = {
  readonly request: Request;
  /** Aborted when the client is gone before its answer. */
  readonly signal: AbortSignal;
};

export type ProxyReply =
  /** An ordinary answer; there is no tunnel. */
  | { readonly refused: Response }
  | {
      /** Fields of the 2xx or 101 answer, without Content-Length and Transfer-Encoding (§4.10, rule 3). */
      readonly fields: readonly string[];
      /** Called once, in the turn in which the answer was written; not at all when the client was gone. */
      readonly join: (client: ClientSide) => void;
      /** The client was gone before `join`: gives back what was opened. */
      readonly abandon: () => void;
    };

export type ClientSide = {
  /** The socket, or the stream of an HTTP/2 connection. Half-open: its end is not the end of what is written to it. */
  readonly duplex: Duplex;
  /** What came after the request with it: the first octets of the tunnel. */
  readonly head: Uint8Array;
  /** Ends it so that the client sees that something broke: RST over TCP, RST_STREAM with CONNECT_ERROR over HTTP/2 (RFC 9113 §8.5). */
  readonly reset: () => void;
};

/** A request for another server, whose content and answer go through as they are. */
export type ForwardCall = ProxyCall & {
  readonly content: Readable;
  /** Writes status line and fields; what comes back takes the content. Once. */
  readonly answer: (status: number, fields: readonly string[]) => Writable;
  /** Passes on an interim answer (1xx but 101). */
  readonly interim: (status: number, fields: readonly string[]) => void;
};

export type HttpProxy = {
  /** CONNECT `host:port`. */
  readonly connect: (call: ProxyCall) => Promise<ProxyReply>;
  /** connect-udp, by Upgrade or extended CONNECT. */
  readonly udp: (call: ProxyCall) => Promise<ProxyReply>;
  /** Whether the request is for another server: its target is an absolute URI that names none of this program's own origins. */
  readonly isForeign: (request: Request) => boolean;
  /** Resolves with a refusal that the server sends, or undefined when it was answered. */
  readonly forward: (call: ForwardCall) => Promise<Response | undefined>;
  /** Ends what is open: tunnels until `boundMs` is over, then they are cut. From the call on everything is refused with 503. */
  readonly drain: (boundMs: number) => Promise<void>;
  /** Open tunnels and forwarded requests. */
  readonly count: () => number;
};
