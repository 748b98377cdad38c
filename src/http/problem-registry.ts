/**
 * The error registry (§2.2, §7): every code of a refusal, with its status, its message and advice for the client. docs/reference/errors.md is
 * generated from it. Here are 400 and those from 500; problems-401-to-431.ts has 401 to 431.
 */
import { type ProblemEntry, refusedAccessProblems, refusedRequestProblems } from './problems-401-to-431.ts';

// Entries of the error registry, 400: malformed requests, and requests that can never be allowed (§7).

const badRequestProblems = {
  message_invalid: {
    status: 400,
    message: 'malformed request',
    retry: 'no',
    meaning: 'The bytes are not an HTTP/1.1 message.',
  },
  target_invalid: {
    status: 400,
    message: 'invalid request target',
    retry: 'no',
    meaning: 'The request target does not follow RFC 9112 §3.2, or has a bad escape or a dot segment.',
  },
  host_invalid: {
    status: 400,
    message: 'exactly one valid Host is required',
    retry: 'no',
    meaning: 'Host is missing, repeated or malformed (RFC 9112 §3.2).',
  },
  field_invalid: {
    status: 400,
    message: 'invalid header field',
    retry: 'no',
    meaning: 'A header field that the answer depends on is repeated or does not follow its grammar.',
  },
  handshake_invalid: {
    status: 400,
    message: 'invalid opening handshake',
    retry: 'no',
    meaning:
      'Fields of the opening handshake of a WebSocket or of connect-udp are missing or malformed, its version is not 13, or the server supports none of its subprotocols (RFC 6455 §4.2.1; RFC 9298 §3).',
  },
  tunnel_target_invalid: {
    status: 400,
    message: 'the target must be host:port',
    retry: 'no',
    meaning: 'The target of the tunnel is not a host with a port (RFC 9110 §9.3.6; RFC 9298 §3).',
  },
  query_parameter_invalid: {
    status: 400,
    message: 'invalid query parameter',
    retry: 'no',
    meaning: 'A query parameter is unknown, repeated or has a bad value; a cursor was altered.',
  },
  credentials_repeated: {
    status: 400,
    message: 'only one credential may be sent',
    retry: 'no',
    meaning:
      'The request carries credentials in more than one place, such as a header field and the query component. Send exactly one.',
  },
  challenge_invalid: {
    status: 400,
    message: 'the challenge is unknown, expired or used',
    retry: 'no',
    meaning:
      'The `challenge` of a login, or the `enrolment` of a second factor, is unknown, used, older than `COMITY_SECOND_FACTOR_CHALLENGE_SECONDS`, or void because the password or the second factor of the account changed: start again.',
  },
  code_invalid: {
    status: 400,
    message: 'invalid or expired code',
    retry: 'no',
    meaning: 'A single-use code of an e-mail is unknown, used or expired.',
  },
  sign_in_invalid: {
    status: 400,
    message: 'this sign-in cannot be finished; start it again',
    retry: 'no',
    meaning:
      'The callback of an OpenID provider belongs to no sign-in that this browser started, arrived twice or too late, or reports that the provider refused.',
  },
  signature_invalid: {
    status: 400,
    message: 'invalid signature',
    retry: 'no',
    meaning:
      'A webhook has no signature that one of the secrets of its sender made over exactly these octets; `reason` is `missing`, `malformed` or `no-match`, or `unexpected` for one that is signed for another receiver.',
  },
  signature_stale: {
    status: 400,
    message: 'the signed time is too far from now',
    retry: 'no',
    meaning:
      'The signed time of a webhook is further in the past or in the future than the tolerance of its sender allows; `reason` is `stale` or `ahead`.',
  },
  content_missing: {
    status: 400,
    message: 'request content is required',
    retry: 'no',
    meaning: 'The method needs content here, and the request has none.',
  },
  content_unexpected: {
    status: 400,
    message: 'request content is not allowed',
    retry: 'no',
    meaning: 'A TRACE request has content (RFC 9110 §9.3.8).',
  },
  content_malformed: {
    status: 400,
    message: 'malformed request content',
    retry: 'no',
    meaning:
      'The content does not follow its media type: broken JSON, duplicate keys, a broken form, a bad content coding.',
  },
  content_type_missing: {
    status: 400,
    message: 'Content-Type is required',
    retry: 'no',
    meaning: 'A QUERY request has no Content-Type (RFC 10008 §2).',
  },
  field_missing: {
    status: 400,
    message: 'missing required field',
    retry: 'no',
    meaning: 'A required member is absent; `errors` points at each.',
  },
  field_unpatchable: {
    status: 400,
    message: 'field may not be changed',
    retry: 'no',
    meaning: 'The request changes a member that only the server sets, or that is fixed at creation.',
  },
  digest_mismatch: {
    status: 400,
    message: 'the content has another digest',
    retry: 'no',
    meaning:
      'The octets that arrived do not have the digest or the length that the request states for them (RFC 9530): nothing was kept.',
  },
  checksum_mismatch: {
    status: 460,
    message: 'the piece has another checksum',
    retry: 'later',
    meaning:
      'The octets of a piece do not have the digest in `Upload-Checksum` (tus 1.0, which names this status): nothing of the piece was kept.',
  },
  patch_malformed: {
    status: 400,
    message: 'invalid patch document',
    retry: 'no',
    meaning: 'The patch is not a JSON Patch array or not a merge patch object.',
  },
} as const satisfies Record<string, ProblemEntry>;

// Entries of the error registry, 5xx: the server, or a server that it depends on, fails (§7).

const serverFailureProblems = {
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
  file_space_missing: {
    status: 507,
    message: 'there is no space for the file',
    retry: 'later',
    meaning: 'The disk, or the store, that files are kept on is full. Nothing of the file is kept.',
  },
  version_unsupported: {
    status: 505,
    message: 'HTTP version not supported',
    retry: 'no',
    meaning: 'The request line names a version other than HTTP/1.0 and HTTP/1.1.',
  },
} as const satisfies Record<string, ProblemEntry>;

export const problems = {
  ...badRequestProblems,
  ...refusedAccessProblems,
  ...refusedRequestProblems,
  ...serverFailureProblems,
};

export type ProblemCode = keyof typeof problems;
