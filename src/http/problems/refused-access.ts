/** Entries of the error registry, 401 and 403: who asks is not known, or may not (§5, §7). */
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
    meaning:
      'A list of hosts that holds for the caller, or for its key, does not let the destination through.',
  },
  tunnel_address_refused: {
    status: 403,
    message: 'the destination has an address that is not permitted',
    retry: 'no',
    meaning:
      'The destination is, or resolves to, an address that is not public and not in `COMITY_EGRESS_ALLOW`, or is this program.',
  },
  proxy_credentials_required: {
    status: 407,
    message: 'proxy credentials required',
    retry: 'with-credentials',
    meaning:
      'A tunnel needs a credential in `Proxy-Authorization`; `Authorization` is for the destination and is not looked at.',
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
    meaning: 'Accounts must verify their address before they log in here.',
  },
} as const satisfies Record<string, ProblemEntry>;
