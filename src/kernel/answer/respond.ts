/**
 * Turns the end of a walk into a response: `answerEnds` has the builder of each answer of the graph and the header fields that it sets,
 * which the API document lists; `problemResponse` builds every refusal. The status comes from the answer table
 * (http/conduct/answers.ts) or the error registry; which end a request reaches is a matter of the graph (http/conduct/target-nodes.ts and
 * http/conduct/request-nodes.ts).
 *
 * Here are the refusals, OPTIONS, TRACE, streams, conversations and stored requests; representation.ts has the rest.
 */
import { type AnswerName, answers } from '../../http/conduct/answers.ts';
import type { End } from '../../http/conduct/graph.ts';
import { type Allowance, type Response, serverMethods } from '../../http/message.ts';
import { type Problem, problemBody, problemDetailsBody, statusOf } from '../../http/problem.ts';
import type { ProblemCode } from '../../http/problem-registry.ts';
import { type FieldName, withVaryOnce } from '../../http/response-fields.ts';
import { formatAcceptQuery, preferredMediaType } from '../../http/syntax/accept.ts';
import { traceMessage } from '../../http/syntax/http-message.ts';
import { formatPreferenceApplied } from '../../http/syntax/prefer.ts';
import { formatUnsatisfiedRange } from '../../http/syntax/range.ts';
import { readWebSocketHandshake } from '../../http/syntax/websocket-handshake.ts';
import { isAdministrator } from '../../model/principal.ts';
import { type MaybePromise, whenKnown } from '../../store/store.ts';
import { contentCodings } from '../content/decode-content.ts';
import { contentBytesMax } from '../message-facts.ts';
import { entityTag } from '../preconditions.ts';
import { lengthOf, rangedOctets } from '../ranges.ts';
import { type AnswerEnd, type Ended, holderOf, type WalkContext } from '../walk-context.ts';
import { preflightFields } from './cors.ts';
import {
  changed,
  changedSilently,
  created,
  createdSeeOther,
  deleted,
  deletedRepresentation,
  fieldState,
  notModified,
  partial,
  representation,
  seeOther,
} from './representation.ts';

export function respond(context: WalkContext, end: End, ended: Ended): MaybePromise<Response> {
  const built =
    end.kind === 'refuse'
      ? problemResponse(end.code, ended, context)
      : answerEnds[end.answer].build(answers[end.answer].status, ended, context);
  return whenKnown(built, (response) => complete(context, ended, response));
}

export const answerEnds: Readonly<Record<AnswerName, AnswerEnd>> = {
  server_options: {
    fields: () => ['Allow'],
    build: (status, ended) => ({
      status,
      fields: ['Allow', methodsOfServer(ended).join(', ')],
      content: null,
    }),
  },
  trace: {
    fields: () => ['Cache-Control'],
    build: (status, ended) => ({
      status,
      fields: ['Content-Type', 'message/http', 'Cache-Control', 'no-store'],
      content: traceMessage(ended.request),
    }),
  },
  preflight: {
    fields: () => [
      'Allow',
      'Vary',
      'Access-Control-Allow-Origin',
      'Access-Control-Allow-Credentials',
      'Access-Control-Allow-Methods',
      'Access-Control-Allow-Headers',
      'Access-Control-Max-Age',
    ],
    build: preflightResponse,
  },
  // The fields of its content depend on all operations of the resource: `contentFields`.
  options: { fields: () => ['Allow'], build: optionsResponse },
  stream: { fields: () => ['Cache-Control', 'Vary', 'X-Accel-Buffering'], build: streamResponse },
  // The server writes the fields of the handshake.
  conversation: { fields: () => ['Sec-WebSocket-Protocol', 'Upgrade'], build: conversationResponse },
  representation,
  partial,
  fields: fieldState,
  not_modified: notModified,
  see_other: seeOther,
  repeat_elsewhere: seeOther,
  moved: seeOther,
  accepted: { fields: () => ['Cache-Control', 'Location', 'Preference-Applied'], build: acceptedResponse },
  queued: created,
  created,
  created_see_other: createdSeeOther,
  changed,
  changed_silently: changedSilently,
  deleted,
  deleted_representation: deletedRepresentation,
};

/** The fields about the limit that counted the request. */
export const allowanceFields: readonly FieldName[] = [
  'RateLimit-Policy',
  'RateLimit',
  'X-RateLimit-Remaining',
];

