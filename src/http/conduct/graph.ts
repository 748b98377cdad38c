/**
 * The decision graph (§4, §7; RFC 9110 §13.2.2): which question is asked after which, and where each answer leads.
 * `decide` walks this very table and docs/reference/conduct.md draws it, so neither can drift from the other.
 *
 * Order, and why. What the message itself shows comes first; then who asks; then what the content is; then what stands.
 * Preconditions come after every other refusal, because RFC 9110 §13.2.1 ignores them where the
 * plain answer would not be 2xx or 412; the change itself comes last, inside the store's transaction.
 */
import type { ProblemCode } from '../problem.ts';
import type { AnswerName } from './answers.ts';
import type { Facts, Want } from './facts.ts';

export type Edge =
  | { readonly to: NodeName }
  | { readonly answer: AnswerName }
  | { readonly refuse: readonly ProblemCode[]; readonly pick?: (facts: Facts) => ProblemCode | null | undefined };

export type Node = {
  readonly section: string;
  readonly question: string;
  /** Undefined: the fact is not known yet, and `want` says how to come by it. */
  readonly ask: (facts: Facts) => boolean | undefined;
  readonly want?: Want;
  readonly yes: Edge;
  readonly no: Edge;
};

export type NodeName =
  | 'method_known'
  | 'target_fits'
  | 'target_valid'
  | 'host_valid'
  | 'fields_sound'
  | 'transfer_coding_understood'
  | 'expectation_met'
  | 'server_wide'
  | 'trace_asked'
  | 'trace_has_content'
  | 'routed'
  | 'preflight'
  | 'method_allowed'
  | 'options_asked'
  | 'credential_refused'
  | 'permission_denied'
  | 'denied_anonymous'
  | 'acceptable'
  | 'content_defined'
  | 'content_present'
  | 'content_type_given'
  | 'content_type_missing_query'
  | 'content_type_supported'
  | 'content_coding_supported'
  | 'content_fits'
  | 'content_sound'
  | 'idempotency_key_malformed'
  | 'idempotency_key_given'
  | 'idempotency_replay'
  | 'idempotency_running'
  | 'idempotency_other'
  | 'exists'
  | 'creates_here'
  | 'visible'
  | 'permitted'
  | 'refused_anonymous'
  | 'proposal_sound'
  | 'match_required'
  | 'if_match_given'
  | 'if_match_true'
  | 'if_unmodified_since_false'
  | 'if_none_match_given'
  | 'if_none_match_true'
  | 'if_none_match_safe'
  | 'if_modified_since_false'
  | 'safe'
  | 'elsewhere'
  | 'stream_asked'
  | 'async_asked'
  | 'superseded'
  | 'change_made'
  | 'deletion'
  | 'deletion_representation'
  | 'created'
  | 'browser_form'
  | 'minimal_asked';

const to = (node: NodeName): Edge => ({ to: node });
const answer = (name: AnswerName): Edge => ({ answer: name });
const refuse = (code: ProblemCode): Edge => ({ refuse: [code] });

export const start: NodeName = 'method_known';

