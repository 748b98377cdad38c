/**
 * Turns the end of a walk into a response: one builder for each answer of the graph, and `problem` for every refusal.
 * The status comes from the answer table or the error registry; builders add only fields and content.
 */
import { type AnswerName, answers } from '../../http/conduct/answers.ts';
import type { End } from '../../http/conduct/decide.ts';
import type { Allowance, Conversation, Request, Response } from '../../http/message.ts';
import { type Problem, problemBody, problemDetailsBody, statusOf } from '../../http/problem.ts';
import type { ProblemCode } from '../../http/problem-registry.ts';
import { preferredMediaType } from '../../http/syntax/accept.ts';
import { formatHttpMessage } from '../../http/syntax/http-message.ts';
import { formatPreferenceApplied } from '../../http/syntax/prefer.ts';
import { readWebSocketHandshake } from '../../http/syntax/websocket-handshake.ts';
import type { MaybePromise } from '../../store/store.ts';
import { contentCodings } from '../content/decode-content.ts';
import { entityTag } from '../preconditions.ts';
import type { EventStream } from '../resource.ts';
import type { WalkContext } from '../walk-context.ts';
import { type Ended, holderOf } from './ended.ts';
import {
  allowedMethods,
  contentFields,
  optionsResponse,
  preflightResponse,
  serverOptionsResponse,
} from './options-response.ts';
import {
  deletedResponse,
  madeResponse,
  notModifiedResponse,
  representationResponse,
  seeOtherAfterForm,
  seeOtherResponse,
} from './representation.ts';

export function respond(context: WalkContext, end: End, ended: Ended): MaybePromise<Response> {
  const built =
    end.kind === 'refuse' ? problemResponse(context, end.code, ended) : builders[end.answer](context, ended);
  if (built instanceof Promise) return built.then((response) => complete(context, ended, response));
  return complete(context, ended, built);
}

type Builder = (context: WalkContext, ended: Ended) => MaybePromise<Response>;

const builders: Readonly<Record<AnswerName, Builder>> = {
  server_options: (_context, ended) => serverOptionsResponse(answers.server_options.status, ended),
  trace: (_context, ended) => traceResponse(answers.trace.status, ended),
  preflight: (context, ended) => preflightResponse(answers.preflight.status, context, ended),
  options: (context, ended) => optionsResponse(answers.options.status, context, ended),
  stream: (_context, ended) => streamResponse(answers.stream.status, ended),
  conversation: (_context, ended) => conversationResponse(answers.conversation.status, ended),
  representation: (context, ended) => representationResponse(answers.representation.status, context, ended),
  not_modified: (context, ended) => notModifiedResponse(answers.not_modified.status, context, ended),
  see_other: (_context, ended) => seeOtherResponse(answers.see_other.status, ended),
  repeat_elsewhere: (_context, ended) => seeOtherResponse(answers.repeat_elsewhere.status, ended),
  moved: (_context, ended) => seeOtherResponse(answers.moved.status, ended),
  accepted: (context, ended) => acceptedResponse(answers.accepted.status, context, ended),
  queued: (context, ended) => madeResponse(answers.queued.status, context, ended),
  created: (context, ended) => madeResponse(answers.created.status, context, ended),
  created_see_other: (_context, ended) => seeOtherAfterForm(answers.created_see_other.status, ended),
  changed: (context, ended) => madeResponse(answers.changed.status, context, ended),
  changed_silently: (context, ended) => madeResponse(answers.changed_silently.status, context, ended),
  deleted: (_context, ended) => deletedResponse(answers.deleted.status, ended),
  deleted_representation: (_context, ended) => deletedResponse(answers.deleted_representation.status, ended),
};

/** Adds the state of the limit that counted the request. */
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
    fields,
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
async function acceptedResponse(status: number, context: WalkContext, ended: Ended): Promise<Response> {
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
  const conversation = operation.converse(ended.ask, ended.standing);
  return conversation instanceof Promise
    ? conversation.then((found) => answer(status, found, ended))
    : answer(status, conversation, ended);
}

function answer(status: number, conversation: Conversation, { principal }: Ended): Response {
  return { status, fields: [], content: null, conversation, holder: holderOf(principal) };
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
  const stream = operation.stream(ended.ask, ended.standing);
  return stream instanceof Promise
    ? stream.then((found) => streamed(status, found, ended))
    : streamed(status, stream, ended);
}

function streamed(status: number, stream: EventStream, { principal }: Ended): Response {
  return {
    status,
    fields: [
      'Content-Type',
      'text/event-stream',
      'Cache-Control',
      'no-store',
      'Vary',
      'Accept',
      'X-Accel-Buffering',
      'no',
    ],
    content: stream,
    holder: holderOf(principal),
  };
}

