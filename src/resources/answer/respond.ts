/**
 * The end of a walk as a response: one builder per answer of the graph, and `problem` for every refusal.
 * The status comes from the answer table or the error registry; builders only fill it with fields and content.
 */
import { type AnswerName, answers } from '../../http/conduct/answers.ts';
import type { Step } from '../../http/conduct/decide.ts';
import type { Response } from '../../http/message.ts';
import type { MaybePromise } from '../../store/store.ts';
import type { Room } from '../room.ts';
import { acceptedResponse } from './accepted.ts';
import { conversationResponse } from './conversation.ts';
import { corsFields } from './cors.ts';
import type { Ended } from './ended.ts';
import { deletedResponse, madeResponse, seeOtherAfterForm } from './made.ts';
import { notModifiedResponse } from './not-modified.ts';
import { optionsResponse, serverOptionsResponse } from './options.ts';
import { preflightResponse } from './preflight.ts';
import { problemResponse } from './problem.ts';
import { representationResponse, seeOtherResponse } from './representation.ts';
import { streamResponse } from './stream.ts';
import { traceResponse } from './trace.ts';

type End = Exclude<Step, { kind: 'want' }>;

export function respond(room: Room, end: End, ended: Ended): MaybePromise<Response> {
  const built =
    end.kind === 'refuse' ? problemResponse(room, end.code, ended) : builders[end.answer](room, ended);
  if (built instanceof Promise) return built.then((response) => complete(room, ended, response));
  return complete(room, ended, built);
}

type Builder = (room: Room, ended: Ended) => MaybePromise<Response>;

const builders: Readonly<Record<AnswerName, Builder>> = {
  server_options: (_room, ended) => serverOptionsResponse(answers.server_options.status, ended),
  trace: (_room, ended) => traceResponse(answers.trace.status, ended),
  preflight: (room, ended) => preflightResponse(answers.preflight.status, room, ended),
  options: (room, ended) => optionsResponse(answers.options.status, room, ended),
  stream: (_room, ended) => streamResponse(answers.stream.status, ended),
  conversation: (_room, ended) => conversationResponse(answers.conversation.status, ended),
  representation: (room, ended) => representationResponse(answers.representation.status, room, ended),
  not_modified: (room, ended) => notModifiedResponse(answers.not_modified.status, room, ended),
  see_other: (_room, ended) => seeOtherResponse(answers.see_other.status, ended),
  accepted: (room, ended) => acceptedResponse(answers.accepted.status, room, ended),
  queued: (room, ended) => madeResponse(answers.queued.status, room, ended),
  created: (room, ended) => madeResponse(answers.created.status, room, ended),
  created_see_other: (_room, ended) => seeOtherAfterForm(answers.created_see_other.status, ended),
  changed: (room, ended) => madeResponse(answers.changed.status, room, ended),
  changed_silently: (room, ended) => madeResponse(answers.changed_silently.status, room, ended),
  deleted: (_room, ended) => deletedResponse(answers.deleted.status, ended),
  deleted_representation: (_room, ended) => deletedResponse(answers.deleted_representation.status, ended),
};

/** Fields that depend on no answer: the resource's own, those of the rate limit, CORS, and the trace in development. */
function complete(room: Room, ended: Ended, response: Response): Response {
  const { allowance } = ended;
  const { route, facts } = ended.reading;
  let { fields } = response;
  if (route !== undefined && route.resource.constantFields.length > 0) {
    fields = [...fields, ...route.resource.constantFields];
  }
  if (allowance !== undefined) {
    const { policy, rate, remaining } = allowance;
    fields = [...fields, 'RateLimit-Policy', policy, 'RateLimit', rate, 'X-RateLimit-Remaining', remaining];
  }
  if (room.cors.enabled && !facts.preflight && route?.resource.judgedBySignature !== true) {
    fields = [...fields, ...corsFields(room.cors, ended.request.fields.origin)];
  }
  if (ended.trace !== undefined) fields = [...fields, 'Comity-Trace', ended.trace.join(' ')];
  return {
    status: response.status,
    fields,
    content: response.content,
    ...(response.conversation === undefined ? {} : { conversation: response.conversation }),
    ...(response.holder === undefined ? {} : { holder: response.holder }),
    headOnly: ended.request.method === 'HEAD',
    close: response.close ?? false,
    route: route?.resource.pattern ?? 'none',
    code: response.code,
  };
}
