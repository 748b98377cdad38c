/**
 * The error registry (§2.2, §7): a closed list of codes, each with its status, its message and what a
 * client may do next. Every refusal anywhere in the program names one of these; docs/reference/errors.md
 * is rendered from this table.
 */

export type Retry =
  /** Sending the same again gives the same answer. */
  | 'no'
  /** The same request may succeed after Retry-After, or later. */
  | 'later'
  /** Read the resource again, then decide. */
  | 'after-reading'
  /** With other or new credentials. */
  | 'with-credentials';

type Entry = {
  readonly status: number;
  /** The `error` member unless the refusal has a more exact sentence. Those that §7 names are verbatim. */
  readonly message: string;
  readonly retry: Retry;
  readonly meaning: string;
};

export const problems = {
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
      'A request brings credentials in more than one place, such as a header field and the query component.',
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
      'The callback of an OpenID provider does not belong to a sign-in that this browser began, came twice or too late, or tells of a refusal.',
  },
  content_missing: {
    status: 400,
    message: 'request content is required',
    retry: 'no',
    meaning: 'The method needs content here and none came.',
  },
  content_unexpected: {
    status: 400,
    message: 'request content is not allowed',
    retry: 'no',
    meaning: 'TRACE came with content (RFC 9110 §9.3.8).',
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
    meaning: 'A QUERY came without Content-Type (RFC 10008 §2).',
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
  no_token_provided: {
    status: 401,
    message: 'no token provided',
    retry: 'with-credentials',
    meaning: 'The request needs a credential and carries none.',
  },
  invalid_token: {
    status: 401,
    message: 'invalid token',
    retry: 'with-credentials',
    meaning: 'The bearer token is unknown, expired or revoked.',
  },
  api_key_required: {
    status: 401,
    message: 'API key required',
    retry: 'with-credentials',
    meaning: 'A key carrier was used without a key in it.',
  },
  invalid_api_key: {
    status: 401,
    message: 'invalid API key',
    retry: 'with-credentials',
    meaning: 'The API key is unknown, expired or revoked.',
  },
  invalid_credentials: {
    status: 401,
    message: 'invalid credentials',
    retry: 'with-credentials',
    meaning: 'User name or password is wrong.',
  },
  forbidden: {
    status: 403,
    message: 'not permitted',
    retry: 'with-credentials',
    meaning: 'The caller is known and may not do this.',
  },
  cross_site_request: {
    status: 403,
    message: 'cross-site request refused',
    retry: 'no',
    meaning: 'An unsafe request with a session cookie came from a page of another origin.',
  },
  email_unverified: {
    status: 403,
    message: 'the e-mail address is not verified',
    retry: 'later',
    meaning: 'Accounts must verify their address before they log in here.',
  },
  not_found: {
    status: 404,
    message: 'not found',
    retry: 'no',
    meaning: 'Nothing stands at this target, or the caller may not know of it.',
  },
  method_not_allowed: {
    status: 405,
    message: 'method not allowed',
    retry: 'no',
    meaning: 'The resource does not support the method; `Allow` lists what it supports.',
  },
  not_acceptable: {
    status: 406,
    message: 'not acceptable',
    retry: 'no',
    meaning: 'No representation fits Accept or Accept-Encoding.',
  },
  request_timeout: {
    status: 408,
    message: 'request timed out',
    retry: 'later',
    meaning: 'The request did not arrive within its time.',
  },
  unique_taken: {
    status: 409,
    message: 'already exists',
    retry: 'no',
    meaning: 'Another resource holds this value of a unique field.',
  },
  account_exists: {
    status: 409,
    message: 'an account with this e-mail address exists; log in to it and link the provider there',
    retry: 'no',
    meaning:
      'A sign-in by a provider could take over an account whose owner did not prove to be the same person.',
  },
  dependants_exist: {
    status: 409,
    message: 'resource is in use',
    retry: 'after-reading',
    meaning: 'Other resources refer to this one; the body counts them.',
  },
  idempotency_key_in_use: {
    status: 409,
    message: 'a request with this Idempotency-Key is still running',
    retry: 'later',
    meaning: 'The first request with this key has not been answered yet.',
  },
  result_gone: {
    status: 410,
    message: 'this result is no longer kept',
    retry: 'after-reading',
    meaning: 'The result of a QUERY has been superseded; its Location repeats the query.',
  },
  precondition_failed: {
    status: 412,
    message: 'precondition failed',
    retry: 'after-reading',
    meaning: 'If-Match, If-None-Match or If-Unmodified-Since does not hold (RFC 9110 §13).',
  },
  content_too_large: {
    status: 413,
    message: 'request content is too large',
    retry: 'no',
    meaning: 'The content, or what it decompresses to, is over the limit.',
  },
  target_too_long: {
    status: 414,
    message: 'request target is too long; send the query as the content of a QUERY request',
    retry: 'no',
    meaning: 'The request target is over the limit (§8).',
  },
  media_type_unsupported: {
    status: 415,
    message: 'unsupported media type',
    retry: 'no',
    meaning: 'This target takes no such content; Accept, Accept-Patch or Accept-Query lists what it takes.',
  },
  content_coding_unsupported: {
    status: 415,
    message: 'unsupported content coding',
    retry: 'no',
    meaning:
      'Content-Encoding names a coding that the server cannot decode; Accept-Encoding lists those it can.',
  },
  expectation_failed: {
    status: 417,
    message: 'expectation failed',
    retry: 'no',
    meaning: 'Expect names something other than 100-continue.',
  },
  validation_failed: {
    status: 422,
    message: 'validation failed',
    retry: 'no',
    meaning: 'Well-formed but invalid data; `errors` points at each member.',
  },
  reference_missing: {
    status: 422,
    message: 'a referenced resource does not exist',
    retry: 'no',
    meaning: 'A reference names a resource that does not exist; `errors` points at it.',
  },
  patch_not_applicable: {
    status: 422,
    message: 'patch cannot be applied',
    retry: 'after-reading',
    meaning: 'A JSON Patch operation names a place that does not exist, or a test fails.',
  },
  query_unprocessable: {
    status: 422,
    message: 'query cannot be executed',
    retry: 'no',
    meaning: 'The query parses but names what does not exist or is not allowed.',
  },
  idempotency_key_reused: {
    status: 422,
    message: 'Idempotency-Key was used for another request',
    retry: 'no',
    meaning: 'The same key came with another method, target or content.',
  },
  precondition_required: {
    status: 428,
    message: 'If-Match is required',
    retry: 'after-reading',
    meaning: 'The resource takes changes only against a known version (RFC 6585 §3).',
  },
  rate_limited: {
    status: 429,
    message: 'rate limited',
    retry: 'later',
    meaning: 'The caller asks more often than `RateLimit-Policy` allows; Retry-After says when to come back.',
  },
  fields_too_large: {
    status: 431,
    message: 'header fields are too large',
    retry: 'no',
    meaning: 'The header section is over the limit.',
  },
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
    meaning: 'The server is draining or its store cannot answer; Retry-After says when to come back.',
  },
  version_unsupported: {
    status: 505,
    message: 'HTTP version not supported',
    retry: 'no',
    meaning: 'The request line names a version other than HTTP/1.0 and HTTP/1.1.',
  },
} as const satisfies Record<string, Entry>;

export type ProblemCode = keyof typeof problems;
