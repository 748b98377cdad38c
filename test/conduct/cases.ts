/** Requests as facts, the end that each leads to in the decision graph, and every node on the way there. */
import type { Facts } from '../../src/http/conduct/facts.ts';

/** A GET of a resource that is there, by anyone, with nothing special about it. */
export const plainRead: Facts = {
  method: 'GET',
  methodKnown: true,
  targetFits: true,
  targetValid: true,
  hostValid: true,
  fieldsSound: true,
  transferCodingUnderstood: true,
  expectationMet: true,
  serverWide: false,
  traceEnabled: false,
  hasContent: false,
  routed: true,
  methodAllowed: true,
  preflight: false,
  acceptable: true,
  streamAsked: false,
  fieldsAsked: false,
  rangeAsked: false,
  conversing: false,
  handshake: 'absent',
  contentDefined: false,
  contentRaw: false,
  contentTypeGiven: false,
  contentTypeSupported: false,
  contentCodingSupported: true,
  contentFits: true,
  matchRequired: false,
  reports: false,
  redirect: undefined,
  asyncAsked: false,
  minimalAsked: false,
  representationAsked: false,
  browserForm: false,
  idempotencyKey: 'absent',
  createsHere: false,
  credential: 'absent',
  credentialProblem: undefined,
  permission: 'granted',
  rateProblem: null,
  contentProblem: null,
  idempotency: undefined,
  exists: true,
  visible: true,
  permitted: true,
  elsewhere: false,
  proposalProblem: null,
  ifMatch: 'absent',
  ifUnmodifiedSince: 'absent',
  ifNoneMatch: 'absent',
  ifModifiedSince: 'absent',
  ranges: undefined,
  result: undefined,
  resultProblem: undefined,
  created: undefined,
  queued: undefined,
  told: undefined,
};

/** A PATCH with JSON content that the store accepts. */
export const plainWrite: Facts = {
  ...plainRead,
  method: 'PATCH',
  hasContent: true,
  contentDefined: true,
  contentTypeGiven: true,
  contentTypeSupported: true,
  credential: 'accepted',
  result: 'made',
  created: false,
  queued: false,
};

const message =
  'method_known host_valid fields_sound transfer_coding_understood expectation_met preflight target_fits target_valid server_wide';
const routed = `${message} trace_asked routed`;
const who = `${routed} method_allowed options_asked conversing rate_exceeded credential_refused permission_denied`;
const asked = `${who} acceptable content_defined`;
const meant = `${asked} content_raw`;
const typed = `${meant} content_present content_type_given`;
const read = `${typed} content_type_supported content_coding_supported content_fits content_sound`;
const rawRead = `${meant} content_coding_supported content_fits content_sound`;
const keys = 'idempotency_key_malformed idempotency_key_given';
const keyed = `${read} ${keys}`;
const stands = 'exists visible permitted proposal_sound match_required';
const unconditional =
  'if_match_given if_unmodified_since_false if_none_match_given if_modified_since_false safe';
const readTrace = `${asked} ${keys} ${stands} ${unconditional}`;
const rangedTrace = `${readTrace} elsewhere stream_asked conversation_asked range_asked range_applies`;
const writeTrace = `${keyed} ${stands} ${unconditional} async_asked`;
const made = `${writeTrace} superseded change_made`;

type Case = readonly [title: string, facts: Partial<Facts>, end: string, trace: string];

