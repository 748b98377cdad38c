/**
 * What answers take of the memory budget while their clients have not taken them, for HTTP/1.1 (send-answer.ts) and HTTP/2
 * (http2/send-on-stream.ts) alike. An answer for which there is no room becomes 503 with Retry-After, which is short.
 */
import type { Response } from '../http/message.ts';
import { isStream } from './cap-open.ts';
import { textBytesMax, waitingAnswerBytes } from './limits.ts';
import { problemAnswer } from './problem-answer.ts';
import type { RequestUnderWay } from './request-under-way.ts';

const retrySeconds = 1;

/** Octets of long text: a socket keeps them without a copy, and pieces of them are none. */
export function inOctets<C extends Response['content']>(content: C): C | Uint8Array {
  return typeof content === 'string' && content.length > textBytesMax ? Buffer.from(content) : content;
}

export function hasRoomFor(request: RequestUnderWay, content: string | Uint8Array): boolean {
  const { budget } = request.context.memory;
  const isHeld = typeof content !== 'string' && budget.isShared(content);
  return budget.hasRoom(request.memoryHolder, waitingAnswerBytes + (isHeld ? 0 : content.length));
}

/** What takes the place of a response that there is no memory for. */
export function noRoom(request: RequestUnderWay, response: Response): Response {
  const { content } = response;
  const bytes = content === null || isStream(content) ? 0 : content.length;
  request.context.memory.budget.refused('answers', bytes);
  const message = 'too many answers wait to be taken';
  const refused = problemAnswer({ code: 'unavailable', message }, request.fields.accept, {
    retryAfterSeconds: retrySeconds,
  });
  return response.route === undefined ? refused : { ...refused, route: response.route };
}
