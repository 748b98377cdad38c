/**
 * The interface between the server and the proxy (§4.10; RFC 9110 §9.3.6, RFC 9298), for HTTP/1.1 and HTTP/2: the
 * server reads the request and writes the response; the proxy has the octets after it.
 */
import type { Duplex, Readable, Writable } from 'node:stream';
import type { Request, Response } from '../http/message.ts';
import { type Problem, problemBody, problemDetailsBody, problemStatus } from '../http/problem.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import { preferredMediaType } from '../http/syntax/accept.ts';
import { formatString } from '../http/syntax/structured-field.ts';

export type ProxyCall = {
  readonly request: Request;
  /** Aborted when the client leaves before its response. */
  readonly signal: AbortSignal;
};

export type ProxyReply =
  | { readonly refused: Response }
  | {
      /** Fields of the 2xx or 101 response, without Content-Length and Transfer-Encoding (§4.10.3). */
      readonly fields: readonly string[];
      /** Called once, in the turn in which the response was written; not at all if the client has left. */
      readonly join: (client: ClientSide) => void;
      /** The client left before `join`: releases what was opened. */
      readonly abandon: () => void;
    };

export type ClientSide = {
  /** The socket, or the stream of an HTTP/2 connection. Half-open: its end does not end the other direction. */
  readonly duplex: Duplex;
  /** Octets after the request in the same read: the first of the tunnel. */
  readonly head: Uint8Array;
  /** Ends it as a visible failure: RST over TCP, RST_STREAM with CONNECT_ERROR over HTTP/2 (RFC 9113 §8.5). */
  readonly reset: () => void;
};

/** A request for another server, whose content and answer pass unchanged. */
export type ForwardCall = ProxyCall & {
  readonly content: Readable;
  /** Writes status line and fields; returns the stream for the content. Call it once. */
  readonly answer: (status: number, fields: readonly string[]) => Writable;
  /** Passes on an interim answer (1xx but 101). */
  readonly interim: (status: number, fields: readonly string[]) => void;
};

export type HttpProxy = {
  readonly connect: (call: ProxyCall) => Promise<ProxyReply>;
  readonly udp: (call: ProxyCall) => Promise<ProxyReply>;
  /** True if the request is for another server: its target is an absolute URI of none of this program's origins. */
  readonly isForeign: (request: Request) => boolean;
  /** Resolves with a refusal for the server to send, or undefined after an answer. */
  readonly forward: (call: ForwardCall) => Promise<Response | undefined>;
  /** Waits for open tunnels until `boundMs`, then cuts them. From the call on, everything is refused with 503. */
  readonly drain: (boundMs: number) => Promise<void>;
  readonly count: () => number;
};

// Refusals of the proxy as responses (§4.10.4 to §4.10.6): the body of every other refusal (§2.2; RFC 9457 if Accept
// prefers it), whose code is the machine-readable reason, and Proxy-Status (RFC 9209), which distinguishes responses of
// the proxy from those of the destination. `why` is for operators and only in the log.

export type ProxyError =
  | 'dns_timeout'
  | 'dns_error'
  | 'destination_unavailable'
  | 'destination_ip_prohibited'
  | 'destination_ip_unroutable'
  | 'connection_refused'
  | 'connection_terminated'
  | 'connection_timeout'
  | 'connection_limit_reached'
  | 'http_request_error'
  | 'http_request_denied'
  | 'http_response_incomplete'
  | 'http_response_timeout'
  | 'http_protocol_error'
  | 'proxy_internal_error';

export type Refusal = {
  readonly code: ProblemCode;
  /** Default: that of the code. */
  readonly message?: string;
  readonly error: ProxyError;
  /** For the caller, in ASCII; default: the message. Names no address that the caller did not name. */
  readonly details?: string;
  /** For operators; default: the details. */
  readonly why?: string;
  readonly retryAfterSeconds?: number;
  readonly challenges?: string;
};

const forms = ['application/json', 'application/problem+json'] as const;
/** The name of this proxy in Proxy-Status and in Via (RFC 9110 §7.6.3). */
export const proxyName = 'comity';

export function refusalAnswer(refusal: Refusal, accept: string | undefined): Response {
  const { code, message, retryAfterSeconds, challenges } = refusal;
  const problem: Problem = message === undefined ? { code } : { code, message };
  const isDetailed = accept !== undefined && preferredMediaType(accept, forms) === forms[1];
  const fields = ['Content-Type', isDetailed ? forms[1] : forms[0]];
  fields.push('Cache-Control', 'no-store', 'Vary', 'Accept', 'Proxy-Status', proxyStatus(refusal));
  if (challenges !== undefined) fields.push('Proxy-Authenticate', challenges);
  if (retryAfterSeconds !== undefined) fields.push('Retry-After', String(retryAfterSeconds));
  return {
    status: problemStatus(code),
    fields,
    content: isDetailed ? problemDetailsBody(problem) : problemBody(problem),
    code,
  };
}

function proxyStatus({ code, error, details, message }: Refusal): string {
  return `${proxyName}; error=${error}; details=${formatString(details ?? message ?? code)}`;
}