export const reads: readonly Case[] = [
  [
    'answers a plain read',
    {},
    'representation',
    `${readTrace} elsewhere stream_asked conversation_asked range_asked fields_asked`,
  ],
  ['refuses a method it does not know', { methodKnown: false }, 'method_unknown', 'method_known'],
  [
    'refuses a target that is too long',
    { targetFits: false },
    'target_too_long',
    'method_known host_valid fields_sound transfer_coding_understood expectation_met preflight target_fits',
  ],
  [
    'refuses a malformed target',
    { targetValid: false },
    'target_invalid',
    'method_known host_valid fields_sound transfer_coding_understood expectation_met preflight target_fits target_valid',
  ],
  ['refuses a bad Host', { hostValid: false }, 'host_invalid', 'method_known host_valid'],
  [
    'refuses a repeated singleton',
    { fieldsSound: false },
    'field_invalid',
    'method_known host_valid fields_sound',
  ],
  [
    'refuses a transfer coding it does not know',
    { transferCodingUnderstood: false },
    'transfer_coding_unknown',
    'method_known host_valid fields_sound transfer_coding_understood',
  ],
  [
    'refuses an expectation it cannot meet',
    { expectationMet: false },
    'expectation_failed',
    'method_known host_valid fields_sound transfer_coding_understood expectation_met',
  ],
  ['answers OPTIONS *', { method: 'OPTIONS', serverWide: true }, 'server_options', message],
  [
    'traces when enabled',
    { method: 'TRACE', traceEnabled: true },
    'trace',
    `${message} trace_asked trace_has_content`,
  ],
  [
    'refuses TRACE with content',
    { method: 'TRACE', traceEnabled: true, hasContent: true },
    'content_unexpected',
    `${message} trace_asked trace_has_content`,
  ],
  ['finds no resource', { routed: false }, 'not_found', routed],
  [
    'answers a preflight before anything else',
    { method: 'OPTIONS', preflight: true },
    'preflight',
    'method_known host_valid fields_sound transfer_coding_understood expectation_met preflight',
  ],
  [
    'refuses a method the resource lacks',
    { methodAllowed: false },
    'method_not_allowed',
    `${routed} method_allowed`,
  ],
  [
    'answers OPTIONS without a credential',
    { method: 'OPTIONS' },
    'options',
    `${routed} method_allowed options_asked`,
  ],
  [
    'refuses a caller who asks too often before it says anything of the credential',
    { rateProblem: 'rate_limited', credential: 'refused', credentialProblem: 'invalid_token' },
    'rate_limited',
    `${routed} method_allowed options_asked conversing rate_exceeded`,
  ],
  [
    'refuses a bad credential',
    { credential: 'refused', credentialProblem: 'invalid_token' },
    'invalid_token',
    `${routed} method_allowed options_asked conversing rate_exceeded credential_refused`,
  ],
  [
    'asks a stranger for a credential',
    { permission: 'denied' },
    'no_token_provided',
    `${who} denied_anonymous`,
  ],
  [
    'forbids a known caller what its kind may never do',
    { permission: 'denied', credential: 'accepted' },
    'forbidden',
    `${who} denied_anonymous`,
  ],
  ['has nothing that Accept allows', { acceptable: false }, 'not_acceptable', `${who} acceptable`],
  ['finds nothing at the target', { exists: false }, 'not_found', `${asked} ${keys} exists creates_here`],
  [
    'hides what the caller may not know of',
    { visible: false },
    'not_found',
    `${asked} ${keys} exists visible`,
  ],
  [
    'asks a stranger for a credential for this very resource',
    { permitted: false },
    'no_token_provided',
    `${asked} ${keys} exists visible permitted refused_anonymous`,
  ],
  [
    'forbids a known caller this very resource',
    { permitted: false, credential: 'accepted' },
    'forbidden',
    `${asked} ${keys} exists visible permitted refused_anonymous`,
  ],
  [
    'refuses a query component that makes no sense',
    { proposalProblem: 'query_parameter_invalid' },
    'query_parameter_invalid',
    `${asked} ${keys} exists visible permitted proposal_sound`,
  ],
  [
    'answers 304 to a tag that still stands',
    { ifNoneMatch: 'false' },
    'not_modified',
    `${asked} ${keys} ${stands} if_match_given if_unmodified_since_false if_none_match_given if_none_match_true if_none_match_safe`,
  ],
  [
    'answers in full when no tag matches, whatever the date says',
    { ifNoneMatch: 'true', ifModifiedSince: 'false' },
    'representation',
    `${asked} ${keys} ${stands} if_match_given if_unmodified_since_false if_none_match_given if_none_match_true safe elsewhere stream_asked conversation_asked range_asked fields_asked`,
  ],
  [
    'answers 304 to a date without a change since',
    { ifModifiedSince: 'false' },
    'not_modified',
    `${asked} ${keys} ${stands} if_match_given if_unmodified_since_false if_none_match_given if_modified_since_false`,
  ],
  [
    'lets If-Match alone decide, not its date sibling',
    { ifMatch: 'true', ifUnmodifiedSince: 'false' },
    'representation',
    `${asked} ${keys} ${stands} if_match_given if_match_true if_none_match_given if_modified_since_false safe elsewhere stream_asked conversation_asked range_asked fields_asked`,
  ],
  [
    'leads to a result elsewhere',
    { elsewhere: true },
    'see_other',
    `${readTrace} elsewhere redirect_repeats`,
  ],
  [
    'tells to repeat the request elsewhere',
    { elsewhere: true, redirect: 'temporary' },
    'repeat_elsewhere',
    `${readTrace} elsewhere redirect_repeats redirect_lasts`,
  ],
  [
    'tells that the target has moved for good',
    { elsewhere: true, redirect: 'permanent' },
    'moved',
    `${readTrace} elsewhere redirect_repeats redirect_lasts`,
  ],
  [
    'asks for an upgrade where a resource is only spoken to',
    { conversing: true },
    'upgrade_required',
    `${routed} method_allowed options_asked conversing handshake_absent`,
  ],
  [
    'refuses a handshake that is not sound before anybody is known',
    { conversing: true, handshake: 'malformed', credential: 'refused' },
    'handshake_invalid',
    `${routed} method_allowed options_asked conversing handshake_absent handshake_sound`,
  ],
  [
    'becomes a conversation',
    { conversing: true, handshake: 'sound' },
    'conversation',
    `${readTrace.replace('conversing', 'conversing handshake_absent handshake_sound')} elsewhere stream_asked conversation_asked`,
  ],
  [
    'answers with the octets that Range selects',
    { rangeAsked: true, ranges: 'partial' },
    'partial',
    `${rangedTrace} range_satisfiable`,
  ],
  [
    'answers in full where Range does not apply',
    { rangeAsked: true, ranges: 'whole' },
    'representation',
    rangedTrace,
  ],
  [
    'refuses a Range beyond the representation',
    { rangeAsked: true, ranges: 'unsatisfiable' },
    'range_not_satisfiable',
    `${rangedTrace} range_satisfiable`,
  ],
  [
    'answers 304 before it looks at Range',
    { rangeAsked: true, ifNoneMatch: 'false' },
    'not_modified',
    `${asked} ${keys} ${stands} if_match_given if_unmodified_since_false if_none_match_given if_none_match_true if_none_match_safe`,
  ],
  [
    'answers HEAD by fields where they are the state',
    { method: 'HEAD', fieldsAsked: true },
    'fields',
    `${readTrace} elsewhere stream_asked conversation_asked range_asked fields_asked`,
  ],
  ['streams when asked', { streamAsked: true }, 'stream', `${readTrace} elsewhere stream_asked`],
];

