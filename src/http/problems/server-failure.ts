/** Entries of the error registry, 5xx: the server, or a server that it depends on, fails (§7). */
import type { ProblemEntry } from './problem-entry.ts';

export const serverFailureProblems = {
  internal: {
    status: 500,
    message: 'internal error',
    retry: 'later',
    meaning: 'The server failed; the log has the reason under the request id.',
  },
  operation_given_up: {
    status: 500,
    message: 'the program ended each time while it carried out the request',
    retry: 'no',
    meaning:
      'An asynchronous operation was begun three times, and each time the process ended before it did. It is not begun again. The log of the ends says why; a smaller request may succeed.',
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
      'An extended CONNECT, or an Upgrade that the server must not ignore, names a protocol that the server does not support, such as connect-ip.',
  },
  destination_failed: {
    status: 502,
    message: 'the destination cannot be reached',
    retry: 'later',
    meaning:
      'The name of the destination does not resolve, or the destination refused or broke the connection; `Proxy-Status` says which (RFC 9209).',
  },
  destination_timeout: {
    status: 504,
    message: 'the destination did not answer in time',
    retry: 'later',
    meaning:
      'Resolving the name, connecting, or the answer of the destination took longer than allowed; `Proxy-Status` says which (RFC 9209).',
  },
  provider_unavailable: {
    status: 502,
    message: 'the identity provider is unavailable or its answer is invalid',
    retry: 'later',
    meaning: 'The OpenID provider could not be reached, or its answer is not valid.',
  },
  unavailable: {
    status: 503,
    message: 'service unavailable',
    retry: 'later',
    meaning:
      'The server is draining, its store cannot answer, or its memory budget for requests is used up; Retry-After says when to try again.',
  },
  backup_failed: {
    status: 500,
    message: 'the backup cannot be written',
    retry: 'later',
    meaning: 'The copy of the store could not be made or written; the message has the reason.',
  },
  backup_space_missing: {
    status: 507,
    message: 'the disk has no space for a copy of the store',
    retry: 'later',
    meaning:
      'The disk of `COMITY_BACKUP_FOLDER` has less space than the store needs, or was full before the copy was complete. No part of the copy is left.',
  },
  version_unsupported: {
    status: 505,
    message: 'HTTP version not supported',
    retry: 'no',
    meaning: 'The request line names a version other than HTTP/1.0 and HTTP/1.1.',
  },
} as const satisfies Record<string, ProblemEntry>;
