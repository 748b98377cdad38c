/**
 * Bounds on answers that stay open, event streams and WebSockets (§8): all together (503), and those of one principal or, without one, of one address
 * (429), so that no caller takes them all. Administrators have a reserve beyond the bound. None is begun while the server drains.
 */
import type { Response } from '../http/message.ts';
import type { Context } from './context.ts';
import { problemAnswer } from './problem-answer.ts';
import type { RequestUnderWay } from './request-under-way.ts';

const retrySeconds = 5;

/** The response, or what takes its place. Notes on the request whose share the answer counts against. */
export function capOpen(request: RequestUnderWay, response: Response): Response {
  const held = heldBy(request.context, response);
  if (held === undefined) return response;
  const isAdministrator = response.holder?.isAdministrator ?? false;
  const { id } = response.holder ?? {};
  // The two spaces of names are apart: no id begins with a space.
  request.holder = id ?? ` ${request.context.addressOf(request)}`;
  const { answers, max, reserved } = held;
  const shareMax = id === undefined ? held.perAddressMax : held.perPrincipalMax;
  const isFull = answers.size >= max + (isAdministrator ? reserved : 0);
  const isShareUsed = !isAdministrator && shareMax > 0 && answers.count(request.holder) >= shareMax;
  if (!request.context.draining && !isFull && !isShareUsed) return response;
  const code = isShareUsed && !request.context.draining ? 'streams_exhausted' : 'unavailable';
  const refused = problemAnswer({ code }, request.fields.accept, { retryAfterSeconds: retrySeconds });
  return response.route === undefined ? refused : { ...refused, route: response.route };
}

type Held = {
  readonly answers: { readonly size: number; count(holder: string): number };
  readonly max: number;
  /** What administrators may open beyond `max`. */
  readonly reserved: number;
  readonly perPrincipalMax: number;
  readonly perAddressMax: number;
};

/** Undefined: the answer does not stay open. */
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

export function isStream(
  content: Response['content'],
): content is Extract<Response['content'], { open: unknown }> {
  return content !== null && typeof content === 'object' && 'open' in content;
}
