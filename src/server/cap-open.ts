/**
 * Answers that stay open, streams and conversations, are bounded in number, and none is begun while the server drains:
 * such an answer gives way to 503 with Retry-After (§8).
 */
import type { Response } from '../http/message.ts';
import type { Context } from './context.ts';
import { problemAnswer } from './problem-answer.ts';
import type { RequestUnderWay } from './request-under-way.ts';

const retrySeconds = 5;

/** The response, or what takes its place. */
export function capOpen(request: RequestUnderWay, response: Response): Response {
  if (!isRefused(request.context, response)) return response;
  const refused = problemAnswer({ code: 'unavailable' }, request.fields.accept, {
    retryAfterSeconds: retrySeconds,
  });
  return response.route === undefined ? refused : { ...refused, route: response.route };
}

function isRefused({ draining, streams, sockets, limits }: Context, response: Response): boolean {
  if (response.conversation !== undefined) return draining || sockets.size >= limits.realtimeSocketsMax;
  if (!isStream(response.content) || response.headOnly === true) return false;
  return draining || streams.size >= limits.streamsMax;
}

export function isStream(
  content: Response['content'],
): content is Extract<Response['content'], { open: unknown }> {
  return content !== null && typeof content === 'object' && 'open' in content;
}
