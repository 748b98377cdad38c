/** Entries of the error registry, 400: malformed requests, and requests that can never be allowed (§7). */
import type { ProblemEntry } from './problem-entry.ts';

export const badRequestProblems = {
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
      'A webhook has no signature that one of the secrets of its sender made over exactly these octets; `reason` is `missing`, `malformed` or `no-match`.',
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
  patch_malformed: {
    status: 400,
    message: 'invalid patch document',
    retry: 'no',
    meaning: 'The patch is not a JSON Patch array or not a merge patch object.',
  },
} as const satisfies Record<string, ProblemEntry>;
