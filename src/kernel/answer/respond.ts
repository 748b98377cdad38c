/**
 * Turns the end of a walk into a response: one builder for each answer of the graph, and `problem` for every refusal.
 * The status comes from the answer table or the error registry; builders add only fields and content.
 */
import { type AnswerName, answers } from '../../http/conduct/answers.ts';
import type { End } from '../../http/conduct/decide.ts';
import type { Allowance, Conversation, Response } from '../../http/message.ts';
import { formatPreferenceApplied } from '../../http/syntax/prefer.ts';
import type { MaybePromise } from '../../store/store.ts';
import type { EventStream } from '../resource.ts';
import type { WalkContext } from '../walk-context.ts';
import { type Ended, holderOf } from './ended.ts';
import { optionsResponse, preflightResponse, serverOptionsResponse } from './options-response.ts';
import { problemResponse } from './problem.ts';
import {
  deletedResponse,
  madeResponse,
  notModifiedResponse,
  representationResponse,
  seeOtherAfterForm,
  seeOtherResponse,
} from './representation.ts';
import { traceResponse } from './trace.ts';

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
