/** Entries of the error registry, 404 to 431: the request is understood and cannot be met as things stand (§7). */
import type { ProblemEntry } from './problem-entry.ts';

export const refusedRequestProblems = {
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
  endpoints_exhausted: {
    status: 409,
    message: 'the limit of endpoints is reached',
    retry: 'no',
    meaning:
      'The limit of webhook endpoints is reached: `COMITY_ENDPOINTS_PER_OWNER_MAX` of one owner, `COMITY_ENDPOINTS_MAX` of all. Delete one first.',
  },
  recovery_running: {
    status: 409,
    message: 'a recovery of this endpoint is still running',
    retry: 'later',
    meaning: 'An endpoint has one recovery at a time; the body names the one that runs.',
  },
  event_id_used: {
    status: 409,
    message: 'another event has this id',
    retry: 'no',
    meaning: 'An event was posted with an id that is taken, and is not the same event.',
  },
  event_unavailable: {
    status: 409,
    message: 'the event is no longer kept',
    retry: 'no',
    meaning: 'What would be sent again was expunged, or is older than events are kept.',
  },
  endpoint_unavailable: {
    status: 409,
    message: 'the endpoint is gone or disabled',
    retry: 'after-reading',
    meaning: 'Nothing can be sent to the endpoint as it stands; PATCH of its `status` enables it again.',
  },
  resend_window_over: {
    status: 409,
    message: 'the time in which this could be sent again is over',
    retry: 'no',
    meaning: 'The delivery is older than deliveries may be that are sent again by hand (§6).',
  },
  sender_secret_fixed: {
    status: 409,
    message: 'the secrets of this sender are set by the environment',
    retry: 'no',
    meaning:
      'A secret that a variable of the environment sets cannot be replaced by a request; set the variable to both for a while.',
  },
  sender_unavailable: {
    status: 409,
    message: 'the sender of this message is no longer declared',
    retry: 'after-reading',
    meaning:
      'A received message cannot be handed on again while the configuration does not say to whom; declare its sender again.',
  },
  content_unavailable: {
    status: 409,
    message: 'the body of this message is no longer kept',
    retry: 'no',
    meaning: 'A received message is older than bodies are kept, so it cannot be handed on again.',
  },
  idempotency_key_in_use: {
    status: 409,
    message: 'a request with this Idempotency-Key is still running',
    retry: 'later',
    meaning: 'The first request with this key has not been answered yet.',
  },
  idempotency_result_sealed: {
    status: 409,
    message: 'the request was carried out, and its answer is for another credential',
    retry: 'no',
    meaning:
      'A request with this Idempotency-Key made something whose secret was shown once. Only the key, token or session that asked can see that answer again; Location names what was made. Delete it and ask under another Idempotency-Key where the secret is lost.',
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
  upgrade_required: {
    status: 426,
    message: 'upgrade required',
    retry: 'no',
    meaning: 'The resource is spoken to over a WebSocket; `Upgrade` names the protocol.',
  },
  streams_exhausted: {
    status: 429,
    message: 'too many open streams',
    retry: 'later',
    meaning:
      'The caller has as many event streams or WebSockets open as one principal, or one address without a credential, may have.',
  },
  tunnels_exhausted: {
    status: 429,
    message: 'there are as many tunnels as may be',
    retry: 'later',
    meaning: 'The caller has as many tunnels open as `COMITY_TUNNELS_PER_PRINCIPAL_MAX` lets it.',
  },
  tunnel_bytes_exhausted: {
    status: 429,
    message: 'the octets of the day are used up',
    retry: 'later',
    meaning:
      'Tunnels of the caller have carried `COMITY_TUNNEL_BYTES_PER_DAY_MAX` octets; Retry-After says when the day ends.',
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
} as const satisfies Record<string, ProblemEntry>;
