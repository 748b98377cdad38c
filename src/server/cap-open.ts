/**
 * Limits on responses that stay open, event streams and WebSockets (§8): of all callers (503), and of one principal or,
 * without one, of one address (429). Administrators have a reserve beyond the limit. A draining server opens none.
 */
import { isStream, type Response } from '../http/message.ts';
import type { Context } from './context.ts';
import { problemAnswer } from './problem-answer.ts';
import type { RequestUnderWay } from './request-under-way.ts';

const retrySeconds = 5;

/** The response, or a refusal in its place. Records on the request whose share the response counts against. */
export function capOpen(request: RequestUnderWay, response: Response): Response {
  const held = heldBy(request.context, response);
  if (held === undefined) return response;
  const isAdministrator = response.holder?.isAdministrator ?? false;
  const { id } = response.holder ?? {};
  // Ids and addresses are separate namespaces: no id begins with a space.
  request.holder = id ?? ` ${request.context.addressOf(request)}`;
  const { answers, max, reserved } = held;
  const shareMax = id === undefined ? held.perAddressMax : held.perPrincipalMax;
  const isFull = answers.size >= max + (isAdministrator ? reserved : 0);
  const isShareUsed = !isAdministrator && shareMax > 0 && answers.count(request.holder) >= shareMax;
  if (!request.context.draining && !isFull && !isShareUsed) return response;
  const code = isShareUsed && !request.context.draining ? 'streams_exhausted' : 'unavailable';
  const refused = problemAnswer({ code }, request, { retryAfterSeconds: retrySeconds });
  return response.route === undefined ? refused : { ...refused, route: response.route };
}

type Held = {
  readonly answers: { readonly size: number; count(holder: string): number };
  readonly max: number;
  /** Responses that administrators may hold open beyond `max`. */
  readonly reserved: number;
  readonly perPrincipalMax: number;
  readonly perAddressMax: number;
};

/** Undefined: the response does not stay open. */
function heldBy({ streams, sockets, limits }: Context, response: Response): Held | undefined {
  if (response.conversation !== undefined) {
    return {
      answers: sockets,
      max: limits.realtimeSocketsMax,
      reserved: limits.realtimeSocketsReservedMax,
      perPrincipalMax: limits.realtimeSocketsPerPrincipalMax,
      perAddressMax: limits.realtimeSocketsPerAddressMax,
    };
  }
  if (!isStream(response.content) || response.headOnly === true) return undefined;
  return {
    answers: streams,
    max: limits.streamsMax,
    reserved: limits.streamsReservedMax,
    perPrincipalMax: limits.streamsPerPrincipalMax,
    perAddressMax: limits.streamsPerAddressMax,
  };
}
