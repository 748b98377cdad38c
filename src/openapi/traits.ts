/**
 * The constant properties of an operation that its statuses depend on, the questions of the decision graph that they
 * settle, and every end that stays possible. Statuses are derived from the graph that answers requests, so the document
 * omits none and promises none that is never sent.
 */

import type { AnswerName } from '../http/conduct/answers.ts';
import type { Facts } from '../http/conduct/facts.ts';
import { graph, start } from '../http/conduct/graph.ts';
import type { Edge, NodeName } from '../http/conduct/node.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import type { Permission } from '../model/access.ts';
import { anonymous, authenticated, type Principal } from '../model/principal.ts';

export type Traits = {
  readonly method: string;
  /** Accepted media types; empty: the operation ignores content. */
  readonly contentTypes: readonly string[];
  /** Content is accepted and may be left out. */
  readonly contentOptional: boolean;
  /** Content is taken as received, and a signature alone authenticates the request (§4.14). */
  readonly signed: boolean;
  /** Content of any type is accepted; `arrives`: as it arrives, and so without a content coding. */
  readonly raw: boolean;
  readonly arrives: boolean;
  /** An action at a path of its own (kernel/action.ts): its result has no validators and is not stored. */
  readonly action: boolean;
  /** When an action is answered without content; for an action whose response is a report, preferences do not apply. */
  readonly silent: 'always' | 'sometimes' | 'never';
  /** Callers that may use the operation at all. */
  readonly gate: Gate;
  readonly answersForms: boolean;
  readonly idempotent: boolean;
  readonly asynchronous: boolean;
  readonly matchRequired: boolean;
  readonly creates: 'always' | 'sometimes' | 'never';
  /** The operation runs after the response. */
  readonly queues: 'always' | 'sometimes' | 'never';
  /** A collection always exists; a member may be missing. */
  readonly mayBeMissing: boolean;
  /** The target may be hidden from the caller, and is then answered as missing. */
  readonly mayBeHidden: boolean;
  /** The target may be visible to the caller and still forbidden. */
  readonly mayBeClosed: boolean;
  /** The response to a read is a redirect. */
  readonly redirects: 'never' | 'sometimes' | 'always';
  /** Its result is at another URI. */
  readonly redirect: Facts['redirect'];
  readonly streams: boolean;
  /** Its representation may be served in ranges. */
  readonly ranges: boolean;
  /** It opens a WebSocket. */
  readonly converses: boolean;
  /** No rate limit applies unless the credential is bad. */
  readonly unlimited: boolean;
  /** Validators of its responses: entity tags for If-Match and If-None-Match, and dates. */
  readonly validators: 'none' | 'tag' | 'tag-and-date';
  /** Codes that its own stages return. */
  readonly codes: readonly ProblemCode[];
};

/** Callers that pass before any resource is read. */
export type Gate = { readonly anonymous: boolean; readonly known: boolean };

export const openGate: Gate = { anonymous: true, known: true };

const noScopes = authenticated({ id: '', scopes: [] });
const allScopes = authenticated({ id: '', scopes: ['read', 'write', 'webhooks', 'tunnel'] });

/** `known` is false if some authenticated principal is denied, since a key without the scope will be. */
export function gateOf(permissionOf: (principal: Principal) => Permission): Gate {
  const passes = (principal: Principal) => permissionOf(principal) !== 'denied';
  return { anonymous: passes(anonymous), known: passes(noScopes) && passes(allScopes) };
}

/** A GET that every caller may use on a target that always exists; operations state their differences. */
export const plainRead: Traits = {
  method: 'GET',
  contentTypes: [],
  contentOptional: false,
  signed: false,
  raw: false,
  arrives: false,
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
  redirect: undefined,
  streams: false,
  ranges: false,
  converses: false,
  unlimited: false,
  validators: 'tag',
  codes: [],
};

/** Codes with which any credential may be refused. */
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

/** Codes of reading content. Content under a signature is not decoded. */
function contentCodes({ signed }: Traits): readonly ProblemCode[] {
  const always = ['content_too_large', 'request_timeout'] as const;
  return signed ? always : [...always, 'content_malformed', 'content_missing'];
}

