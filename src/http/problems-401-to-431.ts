/** Entries of the error registry, 401 to 431: the caller may not do this (§5), or the state or the limits of the server do not allow it (§7). */

export const refusedRequestProblems = {
  not_found: {
    status: 404,
    message: 'not found',
    retry: 'no',
    meaning: 'No resource exists at this target, or the caller is not permitted to see it.',
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
    meaning:
      'Another resource has this value of a unique field, or the same values of fields that are unique together.',
  },
  passkeys_exhausted: {
    status: 409,
    message: 'the account has as many passkeys as it may',
    retry: 'no',
    meaning: 'The limit is `COMITY_PASSKEYS_PER_ACCOUNT_MAX`; remove one first.',
  },
  account_exists: {
    status: 409,
    message: 'an account with this e-mail address exists; log in to it and link the provider there',
    retry: 'no',
    meaning:
      'The provider reports the e-mail address of an existing account, and nothing proves that its owner is signing in.',
  },
  account_entered: {
    status: 409,
    message: 'the account has a password or a second factor already',
    retry: 'no',
    meaning: 'An invitation is for an account that nobody has entered yet; its owner can reset the password.',
  },
  dependants_exist: {
    status: 409,
    message: 'resource is in use',
    retry: 'after-reading',
    meaning: 'Other resources refer to this one; the body counts them.',
  },
  deletion_running: {
    status: 409,
    message: 'the resource is being deleted',
    retry: 'later',
    meaning:
      'The resource, or one that it refers to, is being deleted by an operation with more resources than a unit takes, and takes no change meanwhile. If that operation fails, nothing is deleted, and the change can be made.',
  },
  endpoints_exhausted: {
    status: 409,
    message: 'the limit of endpoints is reached',
    retry: 'no',
    meaning:
      'The limit of webhook endpoints is reached: `COMITY_ENDPOINTS_PER_OWNER_MAX` of one owner, `COMITY_ENDPOINTS_MAX` of all. Delete one first.',
  },
  views_exhausted: {
    status: 409,
    message: 'the limit of saved views is reached',
    retry: 'no',
    meaning: 'The caller has `COMITY_VIEWS_PER_OWNER_MAX` saved views. Delete one first.',
  },
  recovery_running: {
    status: 409,
    message: 'a recovery of this endpoint is still running',
    retry: 'later',
    meaning: 'An endpoint runs one recovery at a time; the body names the running one.',
  },
  backup_running: {
    status: 409,
    message: 'a backup is being made; wait for its end',
    retry: 'later',
    meaning: 'A process makes one backup at a time.',
  },
  backups_exhausted: {
    status: 409,
    message: 'the limit of backups is reached',
    retry: 'no',
    meaning: 'The folder of backups has as many as `COMITY_BACKUPS_MAX`. Delete one first.',
  },
  event_id_used: {
    status: 409,
    message: 'another event has this id',
    retry: 'no',
    meaning: 'The id of the posted event belongs to a different event.',
  },
  event_unavailable: {
    status: 409,
    message: 'the event is no longer kept',
    retry: 'no',
    meaning: 'The event to send again was expunged, or is older than `COMITY_EVENT_RETENTION_SECONDS`.',
  },
  endpoint_unavailable: {
    status: 409,
    message: 'the endpoint was deleted or is disabled',
    retry: 'after-reading',
    meaning: 'The endpoint is deleted or disabled. A PATCH of its `status` enables a disabled one.',
  },
  resend_window_over: {
    status: 409,
    message: 'the delivery is too old to be sent again',
    retry: 'no',
    meaning: 'The delivery is older than `COMITY_RESEND_SECONDS`.',
  },
  sender_secret_fixed: {
    status: 409,
    message: 'the secrets of this sender are set by the environment',
    retry: 'no',
    meaning:
      'An environment variable sets this secret, so a request cannot replace it. To rotate, set the variable to the new and the old secret, separated by a comma.',
  },
  sender_unavailable: {
    status: 409,
    message: 'the sender of this message is no longer declared',
    retry: 'after-reading',
    meaning:
      'The configuration no longer declares the sender of the received message, so the message cannot be processed again. Declare the sender again.',
  },
  content_unavailable: {
    status: 409,
    message: 'the body of this message is no longer kept',
    retry: 'no',
    meaning:
      'The body of the received message was deleted after `COMITY_RECEIVED_RETENTION_SECONDS`, so the message cannot be processed again. Or the mail was sent, which deletes its content, or is older than `COMITY_MAIL_RETENTION_SECONDS`, so it cannot be sent again.',
  },
  idempotency_key_in_use: {
    status: 409,
    message: 'a request with this Idempotency-Key is still running',
    retry: 'later',
    meaning: 'The first request with this key has not been answered yet.',
  },
  idempotency_result_sealed: {
    status: 409,
    message: 'the request was carried out; only the credential that sent it can read its answer',
    retry: 'no',
    meaning:
      'A request with this Idempotency-Key created a resource whose secret is shown once. Only the key, token or session that sent that request can read its answer again; Location names the resource. If the secret is lost, delete the resource and send the request with another Idempotency-Key.',
  },
  position_expired: {
    status: 410,
    message:
      'the events after this position are no longer kept, or it is unknown; read the lists again, and go on from their Comity-Position',
    retry: 'after-reading',
    meaning:
      'The position in the event log is older than `COMITY_EVENT_RETENTION_SECONDS`, was lost with a restore or a failover, or is none that the program gave. Read the lists again, and follow the log from their `Comity-Position`.',
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
    meaning:
      'The content is over the limit, as sent or after decompression; or the request would write, or delete, more at once than one unit may hold, which `error` says.',
  },
  upload_offset_wrong: {
    status: 409,
    message: 'the upload has another offset',
    retry: 'after-reading',
    meaning:
      'The piece does not follow the octets that the upload has: `Upload-Offset` of the answer says how many these are.',
  },
  upload_busy: {
    status: 423,
    message: 'another request writes this upload',
    retry: 'later',
    meaning:
      'A piece of the upload is still on its way in another connection, or a later one has ended this one. Ask for its offset, and go on from there.',
  },
  upload_rate_limited: {
    status: 423,
    message: 'rate limited',
    retry: 'later',
    meaning:
      'The caller sends more requests than `RateLimit-Policy` allows; Retry-After says when to send the next one. Clients of tus go on after 423, and end an upload with 429.',
  },
  tus_version_unsupported: {
    status: 412,
    message: 'Tus-Resumable must be 1.0.0',
    retry: 'no',
    meaning:
      'The request is one of tus, and `Tus-Resumable` is missing or names a version that `Tus-Version` of the answer does not list. A client of the resumable upload draft sends `Upload-Complete` instead.',
  },
  quota_exceeded: {
    status: 413,
    message: 'the quota of files is used up',
    retry: 'no',
    meaning:
      'The files of the collection, the tenant or the principal would have more octets than `COMITY_FILES_COLLECTION_BYTES_MAX`, `COMITY_FILES_TENANT_BYTES_MAX` or `COMITY_FILES_PRINCIPAL_BYTES_MAX` allow; the body says which `quota`, with `bytesMax` and `bytesUsed`. Remove files first.',
  },
  target_too_long: {
    status: 414,
    message: 'request target is too long; send the query as the content of a QUERY request',
    retry: 'no',
    meaning: 'The request target is over the limit.',
  },
  media_type_unsupported: {
    status: 415,
    message: 'unsupported media type',
    retry: 'no',
    meaning:
      'The resource does not accept this media type; Accept, Accept-Patch or Accept-Query lists those that it accepts.',
  },
  content_coding_unsupported: {
    status: 415,
    message: 'unsupported content coding',
    retry: 'no',
    meaning:
      'Content-Encoding names a coding that the server cannot decode; Accept-Encoding lists those it can.',
  },
  range_not_satisfiable: {
    status: 416,
    message: 'the range lies beyond the representation',
    retry: 'no',
    meaning:
      'No range of `Range` has an octet of the representation; `Content-Range` says its length (RFC 9110 §15.5.17). A client that resumes has it whole already, or has another one.',
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
    meaning: 'The content is well-formed but invalid; `errors` points at each invalid member.',
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
    meaning:
      'The query is well-formed, but names a field or an operation that does not exist or is not allowed.',
  },
  idempotency_key_reused: {
    status: 422,
    message: 'Idempotency-Key was used for another request',
    retry: 'no',
    meaning: 'An earlier request with this key had another method, target or content.',
  },
  precondition_required: {
    status: 428,
    message: 'If-Match is required',
    retry: 'after-reading',
    meaning: 'The resource accepts a change only with the version that it applies to (RFC 6585 §3).',
  },
  upgrade_required: {
    status: 426,
    message: 'upgrade required',
    retry: 'no',
    meaning: 'The resource is available only over a WebSocket; `Upgrade` names the protocol.',
  },
  streams_exhausted: {
    status: 429,
    message: 'too many open streams',
    retry: 'later',
    meaning:
      'The caller has the most open event streams or WebSockets that one principal, or one address without a credential, may have.',
  },
  refused_by_application: {
    status: 422,
    message: 'refused by a rule of the application',
    retry: 'no',
    meaning:
      'A function of the configuration refused the request, with a code, a status and a message of its own, which the body has in place of these.',
  },
  tunnels_exhausted: {
    status: 429,
    message: 'the limit of open tunnels is reached',
    retry: 'later',
    meaning: 'The caller has `COMITY_TUNNELS_PER_PRINCIPAL_MAX` tunnels open.',
  },
  tunnel_bytes_exhausted: {
    status: 429,
    message: 'the daily limit of tunnelled octets is reached',
    retry: 'later',
    meaning:
      'The tunnels of the caller have carried `COMITY_TUNNEL_BYTES_PER_DAY_MAX` octets today; Retry-After says when the day ends.',
  },
  rate_limited: {
    status: 429,
    message: 'rate limited',
    retry: 'later',
    meaning:
      'The caller sends more requests than `RateLimit-Policy` allows; Retry-After says when to send the next one.',
  },
  fields_too_large: {
    status: 431,
    message: 'header fields are too large',
    retry: 'no',
    meaning: 'The header section is over the limit.',
  },
} as const satisfies Record<string, ProblemEntry>;