export const graph: Readonly<Record<NodeName, Node>> = {
  // The message
  method_known: {
    section: 'RFC 9110 §9.1',
    question: 'Does the server know the method?',
    ask: (facts) => facts.methodKnown,
    yes: to('target_fits'),
    no: refuse('method_unknown'),
  },
  target_fits: {
    section: '§8',
    question: 'Is the request target within its length?',
    ask: (facts) => facts.targetFits,
    yes: to('target_valid'),
    no: refuse('target_too_long'),
  },
  target_valid: {
    section: 'RFC 9112 §3.2',
    question: 'Is the request target well-formed?',
    ask: (facts) => facts.targetValid,
    yes: to('host_valid'),
    no: refuse('target_invalid'),
  },
  host_valid: {
    section: 'RFC 9112 §3.2',
    question: 'Is there exactly one valid Host?',
    ask: (facts) => facts.hostValid,
    yes: to('fields_sound'),
    no: refuse('host_invalid'),
  },
  fields_sound: {
    section: 'RFC 9110 §5.3',
    question: 'Did each field that allows one value come at most once?',
    ask: (facts) => facts.fieldsSound,
    yes: to('transfer_coding_understood'),
    no: refuse('field_invalid'),
  },
  transfer_coding_understood: {
    section: 'RFC 9112 §6.1',
    question: 'Is the transfer coding understood?',
    ask: (facts) => facts.transferCodingUnderstood,
    yes: to('expectation_met'),
    no: refuse('transfer_coding_unknown'),
  },
  expectation_met: {
    section: 'RFC 9110 §10.1.1',
    question: 'Can the expectation be met?',
    ask: (facts) => facts.expectationMet,
    yes: to('server_wide'),
    no: refuse('expectation_failed'),
  },
  server_wide: {
    section: '§4.8',
    question: 'Is the target the server as a whole (OPTIONS *)?',
    ask: (facts) => facts.serverWide,
    yes: answer('server_options'),
    no: to('trace_asked'),
  },
  trace_asked: {
    section: '§4.11',
    question: 'Is it TRACE, and is TRACE enabled?',
    ask: (facts) => facts.traceEnabled && facts.method === 'TRACE',
    yes: to('trace_has_content'),
    no: to('routed'),
  },
  trace_has_content: {
    section: '§4.11.1',
    question: 'Does the TRACE carry content?',
    ask: (facts) => facts.hasContent,
    yes: refuse('content_unexpected'),
    no: answer('trace'),
  },
  routed: {
    section: '§7',
    question: 'Is there a resource behind the path?',
    ask: (facts) => facts.routed,
    yes: to('preflight'),
    no: refuse('not_found'),
  },
  preflight: {
    section: '§4.8',
    question: 'Is it a cross-origin preflight?',
    ask: (facts) => facts.preflight,
    yes: answer('preflight'),
    no: to('method_allowed'),
  },
  method_allowed: {
    section: 'RFC 9110 §15.5.6',
    question: 'Does the resource support the method?',
    ask: (facts) => facts.methodAllowed,
    yes: to('options_asked'),
    no: refuse('method_not_allowed'),
  },
  options_asked: {
    section: '§4.8',
    question: 'Is it OPTIONS?',
    ask: (facts) => facts.method === 'OPTIONS',
    yes: answer('options'),
    no: to('credential_refused'),
  },

  // Who asks
  credential_refused: {
    section: '§5.1',
    question: 'Was a credential sent that is not good?',
    want: 'principal',
    ask: (facts) => (facts.credential === undefined ? undefined : facts.credential === 'refused'),
    yes: {
      refuse: ['invalid_token', 'invalid_api_key', 'api_key_required', 'invalid_credentials', 'field_invalid'],
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

  // What is asked
  acceptable: {
    section: 'RFC 9110 §12.5.1',
    question: 'Is there a representation that Accept allows?',
    ask: (facts) => facts.acceptable,
    yes: to('content_defined'),
    no: refuse('not_acceptable'),
  },
  content_defined: {
    section: '§4.1',
    question: 'Has content a meaning with this method here?',
    ask: (facts) => facts.contentDefined,
    yes: to('content_present'),
    no: to('exists'),
  },
  content_present: {
    section: '§4.4, §4.9.1',
    question: 'Is there content, or a type for empty content?',
    ask: (facts) => facts.hasContent || facts.contentTypeGiven,
    yes: to('content_type_given'),
    no: refuse('content_missing'),
  },
  content_type_given: {
    section: '§4.4.1, §4.9.1',
    question: 'Is Content-Type given?',
    ask: (facts) => facts.contentTypeGiven,
    yes: to('content_type_supported'),
    no: to('content_type_missing_query'),
  },
  content_type_missing_query: {
    section: 'RFC 10008 §2',
    question: 'Is it a QUERY, which must name its type?',
    ask: (facts) => facts.method === 'QUERY',
    yes: refuse('content_type_missing'),
    no: refuse('media_type_unsupported'),
  },
  content_type_supported: {
    section: 'RFC 9110 §15.5.16',
    question: 'Does the resource take this media type with this method?',
    ask: (facts) => facts.contentTypeSupported,
    yes: to('content_coding_supported'),
    no: refuse('media_type_unsupported'),
  },
  content_coding_supported: {
    section: 'RFC 9110 §8.4',
    question: 'Can the content coding be decoded?',
    ask: (facts) => facts.contentCodingSupported,
    yes: to('content_fits'),
    no: refuse('content_coding_unsupported'),
  },
  content_fits: {
    section: 'RFC 9110 §15.5.14',
    question: 'Is the announced length within the limit?',
    ask: (facts) => facts.contentFits,
    yes: to('content_sound'),
    no: refuse('content_too_large'),
  },
  content_sound: {
    section: '§7',
    question: 'Does the content follow its media type?',
    want: 'content',
    ask: (facts) => (facts.contentProblem === undefined ? undefined : facts.contentProblem === null),
    yes: to('idempotency_key_malformed'),
    no: {
      refuse: ['content_malformed', 'content_missing', 'content_too_large', 'patch_malformed', 'request_timeout'],
      pick: (facts) => facts.contentProblem,
    },
  },
  idempotency_key_malformed: {
    section: 'Idempotency-Key §2.1',
    question: 'Is the Idempotency-Key malformed?',
    ask: (facts) => facts.idempotencyKey === 'malformed',
    yes: refuse('field_invalid'),
    no: to('idempotency_key_given'),
  },
  idempotency_key_given: {
    section: 'Idempotency-Key §2',
    question: 'Does the request carry an Idempotency-Key?',
    ask: (facts) => facts.idempotencyKey === 'given',
    yes: to('idempotency_replay'),
    no: to('exists'),
  },
  idempotency_replay: {
    section: 'Idempotency-Key §2.6',
    question: 'Was this very request answered before?',
    want: 'idempotency',
    ask: (facts) => (facts.idempotency === undefined ? undefined : facts.idempotency === 'replay'),
    yes: to('change_made'),
    no: to('idempotency_running'),
  },
  idempotency_running: {
    section: 'Idempotency-Key §2.6',
    question: 'Is the first request with this key still running?',
    ask: (facts) => facts.idempotency === 'running',
    yes: refuse('idempotency_key_in_use'),
    no: to('idempotency_other'),
  },
  idempotency_other: {
    section: 'Idempotency-Key §2.7',
    question: 'Was the key used for another request?',
    ask: (facts) => facts.idempotency === 'other',
    yes: refuse('idempotency_key_reused'),
    no: to('exists'),
  },

  // What stands
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
        'query_parameter_invalid',
        'query_unprocessable',
        'content_too_large',
        'result_gone',
      ],
      pick: (facts) => facts.proposalProblem,
    },
  },

  // Preconditions
  match_required: {
    section: 'RFC 6585 §3',
    question: 'Does the resource demand If-Match, and is it missing?',
    want: 'preconditions',
    ask: (facts) =>
      facts.ifMatch === undefined
        ? undefined
        : facts.matchRequired && facts.exists === true && facts.ifMatch === 'absent',
    yes: refuse('precondition_required'),
    no: to('if_match_given'),
  },
  if_match_given: {
    section: 'RFC 9110 §13.2.2 step 1',
    question: 'Is If-Match given?',
    ask: (facts) => facts.ifMatch !== 'absent',
    yes: to('if_match_true'),
    no: to('if_unmodified_since_false'),
  },
  if_match_true: {
    section: 'RFC 9110 §13.1.1',
    question: 'Does If-Match name what stands (strong comparison)?',
    ask: (facts) => facts.ifMatch === 'true',
    yes: to('if_none_match_given'),
    no: refuse('precondition_failed'),
  },
  if_unmodified_since_false: {
    section: 'RFC 9110 §13.2.2 step 2',
    question: 'Has it changed since If-Unmodified-Since?',
    ask: (facts) => facts.ifUnmodifiedSince === 'false',
    yes: refuse('precondition_failed'),
    no: to('if_none_match_given'),
  },
  if_none_match_given: {
    section: 'RFC 9110 §13.2.2 step 3',
    question: 'Is If-None-Match given?',
    ask: (facts) => facts.ifNoneMatch !== 'absent',
    yes: to('if_none_match_true'),
    no: to('if_modified_since_false'),
  },
  if_none_match_true: {
    section: 'RFC 9110 §13.1.2',
    question: 'Does If-None-Match name none of what stands (weak comparison)?',
    ask: (facts) => facts.ifNoneMatch === 'true',
    yes: to('safe'),
    no: to('if_none_match_safe'),
  },
  if_none_match_safe: {
    section: 'RFC 9110 §13.1.2',
    question: 'Is the method GET, HEAD or QUERY?',
    ask: (facts) => facts.method === 'GET' || facts.method === 'HEAD' || facts.method === 'QUERY',
    yes: answer('not_modified'),
    no: refuse('precondition_failed'),
  },
  if_modified_since_false: {
    section: 'RFC 9110 §13.2.2 step 4',
    question: 'Is it unchanged since If-Modified-Since (GET, HEAD, QUERY)?',
    ask: (facts) => facts.ifModifiedSince === 'false',
    yes: answer('not_modified'),
    no: to('safe'),
  },

  // The answer
  safe: {
    section: 'RFC 9110 §9.2.1',
    question: 'Is the method GET, HEAD or QUERY?',
    ask: (facts) => facts.method === 'GET' || facts.method === 'HEAD' || facts.method === 'QUERY',
    yes: to('elsewhere'),
    no: to('async_asked'),
  },
  elsewhere: {
    section: '§4.12',
    question: 'Does the result lie at another URI?',
    ask: (facts) => facts.elsewhere,
    yes: answer('see_other'),
    no: to('stream_asked'),
  },
  stream_asked: {
    section: '§6',
    question: 'Is the event stream asked for?',
    ask: (facts) => facts.streamAsked,
    yes: answer('stream'),
    no: answer('representation'),
  },
  async_asked: {
    section: 'RFC 7240 §4.1',
    question: 'Is an asynchronous answer preferred, and offered here?',
    ask: (facts) => facts.asyncAsked,
    yes: answer('accepted'),
    no: to('superseded'),
  },
  superseded: {
    section: 'design §3',
    question: 'Did another change come first, so that the walk must look again?',
    want: 'result',
    ask: (facts) => (facts.result === undefined ? undefined : facts.result === 'superseded'),
    yes: to('exists'),
    no: to('change_made'),
  },
  change_made: {
    section: '§7',
    question: 'Did the store make the change?',
    ask: (facts) => facts.result === 'made',
    yes: to('deletion'),
    no: {
      refuse: ['unique_taken', 'dependants_exist', 'reference_missing', 'unavailable'],
      pick: (facts) => facts.resultProblem,
    },
  },
  deletion: {
    section: '§4.7',
    question: 'Is it DELETE?',
    ask: (facts) => facts.method === 'DELETE',
    yes: to('deletion_representation'),
    no: to('created'),
  },
  deletion_representation: {
    section: 'RFC 7240 §4.2',
    question: 'Is the deleted representation asked for?',
    ask: (facts) => facts.representationAsked,
    yes: answer('deleted_representation'),
    no: answer('deleted'),
  },
  created: {
    section: '§4.4.2, §4.5.3',
    question: 'Was a resource made?',
    ask: (facts) => facts.created,
    yes: to('browser_form'),
    no: to('minimal_asked'),
  },
  browser_form: {
    section: '§4.12',
    question: 'Was it a browser form that wants a page?',
    ask: (facts) => facts.browserForm,
    yes: answer('created_see_other'),
    no: answer('created'),
  },
  minimal_asked: {
    section: 'RFC 7240 §4.2',
    question: 'Is a minimal answer preferred?',
    ask: (facts) => facts.minimalAsked,
    yes: answer('changed_silently'),
    no: answer('changed'),
  },
};
