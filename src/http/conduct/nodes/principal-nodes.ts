/**
 * Who asks (§5.1): a caller who asks too often is refused first, so that guessing credentials is bounded as well; a bad
 * credential is refused before anything else is looked at, and what is closed to a principal in any case is refused
 * before anything is read.
 */
import { refuse, to } from '../edge.ts';
import type { Nodes } from '../node.ts';

export const principalNodes = {
  rate_exceeded: {
    section: '§7, RFC 6585 §4',
    question: 'Has the caller used up the requests that it may make?',
    want: 'principal',
    ask: (facts) => facts.rateExceeded,
    yes: refuse('rate_limited'),
    no: to('credential_refused'),
  },
  credential_refused: {
    section: '§5.1',
    question: 'Was a credential sent that is not good?',
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
    section: '§5.1',
    question: 'Is the action closed to this principal whatever stands here?',
    ask: (facts) => facts.permission === 'denied',
    yes: to('denied_anonymous'),
    no: to('acceptable'),
  },
  denied_anonymous: {
    section: '§5.1',
    question: 'Is the caller unknown?',
    ask: (facts) => facts.credential === 'absent',
    yes: refuse('no_token_provided'),
    no: refuse('forbidden'),
  },
} as const satisfies Nodes;
