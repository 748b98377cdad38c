/**
 * Refusals of the proxy as responses (§4.10.4 to §4.10.6): the body of every other refusal (§2.2; RFC 9457 if Accept
 * prefers it), whose code is the machine-readable reason, and Proxy-Status (RFC 9209), which distinguishes responses of
 * the proxy from those of the destination. `why` is for operators and only in the log.
 */
import type { Response } from '../http/message.ts';
import { type Problem, problemBody, problemDetailsBody, problemStatus } from '../http/problem.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import { preferredMediaType } from '../http/syntax/accept.ts';
import { formatString } from '../http/syntax/structured-field.ts';

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
const proxyName = 'comity';

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
