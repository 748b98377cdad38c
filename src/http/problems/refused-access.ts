/** Entries of the error registry, 401, 403 and 407: the caller is not authenticated or not permitted (§5, §7). */
import type { ProblemEntry } from './problem-entry.ts';

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