export function withAllowance(response: Response, allowance: Allowance | undefined): Response {
  if (allowance === undefined) return response;
  const { policy, rate, remaining } = allowance;
  const fields = ['RateLimit-Policy', policy, 'RateLimit', rate, 'X-RateLimit-Remaining', remaining];
  return { ...response, fields: [...response.fields, ...fields] };
}

/** Adds the fields that any response may carry: the resource's own, CORS, and the trace in development. */
function complete(context: WalkContext, ended: Ended, response: Response): Response {
  const { route, facts } = ended.reading;
  let { fields } = response;
  if (route !== undefined && route.resource.constantFields.length > 0) {
    fields = [...fields, ...route.resource.constantFields];
  }
  if (!facts.preflight && route?.resource.judgedBySignature !== true) {
    fields = [...fields, ...context.cors.fieldsFor(ended.request.fields.origin)];
  }
  if (ended.trace !== undefined) fields = [...fields, 'Comity-Trace', ended.trace.join(' ')];
  // All members, always in this order: the code that sends responses is compiled for one shape.
  return {
    status: response.status,
    fields: withVaryOnce(fields),
    content: response.content,
    octets: response.octets,
    conversation: response.conversation,
    holder: response.holder,
    headOnly: ended.request.method === 'HEAD',
    close: response.close ?? false,
    route: route?.resource.pattern ?? 'none',
    code: response.code,
  };
}

/** 202 (§4.1, RFC 7240 §4.1): the request is stored durably and performed after the response. */
async function acceptedResponse(status: number, ended: Ended, context: WalkContext): Promise<Response> {
  if (ended.ask === undefined)
    throw new Error('a 202 response requires the request that is carried out later');
  const operation = await context.operations.accept(ended.ask, ended.bytes);
  return {
    status,
    fields: [
      'Location',
      operation.location,
      'Content-Type',
      'application/json',
      'Cache-Control',
      'no-store',
      ...(ended.ask.preferences.respondAsync
        ? ['Preference-Applied', formatPreferenceApplied([['respond-async', '']])]
        : []),
    ],
    content: operation.doc,
  };
}

/**
 * 101 with a conversation (§4.13): the connection becomes a WebSocket. The server writes the status line and the
 * handshake fields, which differ between HTTP/1.1 and HTTP/2 (RFC 6455 §4.2.2, RFC 8441 §5).
 */
function conversationResponse(status: number, ended: Ended): MaybePromise<Response> {
  const { operation } = ended.reading;
  if (operation?.converse === undefined || ended.ask === undefined || ended.standing === undefined) {
    throw new Error('a conversation requires a converse stage');
  }
  const holder = holderOf(ended.principal);
  return whenKnown(operation.converse(ended.ask, ended.standing), (conversation) => {
    return { status, fields: [], content: null, conversation, holder };
  });
}

/**
 * 200 with text/event-stream (§6; HTML, server-sent events). Never cached and never content-coded: intermediaries that
 * buffer a coding would hold events back.
 */
function streamResponse(status: number, ended: Ended): MaybePromise<Response> {
  const { operation } = ended.reading;
  if (operation?.stream === undefined || ended.ask === undefined || ended.standing === undefined) {
    throw new Error('an event stream requires a stream stage');
  }
  const fields = [
    ...['Content-Type', 'text/event-stream', 'Cache-Control', 'no-store'],
    ...['Vary', 'Accept', 'X-Accel-Buffering', 'no'],
  ];
  const holder = holderOf(ended.principal);
  return whenKnown(operation.stream(ended.ask, ended.standing), (content) => {
    return { status, fields, content, holder };
  });
}

// Refusals (§2.2, §7): the plain error body, or application/problem+json (RFC 9457) if Accept prefers it, with the
// fields that the status requires: Allow with 405, WWW-Authenticate with 401, the accepted types or codings with 415,
// the current ETag with 412, Retry-After with 429 and 503.

/** Seconds after which a refused client may retry. */
const retryAfterSeconds = 1;

function problemResponse(code: ProblemCode, ended: Ended, context: WalkContext): Response {
  const problem = describe(code, ended);
  const details =
    preferredMediaType(ended.request.fields.accept, ['application/json', 'application/problem+json']) ===
    'application/problem+json';
  return {
    status: statusOf(problem),
    fields: [
      'Content-Type',
      details ? 'application/problem+json' : 'application/json',
      'Cache-Control',
      'no-store',
      'Vary',
      'Accept',
      ...demandedFields(problem, ended, context),
    ],
    content: details ? problemDetailsBody(problem, context.router.root) : problemBody(problem),
    close: code === 'content_too_large' || code === 'request_timeout' || code === 'transfer_coding_unknown',
    code: problem.own?.code ?? code,
  };
}