// Refusals (§2.2, §7): the plain error body, or application/problem+json (RFC 9457) if Accept prefers it, with the
// fields that the status requires: Allow with 405, WWW-Authenticate with 401, the accepted types or codings with 415,
// the current ETag with 412, Retry-After with 429 and 503.

/** Seconds after which a refused client may retry. */
const retryAfterSeconds = 1;

function problemResponse(context: WalkContext, code: ProblemCode, ended: Ended): Response {
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
      ...demandedFields(context, problem, ended),
    ],
    content: details ? problemDetailsBody(problem) : problemBody(problem),
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

function demandedFields(context: WalkContext, problem: Problem, ended: Ended): readonly string[] {
  const { code } = problem;
  switch (statusOf(problem)) {
    case 401:
      return ['WWW-Authenticate', context.challengesFor(code)];
    case 405:
      return ['Allow', allowedMethods(ended).join(', ')];
    case 412: {
      const tag = ended.validators?.tag ?? null;
      return tag === null ? [] : ['ETag', entityTag(tag, 'identity')];
    }
    case 415:
      return code === 'content_coding_unsupported'
        ? ['Accept-Encoding', contentCodings.join(', ')]
        : contentFields(ended, ended.request.method);
    case 429:
      return ['Retry-After', String(ended.allowance?.retryAfterSeconds ?? retryAfterSeconds)];
    case 503:
      return ['Retry-After', String(retryAfterSeconds)];
    case 426:
      return ['Upgrade', 'websocket', 'Connection', 'Upgrade'];
    default:
      // RFC 6455 §4.4: the supported version.
      if (code === 'handshake_invalid') return ['Sec-WebSocket-Version', '13'];
      if (code === 'idempotency_key_in_use') return ['Retry-After', String(retryAfterSeconds)];
      if (code === 'idempotency_result_sealed')
        return ['Location', String(ended.problem?.context?.location ?? '')];
      return [];
  }
}

// TRACE (§4.11; RFC 9110 §9.3.8): returns the request as received, as message/http; over HTTP/2 with a request line
// made from `:path`. This server forwards TRACE to no other, so it is the last recipient whatever Max-Forwards says,
// even if that is not a number. Likely secrets are left out by name: fields that carry credentials, and parameters of
// the target.

/**
 * A field is secret if its name, split at hyphens and underscores, has one of these words: `X-Gitlab-Token`,
 * `Stripe-Signature`, `X-API-Key`.
 */
const secretWords: ReadonlySet<string> = new Set([
  ...[
    'apikey',
    'assertion',
    'auth',
    'authentication',
    'authorization',
    'bearer',
    'cert',
    'cookie',
    'cookie2',
  ],
  ...['credential', 'credentials', 'csrf', 'jwt', 'key', 'passphrase', 'password', 'secret', 'session'],
  ...['sig', 'signature', 'ticket', 'token', 'xsrf'],
  // Its value may be one of our URLs, with one of the parameters below.
  'referer',
]);

const wordEnd = /[-_]/;

/** `api_key` and `ticket` are credentials too (§5.2, §9); the others occur in logins and mails. */
const secretParameters: ReadonlySet<string> = new Set([
  'access_token',
  'api_key',
  'code',
  'state',
  'ticket',
  'token',
]);

function traceResponse(status: number, ended: Ended): Response {
  return {
    status,
    fields: ['Content-Type', 'message/http', 'Cache-Control', 'no-store'],
    content: traceMessage(ended.request),
  };
}

export function traceMessage(request: Pick<Request, 'method' | 'target' | 'version' | 'rawFields'>): string {
  const { method, target, version, rawFields } = request;
  return formatHttpMessage({
    method,
    target: withoutSecrets(target),
    version: `HTTP/${version}`,
    rawFields,
    withheld: secretNames(rawFields),
  });
}

function secretNames(rawFields: readonly string[]): ReadonlySet<string> {
  const names = new Set<string>();
  for (let at = 0; at < rawFields.length; at += 2) {
    const name = (rawFields[at] ?? '').toLowerCase();
    if (name.split(wordEnd).some((word) => secretWords.has(word))) names.add(name);
  }
  return names;
}

function withoutSecrets(target: string): string {
  const at = target.indexOf('?');
  if (at < 0) return target;
  const pairs = target.slice(at + 1).split('&');
  const kept = pairs.filter((pair) => !secretParameters.has(decodeName(pair)));
  if (kept.length === pairs.length) return target;
  return kept.length === 0 ? target.slice(0, at) : `${target.slice(0, at)}?${kept.join('&')}`;
}

function decodeName(pair: string): string {
  const name = (pair.split('=', 1)[0] ?? '').replaceAll('+', ' ');
  try {
    return decodeURIComponent(name);
  } catch {
    // A malformed escape names no parameter.
    return name;
  }
}
