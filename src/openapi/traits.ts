/**
 * What is always so of an operation, as far as its statuses depend on it, what that settles in the decision graph, and every end that it
 * leaves open. Statuses are read off the very table that answers requests, so none can be forgotten here, nor be promised and never sent.
 */

import type { AnswerName } from '../http/conduct/answers.ts';
import { graph, start } from '../http/conduct/graph.ts';
import type { Edge, NodeName } from '../http/conduct/node.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import type { Permission } from '../model/access.ts';
import { anonymous, authenticated, type Principal } from '../model/principal.ts';

export type Traits = {
  readonly method: string;
  /** Media types of content that has a meaning; empty: none has. */
  readonly contentTypes: readonly string[];
  /** Content has a meaning and may be left out. */
  readonly contentOptional: boolean;
  /** Content is taken as it came, and a signature alone decides who asks (§4.14). */
  readonly signed: boolean;
  /** Done at a path of its own (resources/action): what comes of it has no validators and is not kept. */
  readonly action: boolean;
  /** Whether what is done is answered without content; where its answer is a report, no preference decides that. */
  readonly silent: 'always' | 'sometimes' | 'never';
  /** Who may call it at all. */
  readonly gate: Gate;
  readonly answersForms: boolean;
  readonly idempotent: boolean;
  readonly asynchronous: boolean;
  readonly matchRequired: boolean;
  readonly creates: 'always' | 'sometimes' | 'never';
  /** Whether what is asked for is done after the answer. */
  readonly queues: 'always' | 'sometimes' | 'never';
  /** A collection stands always, a member may be missing. */
  readonly mayBeMissing: boolean;
  /** What stands may be hidden from who asks, and is then as if missing. */
  readonly mayBeHidden: boolean;
  /** What stands may be closed to who asks although seen. */
  readonly mayBeClosed: boolean;
  /** Whether the answer to a read lies elsewhere. */
  readonly redirects: 'never' | 'sometimes' | 'always';
  readonly streams: boolean;
  /** It is spoken to over a WebSocket. */
  readonly converses: boolean;
  /** No rate limit applies, unless the credential is bad. */
  readonly unlimited: boolean;
  /** Its answers can be compared with If-Match and If-None-Match, and with the date fields. */
  readonly validators: 'none' | 'tag' | 'tag-and-date';
  /** Codes that its own stages raise. */
  readonly codes: readonly ProblemCode[];
};

/** Which callers are refused before any resource is looked at. */
export type Gate = { readonly anonymous: boolean; readonly known: boolean };

export const openGate: Gate = { anonymous: true, known: true };

const noScopes = authenticated({ id: '', scopes: [] });
const allScopes = authenticated({ id: '', scopes: ['read', 'write', 'webhooks', 'tunnel'] });

/** `known` is false where some authenticated principal is refused outright: one whose key lacks the scope will be. */
export function gateOf(permissionOf: (principal: Principal) => Permission): Gate {
  const passes = (principal: Principal) => permissionOf(principal) !== 'denied';
  return { anonymous: passes(anonymous), known: passes(noScopes) && passes(allScopes) };
}

/** A read by GET that anyone may do of something that always stands; operations say how they differ. */
export const plainRead: Traits = {
  method: 'GET',
  contentTypes: [],
  contentOptional: false,
  signed: false,
  action: false,
  silent: 'never',
  gate: openGate,
  answersForms: false,
  idempotent: false,
  asynchronous: false,
  matchRequired: false,
  creates: 'never',
  queues: 'never',
  mayBeMissing: false,
  mayBeHidden: false,
  mayBeClosed: false,
  redirects: 'never',
  streams: false,
  converses: false,
  unlimited: false,
  validators: 'tag',
  codes: [],
};

/** What any credential may be refused with. */
const credentialCodes: readonly ProblemCode[] = [
  'api_key_required',
  'credentials_repeated',
  'field_invalid',
  'invalid_api_key',
  'invalid_credentials',
  'invalid_token',
  'rate_limited',
  'unavailable',
];

/** Codes that reading content can raise. What a signature covers is taken as it came. */
function contentCodes({ signed }: Traits): readonly ProblemCode[] {
  const always = ['content_too_large', 'request_timeout'] as const;
  return signed ? always : [...always, 'content_malformed', 'content_missing'];
}

/**
 * Every way that a request for this operation can end.
 * @param verifiedEmailRequired whether a right password may still be refused
 */