/** The problem that a stage named, if it has this code; otherwise one with details to correct the request. */
function describe(code: ProblemCode, ended: Ended): Problem {
  const { problem, reading, request } = ended;
  if (problem !== undefined && problem.code === code && problem.message !== undefined) return problem;
  if (code === 'content_too_large' && reading.operation?.contentBound !== undefined)
    return { ...problem, code, message: reading.operation.contentBound };
  if (problem !== undefined && problem.code === code) return problem;
  if (code === 'field_invalid') {
    const message = reading.fieldComplaint ?? 'Idempotency-Key must be a string of 1 to 255 characters';
    return { code, message };
  }
  if (code === 'handshake_invalid') {
    const handshake = readWebSocketHandshake(request);
    return handshake.kind === 'malformed' ? { code, message: handshake.complaint } : { code };
  }
  if (code === 'method_unknown' && request.method !== request.method.toUpperCase()) {
    return {
      code,
      message: `method not implemented; methods are case-sensitive: ${request.method.toUpperCase()}`,
    };
  }
  return { code };
}

/** A field that a refusal demands with this status or this code. */
type Demand = {
  readonly by: number | ProblemCode;
  readonly field: FieldName;
  /** Undefined: there is nothing to say. A list: a field line for each. */
  readonly value: (
    problem: Problem,
    ended: Ended,
    context: WalkContext,
  ) => string | readonly string[] | undefined;
};

const demands: readonly Demand[] = [
  {
    by: 401,
    field: 'WWW-Authenticate',
    value: ({ code }, { request }, context) => context.challengesFor(code, request.fields),
  },
  { by: 405, field: 'Allow', value: (_problem, ended) => allowedMethods(ended).join(', ') },
  { by: 412, field: 'ETag', value: (_problem, { validators }) => plainTag(validators?.tag) },
  { by: 'content_coding_unsupported', field: 'Accept-Encoding', value: codingsFor },
  {
    by: 'range_not_satisfiable',
    field: 'Content-Range',
    value: (_problem, ended) => unsatisfiedRange(ended),
  },
  { by: 426, field: 'Upgrade', value: () => 'websocket' },
  { by: 429, field: 'Retry-After', value: (_problem, { allowance }) => secondsToWait(allowance) },
  { by: 503, field: 'Retry-After', value: () => secondsToWait(undefined) },
  // RFC 6455 §4.4: the supported version.
  { by: 'handshake_invalid', field: 'Sec-WebSocket-Version', value: () => '13' },
  { by: 'idempotency_key_in_use', field: 'Retry-After', value: () => secondsToWait(undefined) },
  {
    by: 'upload_offset_wrong',
    field: 'Upload-Offset',
    value: ({ context }) => String(context?.offset ?? ''),
  },
  { by: 'upload_busy', field: 'Retry-After', value: () => secondsToWait(undefined) },
  {
    by: 'upload_rate_limited',
    field: 'Retry-After',
    value: (_problem, { allowance }) => secondsToWait(allowance),
  },
  {
    by: 'idempotency_result_sealed',
    field: 'Location',
    value: (problem) => String(problem.context?.location ?? ''),
  },
];

/** Content that is taken as it arrives must have no coding (RFC 9110 §12.5.3). */
function codingsFor(_problem: Problem, { reading }: Ended): string {
  return reading.isReceived ? 'identity' : contentCodings.join(', ');
}

/** The fields that a refusal may have, for the API document: `demands`, and those of the accepted content in a 415. */
export const refusalFields: readonly FieldName[] = [
  ...new Set(demands.map(({ field }) => field)),
  ...(['Accept', 'Accept-Patch', 'Accept-Post', 'Accept-Query'] as const),
];

function demandedFields(problem: Problem, ended: Ended, context: WalkContext): readonly string[] {
  const status = statusOf(problem);
  const { code } = problem;
  if (status === 415 && code !== 'content_coding_unsupported')
    return contentFields(ended, ended.request.method);
  const fields: string[] = [];
  for (const { by, field, value } of demands) {
    if (by !== status && by !== code) continue;
    for (const line of [value(problem, ended, context) ?? []].flat()) fields.push(field, line);
  }
  // Of the connection: no operation declares it.
  if (status === 426) fields.push('Connection', 'Upgrade');
  return fields;
}

