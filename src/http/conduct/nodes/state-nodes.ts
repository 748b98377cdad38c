/**
 * What stands at the target, whether the principal may see and do, and whether the request makes sense against
 * it (§4.5-§4.7, §5.1).
 */
import { refuse, to } from '../edge.ts';
import type { Nodes } from '../node.ts';

export const stateNodes = {
  exists: {
    section: '§7',
    question: 'Does a resource exist at the target?',
    want: 'state',
    ask: (facts) => facts.exists,
    yes: to('visible'),
    no: to('creates_here'),
  },
  creates_here: {
    section: '§4.5.3',
    question: 'Is PUT defined to create here?',
    ask: (facts) => facts.createsHere,
    yes: to('permitted'),
    no: refuse('not_found'),
  },
  visible: {
    section: '§5.1',
    question: 'May the principal know that it exists?',
    ask: (facts) => facts.visible,
    yes: to('permitted'),
    no: refuse('not_found'),
  },
  permitted: {
    section: '§4.7.1, §5.1',
    question: 'May the principal do this to it?',
    ask: (facts) => facts.permitted,
    yes: to('proposal_sound'),
    no: to('refused_anonymous'),
  },
  refused_anonymous: {
    section: '§5.1',
    question: 'Is the caller unknown?',
    ask: (facts) => facts.credential === 'absent',
    yes: refuse('no_token_provided'),
    no: refuse('forbidden'),
  },
  proposal_sound: {
    section: '§4.5.2, §4.6.3, §4.9',
    question: 'Is what the request asks for sound against what stands?',
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
      ],
      pick: (facts) => facts.proposalProblem,
    },
  },
} as const satisfies Nodes;