/** Questions that a header field answers: a request without it never gets the answers behind them. */
const asking = [
  ['Accept: text/event-stream', 'stream_asked'],
  ['Accept: text/html', 'browser_form'],
  ['Range', 'range_asked'],
  ['Prefer: respond-async', 'async_asked'],
  ['Prefer: return=minimal', 'minimal_asked'],
  ['Prefer: return=representation', 'deletion_representation'],
] as const satisfies readonly (readonly [field: string, node: NodeName])[];

/**
 * Returns every end of a request for this operation.
 * @param verifiedEmailRequired a correct password may still be refused
 */
export function endsOf(traits: Traits, verifiedEmailRequired: boolean): Ends {
  const raised: Partial<Record<NodeName, readonly ProblemCode[]>> = {
    rate_exceeded: ['rate_limited', ...traits.codes.filter((code) => code === 'upload_rate_limited')],
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
  const settled = settledBy(traits);
  // No preference makes an action silent: its output does.
  const open = asking.filter(
    ([, node]) => !settled.has(node) && !(traits.action && node === 'minimal_asked'),
  );
  const answersIf = (wanted: NodeName | undefined) => {
    const given = open.map(([, node]) => [node, node === wanted] as const);
    return reach(new Map([...settled, ...given]), () => []).answers;
  };
  const answers = answersIf(undefined);
  const asked = open.map(([field, node]) => [field, answersIf(node).difference(answers)] as const);
  return {
    answers,
    asked: new Map(asked.filter(([, found]) => found.size > 0)),
    refusals: reach(settled, (node) => raised[node]).refusals,
  };
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
    // Absent optional content counts as undefined content.
    ...(traits.contentOptional
      ? ([['content_present', true]] as const)
      : ([['content_defined', traits.contentTypes.length > 0]] as const)),
    ['content_raw', traits.raw],
    ['content_type_missing_query', method === 'QUERY'],
    ['creates_here', traits.creates === 'sometimes'],
    ['if_none_match_safe', safe],
    ['safe', safe],
    ['deletion', method === 'DELETE' && !traits.action],
    ['redirected', traits.redirect !== undefined],
    ['redirect_repeats', traits.redirect === 'temporary' || traits.redirect === 'permanent'],
    ['redirect_lasts', traits.redirect === 'permanent'],
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
  never('range_asked', traits.ranges && method === 'GET');
  // The document has no HEAD.
  never('fields_asked', false);
  for (const node of ['conversing', 'conversation_asked'] as const) settled.set(node, traits.converses);
  // A WebSocket is opened with GET.
  if (traits.converses) never('handshake_sound', method === 'GET');
  never('async_asked', traits.asynchronous);
  // With a signature, credentials, rates, Accept and conditions are not evaluated.
  for (const node of unjudged) never(node, !traits.signed);
  always('acceptable', traits.signed);
  always('content_coding_supported', traits.raw && !traits.arrives);
  never('queued', traits.queues !== 'never');
  always('queued', traits.queues === 'always');
  never('created', traits.creates !== 'never');
  always('created', traits.creates === 'always');
  never('browser_form', traits.answersForms);
  // An action always reports its result, if it has one.
  if (traits.action && traits.silent !== 'sometimes') {
    settled.set('minimal_asked', traits.silent === 'always');
  }
  return settled;
}

const unjudged = ['rate_exceeded', 'credential_refused', 'if_match_given', 'if_none_match_given'] as const;

function isSafe(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'QUERY';
}

type Ends = {
  /** Answers to a request that asks for no other. */
  readonly answers: ReadonlySet<AnswerName>;
  /** Further answers, by the header field that asks for them. */
  readonly asked: ReadonlyMap<string, ReadonlySet<AnswerName>>;
  readonly refusals: ReadonlySet<ProblemCode>;
};

/**
 * Follows every edge of the graph from its start.
 * @param settled questions with the same answer for every request of the operation; all others may go either way
 * @param raised the codes that the operation returns at a node that picks one; undefined: all of the node
 */
function reach(
  settled: ReadonlyMap<NodeName, boolean>,
  raised: (node: NodeName) => readonly ProblemCode[] | undefined,
): Pick<Ends, 'answers' | 'refusals'> {
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