export function endsOf(traits: Traits, verifiedEmailRequired: boolean): Ends {
  const raised: Partial<Record<NodeName, readonly ProblemCode[]>> = {
    credential_refused: [
      ...credentialCodes,
      // The same-origin policy lets any page open a WebSocket to any server.
      ...(isSafe(traits.method) && !traits.converses ? [] : (['cross_site_request'] as const)),
      ...(verifiedEmailRequired ? (['email_unverified'] as const) : []),
    ],
    content_sound: [...contentCodes(traits), ...traits.codes],
    proposal_sound: traits.codes,
    change_made: traits.codes,
  };
  return reach(settledBy(traits), (node) => raised[node]);
}

function settledBy(traits: Traits): ReadonlyMap<NodeName, boolean> {
  const { method, gate, validators } = traits;
  const safe = isSafe(method);
  const settled = new Map<NodeName, boolean>([
    ['method_known', true],
    ['server_wide', false],
    ['trace_asked', method === 'TRACE'],
    ['routed', true],
    ['method_allowed', true],
    ['options_asked', method === 'OPTIONS'],
    // What may be left out has no meaning where it is.
    ...(traits.contentOptional
      ? ([['content_present', true]] as const)
      : ([['content_defined', traits.contentTypes.length > 0]] as const)),
    ['content_raw', traits.signed],
    ['content_type_missing_query', method === 'QUERY'],
    ['creates_here', traits.creates === 'sometimes'],
    ['if_none_match_safe', safe],
    ['safe', safe],
    ['deletion', method === 'DELETE'],
  ]);
  const never = (node: NodeName, holds: boolean) => {
    if (!holds) settled.set(node, false);
  };
  const always = (node: NodeName, holds: boolean) => {
    if (holds) settled.set(node, true);
  };
  never('preflight', method === 'OPTIONS');
  never('permission_denied', !gate.anonymous || !gate.known);
  always('denied_anonymous', gate.known);
  never('denied_anonymous', !gate.anonymous);
  never('idempotency_key_given', traits.idempotent);
  never('idempotency_key_malformed', traits.idempotent);
  always('exists', !traits.mayBeMissing);
  always('visible', !traits.mayBeHidden);
  always('permitted', !traits.mayBeClosed);
  never('refused_anonymous', gate.anonymous);
  always('proposal_sound', traits.codes.length === 0);
  never('match_required', traits.matchRequired);
  never('if_unmodified_since_false', validators === 'tag-and-date');
  never('if_modified_since_false', safe && validators === 'tag-and-date');
  always('if_none_match_true', validators === 'none');
  never('elsewhere', traits.redirects !== 'never');
  always('elsewhere', traits.redirects === 'always');
  never('stream_asked', traits.streams);
  for (const node of ['conversing', 'conversation_asked'] as const) settled.set(node, traits.converses);
  // A WebSocket is opened with GET.
  if (traits.converses) never('handshake_sound', method === 'GET');
  never('async_asked', traits.asynchronous);
  // Credentials, rates, Accept and conditions are not looked at where a signature decides.
  for (const node of unjudged) never(node, !traits.signed);
  always('acceptable', traits.signed);
  never('queued', traits.queues !== 'never');
  always('queued', traits.queues === 'always');
  never('created', traits.creates !== 'never');
  always('created', traits.creates === 'always');
  never('browser_form', traits.answersForms);
  // An action always tells what it did, where there is anything to tell.
  if (traits.action && traits.silent !== 'sometimes') {
    settled.set('minimal_asked', traits.silent === 'always');
  }
  return settled;
}

const unjudged = ['rate_exceeded', 'credential_refused', 'if_match_given', 'if_none_match_given'] as const;

function isSafe(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'QUERY';
}

export type Ends = {
  readonly answers: ReadonlySet<AnswerName>;
  readonly refusals: ReadonlySet<ProblemCode>;
};

/**
 * @param settled questions whose answer is the same for every request of the operation; all others may go either way
 * @param raised the codes that the operation raises at a node that picks one; undefined: any that the graph names there
 */
function reach(
  settled: ReadonlyMap<NodeName, boolean>,
  raised: (node: NodeName) => readonly ProblemCode[] | undefined,
): Ends {
  const answers = new Set<AnswerName>();
  const refusals = new Set<ProblemCode>();
  const seen = new Set<NodeName>();
  const waiting: NodeName[] = [start];
  const follow = (from: NodeName, edge: Edge) => {
    if ('to' in edge) waiting.push(edge.to);
    else if ('answer' in edge) answers.add(edge.answer);
    else {
      const picked = edge.pick === undefined ? undefined : raised(from);
      for (const code of picked ?? edge.refuse) refusals.add(code);
    }
  };
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (seen.has(name)) continue;
    seen.add(name);
    const said = settled.get(name);
    if (said !== false) follow(name, graph[name].yes);
    if (said !== true) follow(name, graph[name].no);
  }
  return { answers, refusals };
}