// Entries of the error registry, 401, 403 and 407: the caller is not authenticated or not permitted (§5, §7).

export const refusedAccessProblems = {
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
    meaning: 'The bearer token, or the ticket for a WebSocket, is unknown, expired, used or revoked.',
  },
  api_key_required: {
    status: 401,
    message: 'API key required',
    retry: 'with-credentials',
    meaning: 'The field, cookie or parameter for an API key is there, but holds no key.',
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
  second_factor_required: {
    status: 401,
    message: 'second factor required',
    retry: 'with-credentials',
    meaning:
      'The password is right, and the account has a second factor. A login continues at `/auth/login/second-factor` with the `challenge` of this response; Basic authentication is refused: use a session or an API key.',
  },
  second_factor_invalid: {
    status: 401,
    message: 'invalid second factor',
    retry: 'with-credentials',
    meaning: 'The code is wrong, used, or too old or too new by `COMITY_TOTP_WINDOW_STEPS_MAX`.',
  },
  passkey_invalid: {
    status: 401,
    message: 'invalid passkey',
    retry: 'with-credentials',
    meaning:
      'The response of the authenticator is not for this challenge, page or account, its signature is wrong, its sign counter did not grow, it did not verify its user, or it has a certificate.',
  },
  second_factor_enrolment_required: {
    status: 403,
    message: 'the account must add a second factor',
    retry: 'later',
    meaning:
      'The account needs a second factor (`COMITY_SECOND_FACTOR`) and has none. Until it has one, its credentials open only the routes below `/auth` that add it.',
  },
  portal_session_limited: {
    status: 403,
    message: 'a session of the portal opens only the webhooks of its tenant',
    retry: 'no',
    meaning:
      'The credential is a session of the portal (§5.10). It reaches `/endpoints`, `/deliveries`, `/recoveries` and `/event-types`, and nothing else.',
  },
  forbidden: {
    status: 403,
    message: 'not permitted',
    retry: 'with-credentials',
    meaning: 'The caller is authenticated, but not permitted to do this.',
  },
  cross_site_request: {
    status: 403,
    message: 'cross-site request refused',
    retry: 'no',
    meaning:
      'An unsafe request with a session cookie, or the handshake of a WebSocket, came from a page of another origin that is not allowed.',
  },
  tunnel_port_refused: {
    status: 403,
    message: 'tunnels to this port are not permitted',
    retry: 'no',
    meaning: 'The port of the destination is not one of `COMITY_TUNNEL_PORTS`.',
  },
  tunnel_host_refused: {
    status: 403,
    message: 'tunnels to this host are not permitted',
    retry: 'with-credentials',
    meaning: 'The host rules of the caller, or of its key, do not allow the destination.',
  },
  tunnel_address_refused: {
    status: 403,
    message: 'the destination has an address that is not permitted',
    retry: 'no',
    meaning:
      'The destination is, or resolves to, an address that is neither public nor in `COMITY_EGRESS_ALLOW`, or one that Comity itself listens on.',
  },
  proxy_credentials_required: {
    status: 407,
    message: 'proxy credentials required',
    retry: 'with-credentials',
    meaning:
      'A tunnel needs a credential in `Proxy-Authorization`; Comity ignores `Authorization`, which is for the destination.',
  },
  proxy_credentials_invalid: {
    status: 407,
    message: 'invalid proxy credentials',
    retry: 'with-credentials',
    meaning: 'The credential in `Proxy-Authorization` is unknown, expired, revoked or unreadable.',
  },
  email_unverified: {
    status: 403,
    message: 'the e-mail address is not verified',
    retry: 'later',
    meaning:
      'The account must verify its e-mail address before it can log in (`COMITY_VERIFIED_EMAIL_REQUIRED`).',
  },
} as const satisfies Record<string, ProblemEntry>;

// An entry of the error registry.

export type Retry =
  /** The same request gets the same answer. */
  | 'no'
  /** The same request may succeed after Retry-After, or later. */
  | 'later'
  /** The client should read the resource again, then decide. */
  | 'after-reading'
  /** With other or new credentials. */
  | 'with-credentials';

export type ProblemEntry = {
  readonly status: number;
  /** The `error` member unless a refusal has a more exact sentence. Those that §7 names are verbatim. */
  readonly message: string;
  readonly retry: Retry;
  readonly meaning: string;
};