function plainTag(tag: string | null | undefined): string | undefined {
  return tag === undefined || tag === null ? undefined : entityTag(tag, 'identity');
}

function unsatisfiedRange({ selected }: Ended): string | undefined {
  const octets = selected === undefined ? undefined : rangedOctets(selected.representation);
  return octets === undefined ? undefined : formatUnsatisfiedRange(lengthOf(octets));
}

function secondsToWait(allowance: Allowance | undefined): string {
  return String(allowance?.retryAfterSeconds ?? retryAfterSeconds);
}

// OPTIONS (§4.8; RFC 9110 §9.3.7): Allow, the media types that each method accepts (Accept-Post, Accept-Patch of RFC 5789, Accept-Query of
// RFC 10008), and the size limit of §2.8. Refusals have the same fields.

function methodsOfServer(ended: Ended): readonly string[] {
  return ended.reading.facts.traceEnabled ? [...serverMethods, 'TRACE'] : serverMethods;
}

function optionsResponse(status: number, ended: Ended, context: WalkContext): Response {
  const fields = ['Allow', allowedMethods(ended).join(', '), ...contentFields(ended, 'OPTIONS')];
  if (fields.length > 2) {
    // One field covers all methods (§2.8): it describes the method that `Accept` describes.
    const operations = ended.reading.route?.resource.operations;
    const described = operations?.get('POST') ?? operations?.get('PUT');
    fields.push(
      'Max-Content-Length',
      String(contentBytesMax(described, context.limits, described?.receive !== undefined)),
    );
  }
  return { status, fields, content: null };
}

/**
 * The methods that the resource supports for this caller. Once the caller is known, methods that the access rules
 * always deny it are left out.
 */
function allowedMethods(ended: Ended): readonly string[] {
  const { route, facts } = ended.reading;
  const methods: string[] = [];
  for (const [method, operation] of route?.resource.operations ?? []) {
    const known = ended.ask !== undefined && !isAdministrator(ended.principal);
    if (known && operation.permission(ended.principal) === 'denied') continue;
    methods.push(method);
    if (method === 'GET') methods.push('HEAD');
  }
  if (route !== undefined) methods.push('OPTIONS');
  if (facts.traceEnabled) methods.push('TRACE');
  return methods;
}

function contentFields(ended: Ended, method: string): readonly string[] {
  const operations = ended.reading.route?.resource.operations;
  const typesOf = (name: string) => {
    const operation = operations?.get(name);
    return operation?.raw === true ? (operation.contentTypes ?? anyType) : operation?.contentTypes;
  };
  return acceptFields(method, typesOf).flatMap(([field, types]) => [
    field,
    field === 'Accept-Query' ? formatAcceptQuery(types.map((type) => ({ type }))) : types.join(', '),
  ]);
}

const anyType: readonly string[] = ['*/*'];

/**
 * The fields with the media types that a resource accepts with a method, or with all for OPTIONS.
 * @param typesOf the media types of a method; undefined: its content has no meaning
 */
function acceptFields(
  method: string,
  typesOf: (method: string) => readonly string[] | undefined,
): readonly (readonly [field: FieldName, types: readonly string[]])[] {
  const isOptions = method === 'OPTIONS';
  const own = isOptions ? (typesOf('POST') ?? typesOf('PUT')) : typesOf(method);
  const fields = [
    ['Accept', own],
    ['Accept-Post', isOptions || method === 'POST' ? typesOf('POST') : undefined],
    ['Accept-Patch', isOptions || method === 'PATCH' ? typesOf('PATCH') : undefined],
    ['Accept-Query', typesOf('QUERY')],
  ] as const;
  return fields.flatMap(([field, types]) => (types === undefined ? [] : [[field, types] as const]));
}

/**
 * A cross-origin preflight (§4.8; Fetch, CORS preflight), answered without a credential because browsers send none. An
 * origin that is not allowed gets the response without CORS fields, which the browser treats as a refusal. For a path
 * without a resource every method is allowed: a page can read the 404 of the request itself, and not that of a preflight.
 */
function preflightResponse(status: number, ended: Ended, context: WalkContext): Response {
  const isRouted = ended.reading.facts.routed;
  const methods = (isRouted ? allowedMethods(ended) : methodsOfServer(ended)).join(', ');
  const allow = isRouted ? ['Allow', methods] : [];
  const fields = [...allow, ...preflightFields(context.cors, ended.request.fields.origin, methods)];
  return { status, fields, content: null };
}
