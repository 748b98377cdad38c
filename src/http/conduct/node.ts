/** A node of the decision graph: one question about the facts, and an edge for each answer. */
import type { ProblemCode } from '../problem-registry.ts';
import type { AnswerName } from './answers.ts';
import type { Facts, Want } from './facts.ts';

export type Node = {
  readonly section: string;
  readonly question: string;
  /** Undefined: the fact is unknown, and `want` says how to gather it. */
  readonly ask: (facts: Facts) => boolean | undefined;
  readonly want?: Want;
  readonly yes: Edge;
  readonly no: Edge;
};

/** To another node, to a success, or to a refusal with one of these codes, which `pick` chooses. */
export type Edge =
  | { readonly to: NodeName }
  | { readonly answer: AnswerName }
  | {
      readonly refuse: readonly ProblemCode[];
      readonly pick?: (facts: Facts) => ProblemCode | null | undefined;
    };

export type Nodes = { readonly [N in NodeName]?: Node };

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
  | 'conversing'
  | 'handshake_absent'
  | 'handshake_sound'
  | 'rate_exceeded'
  | 'credential_refused'
  | 'permission_denied'
  | 'denied_anonymous'
  | 'acceptable'
  | 'content_defined'
  | 'content_raw'
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
  | 'redirect_repeats'
  | 'redirect_lasts'
  | 'stream_asked'
  | 'conversation_asked'
  | 'range_asked'
  | 'fields_asked'
  | 'range_applies'
  | 'range_satisfiable'
  | 'async_asked'
  | 'superseded'
  | 'change_made'
  | 'redirected'
  | 'deletion'
  | 'deletion_representation'
  | 'queued'
  | 'created'
  | 'browser_form'
  | 'minimal_asked';

/** The three kinds of edges, with short names so that a node reads as a sentence. */
export function to(node: NodeName): Edge {
  return { to: node };
}

export function answer(name: AnswerName): Edge {
  return { answer: name };
}

export function refuse(code: ProblemCode): Edge {
  return { refuse: [code] };
}
