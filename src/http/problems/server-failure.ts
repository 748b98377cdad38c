/** Entries of the error registry, 5xx: the server, or one that it depends on, cannot do it (§7). */
import type { ProblemEntry } from './problem-entry.ts';

export const serverFailureProblems = {
  internal: {
    status: 500,
    message: 'internal error',
    retry: 'later',
    meaning: 'The server failed; the log has the reason under the request id.',
  },
  method_unknown: {
    status: 501,
    message: 'method not implemented',
    retry: 'no',
    meaning: 'The server does not know the method; methods are case-sensitive.',
  },
  transfer_coding_unknown: {
    status: 501,
    message: 'transfer coding not implemented',
    retry: 'no',
    meaning: 'Transfer-Encoding names something other than chunked.',
  },
  protocol_unknown: {
    status: 501,
    message: 'protocol not implemented',
    retry: 'no',
    meaning:
      'An extended CONNECT, or an Upgrade that cannot be passed over, names a protocol that is not spoken here, such as connect-ip.',
  },
  destination_failed: {
    status: 502,
    message: 'the destination cannot be reached',
    retry: 'later',
    meaning:
      'Its name does not resolve, or it refused or broke the connection; `Proxy-Status` says which (RFC 9209).',
  },
  destination_timeout: {
    status: 504,
    message: 'the destination did not answer in time',
    retry: 'later',
    meaning:
      'Its name did not resolve, no connection was made, or no answer came within its time; `Proxy-Status` says which (RFC 9209).',
  },
  provider_unavailable: {
    status: 502,
    message: 'the identity provider did not answer as it should',
    retry: 'later',
    meaning: 'An OpenID provider could not be reached, or its answer could not be used.',
  },
  unavailable: {
    status: 503,
    message: 'service unavailable',
    retry: 'later',
    meaning:
      'The server is draining, its store cannot answer, or the memory for everything under way is taken; Retry-After says when to come back.',
  },
  version_unsupported: {
    status: 505,
    message: 'HTTP version not supported',
    retry: 'no',
    meaning: 'The request line names a version other than HTTP/1.0 and HTTP/1.1.',
  },
} as const satisfies Record<string, ProblemEntry>;
