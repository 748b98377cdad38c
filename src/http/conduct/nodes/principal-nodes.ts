/**
 * Nodes about the caller (§5.1). The rate limit comes first and so bounds the guessing of credentials; then an invalid credential, before
 * anything else is looked at; then what the principal may never do, before anything is read.
 */
import { type Nodes, refuse, to } from '../node.ts';

export const principalNodes = {
  rate_exceeded: {
    section: '§7.3, RFC 6585 §4',
    question: 'Has the caller reached its rate limit?',
    want: 'principal',
    ask: (facts) => facts.rateExceeded,
    yes: refuse('rate_limited'),
    no: to('credential_refused'),
  },
  credential_refused: {
    section: '§5.1.2, §5.1.3',
    question: 'Is the credential invalid?',
    ask: (facts) => (facts.credential === undefined ? undefined : facts.credential === 'refused'),
    yes: {
      refuse: [
        'invalid_token',
        'invalid_api_key',
        'api_key_required',
        'invalid_credentials',
        'field_invalid',
        'credentials_repeated',
        'cross_site_request',
        'email_unverified',
        'rate_limited',
        'unavailable',
      ],
      pick: (facts) => facts.credentialProblem,
    },
    no: to('permission_denied'),
  },
  permission_denied: {
    section: '§5.1.4',
    question: 'Is the action forbidden to this principal for every resource here?',
    ask: (facts) => facts.permission === 'denied',
    yes: to('denied_anonymous'),
    no: to('acceptable'),
  },
  denied_anonymous: {
    section: '§5.1.1',
    question: 'Is the caller anonymous?',
    ask: (facts) => facts.credential === 'absent',
    yes: refuse('no_token_provided'),
    no: refuse('forbidden'),
  },
} as const satisfies Nodes;
