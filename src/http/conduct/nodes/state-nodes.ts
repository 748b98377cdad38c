/**
 * Nodes about the state of the resource: whether it exists, whether the principal may see and change it, and whether the request is valid for
 * it (§4.5-§4.7, §5.1).
 */
import { type Nodes, refuse, to } from '../node.ts';

export const stateNodes = {
  exists: {
    section: '§7.1',
    question: 'Does a resource exist at the target?',
    want: 'state',
    ask: (facts) => facts.exists,
    yes: to('visible'),
    no: to('creates_here'),
  },
  creates_here: {
    section: '§4.5.3',
    question: 'Does PUT create resources here?',
    ask: (facts) => facts.createsHere,
    yes: to('permitted'),
    no: refuse('not_found'),
  },
  visible: {
    section: '§5.1.4',
    question: 'May the principal see that it exists?',
    ask: (facts) => facts.visible,
    yes: to('permitted'),
    no: refuse('not_found'),
  },
  permitted: {
    section: '§4.7.1, §5.1.4',
    question: 'May the principal do this to it?',
    ask: (facts) => facts.permitted,
    yes: to('proposal_sound'),
    no: to('refused_anonymous'),
  },
  refused_anonymous: {
    section: '§5.1.1',
    question: 'Is the caller anonymous?',
    ask: (facts) => facts.credential === 'absent',
    yes: refuse('no_token_provided'),
    no: refuse('forbidden'),
  },
  proposal_sound: {
    section: '§4.5.2, §4.6.3, §4.9.1',
    question: 'Is the request valid for the current state?',
    want: 'proposal',
    ask: (facts) => (facts.proposalProblem === undefined ? undefined : facts.proposalProblem === null),
    yes: to('match_required'),
    no: {
      refuse: [
        'field_missing',
        'field_unpatchable',
        'patch_malformed',
        'patch_not_applicable',
        'validation_failed',
        'content_malformed',
        'handshake_invalid',
        'query_parameter_invalid',
        'query_unprocessable',
        'content_too_large',
        'result_gone',
        'sign_in_invalid',
        'forbidden',
        'email_unverified',
        'account_exists',
        'provider_unavailable',
        'refused_by_application',
      ],
      pick: (facts) => facts.proposalProblem,
    },
  },
} as const satisfies Nodes;