export const writes: readonly Case[] = [
  [
    'answers a change with the representation',
    {},
    'changed',
    `${made} redirected deletion queued created minimal_asked`,
  ],
  [
    'answers a change without content when preferred',
    { minimalAsked: true },
    'changed_silently',
    `${made} redirected deletion queued created minimal_asked`,
  ],
  [
    'answers what is done later with 202',
    { method: 'POST', queued: true },
    'queued',
    `${made} redirected deletion queued`,
  ],
  [
    'answers a creation',
    { method: 'POST', created: true },
    'created',
    `${made} redirected deletion queued created browser_form`,
  ],
  [
    'sends a browser form on',
    { method: 'POST', created: true, browserForm: true },
    'created_see_other',
    `${made} redirected deletion queued created browser_form`,
  ],
  [
    'leads from a change to another URI',
    { method: 'POST', redirect: 'see_other' },
    'see_other',
    `${made} redirected redirect_repeats`,
  ],
  [
    'answers an action by DELETE like any other',
    { method: 'DELETE', reports: true, told: true },
    'changed',
    `${made} redirected deletion queued created minimal_asked`,
  ],
  [
    'answers a deletion without content',
    { method: 'DELETE', contentDefined: false },
    'deleted',
    `${asked} ${keys} ${stands} ${unconditional} async_asked superseded change_made redirected deletion deletion_representation`,
  ],
  [
    'answers a deletion with what was deleted',
    { method: 'DELETE', contentDefined: false, representationAsked: true },
    'deleted_representation',
    `${asked} ${keys} ${stands} ${unconditional} async_asked superseded change_made redirected deletion deletion_representation`,
  ],
  [
    'needs content',
    { hasContent: false, contentTypeGiven: false },
    'content_missing',
    `${meant} content_present`,
  ],
  [
    'refuses content without a type',
    { contentTypeGiven: false },
    'media_type_unsupported',
    `${typed} content_type_missing_query`,
  ],
  [
    'refuses a QUERY without a type',
    { method: 'QUERY', contentTypeGiven: false },
    'content_type_missing',
    `${typed} content_type_missing_query`,
  ],
  [
    'refuses a foreign type',
    { contentTypeSupported: false },
    'media_type_unsupported',
    `${typed} content_type_supported`,
  ],
  [
    'refuses a foreign content coding',
    { contentCodingSupported: false },
    'content_coding_unsupported',
    `${typed} content_type_supported content_coding_supported`,
  ],
  [
    'refuses an announced length over the limit before reading it',
    { contentFits: false, contentProblem: undefined },
    'content_too_large',
    `${typed} content_type_supported content_coding_supported content_fits`,
  ],
  [
    'takes content as it came, of any type or none',
    {
      contentRaw: true,
      hasContent: false,
      contentTypeGiven: false,
      contentTypeSupported: false,
      told: false,
    },
    'changed_silently',
    `${rawRead} ${keys} ${stands} ${unconditional} async_asked superseded change_made redirected deletion queued created minimal_asked`,
  ],
  [
    'refuses such content in a content coding where it is taken as it arrives',
    { contentRaw: true, contentTypeSupported: false, contentCodingSupported: false },
    'content_coding_unsupported',
    `${meant} content_coding_supported`,
  ],
  [
    'refuses such content over its limit before reading it',
    { contentRaw: true, contentFits: false, contentProblem: undefined },
    'content_too_large',
    `${meant} content_coding_supported content_fits`,
  ],
  [
    'refuses content that its sender did not sign',
    { contentRaw: true, contentProblem: 'signature_invalid' },
    'signature_invalid',
    rawRead,
  ],
  [
    'refuses content that was signed too long ago',
    { contentRaw: true, contentProblem: 'signature_stale' },
    'signature_stale',
    rawRead,
  ],
  [
    'puts content off that cannot be judged now',
    { contentRaw: true, contentProblem: 'unavailable' },
    'unavailable',
    rawRead,
  ],
  ['refuses malformed content', { contentProblem: 'content_malformed' }, 'content_malformed', read],
  [
    'refuses a malformed key',
    { idempotencyKey: 'malformed' },
    'field_invalid',
    `${read} idempotency_key_malformed`,
  ],
  [
    'replays the stored result without looking at anything else',
    { idempotencyKey: 'given', idempotency: 'replay', exists: undefined },
    'changed',
    `${keyed} idempotency_replay change_made redirected deletion queued created minimal_asked`,
  ],
  [
    'refuses a key whose first request runs',
    { idempotencyKey: 'given', idempotency: 'running' },
    'idempotency_key_in_use',
    `${keyed} idempotency_replay idempotency_running`,
  ],
  [
    'refuses a key used for something else',
    { idempotencyKey: 'given', idempotency: 'other' },
    'idempotency_key_reused',
    `${keyed} idempotency_replay idempotency_running idempotency_other`,
  ],
  [
    'carries on with the first request of a key',
    { idempotencyKey: 'given', idempotency: 'first' },
    'changed',
    `${keyed} idempotency_replay idempotency_running idempotency_other ${stands} ${unconditional} async_asked superseded change_made redirected deletion queued created minimal_asked`,
  ],
  [
    'creates where PUT is defined to',
    { method: 'PUT', exists: false, createsHere: true, created: true },
    'created',
    `${keyed} exists creates_here permitted proposal_sound match_required ${unconditional} async_asked superseded change_made redirected deletion queued created browser_form`,
  ],
  [
    'demands If-Match where the resource does',
    { matchRequired: true },
    'precondition_required',
    `${keyed} exists visible permitted proposal_sound match_required`,
  ],
  [
    'does not demand If-Match of a creation that If-None-Match refuses',
    { method: 'PUT', matchRequired: true, ifNoneMatch: 'false' },
    'precondition_failed',
    `${keyed} ${stands} if_match_given if_unmodified_since_false if_none_match_given if_none_match_true if_none_match_safe`,
  ],
  [
    'does not demand If-Match for what is not there yet',
    { method: 'PUT', matchRequired: true, exists: false, createsHere: true, created: true },
    'created',
    `${keyed} exists creates_here permitted proposal_sound match_required ${unconditional} async_asked superseded change_made redirected deletion queued created browser_form`,
  ],
  [
    'reports invalid data before a failed precondition',
    { proposalProblem: 'validation_failed', ifMatch: 'false' },
    'validation_failed',
    `${keyed} exists visible permitted proposal_sound`,
  ],
  [
    'refuses when If-Match names something else',
    { ifMatch: 'false' },
    'precondition_failed',
    `${keyed} ${stands} if_match_given if_match_true`,
  ],
  [
    'refuses when it changed since If-Unmodified-Since',
    { ifUnmodifiedSince: 'false' },
    'precondition_failed',
    `${keyed} ${stands} if_match_given if_unmodified_since_false`,
  ],
  [
    'refuses a change when If-None-Match names what stands',
    { ifNoneMatch: 'false' },
    'precondition_failed',
    `${keyed} ${stands} if_match_given if_unmodified_since_false if_none_match_given if_none_match_true if_none_match_safe`,
  ],
  ['queues when asked to', { asyncAsked: true }, 'accepted', writeTrace],
  [
    'reports what the store refused',
    { result: 'refused', resultProblem: 'unique_taken' },
    'unique_taken',
    `${writeTrace} superseded change_made`,
  ],
];
