/**
 * 200 with text/event-stream (§6; HTML, server-sent events). Never cached, never content-coded: intermediaries
 * that buffer a coding would hold events back.
 */
import type { Response } from '../../http/message.ts';
import type { MaybePromise } from '../../store/store.ts';
import type { EventStream } from '../resource.ts';
import { type Ended, holderOf } from './ended.ts';

export function streamResponse(status: number, ended: Ended): MaybePromise<Response> {
  const { operation } = ended.reading;
  if (operation?.stream === undefined || ended.ask === undefined || ended.standing === undefined) {
    throw new Error('a stream without a source');
  }
  const stream = operation.stream(ended.ask, ended.standing);
  return stream instanceof Promise
    ? stream.then((found) => answer(status, found, ended))
    : answer(status, stream, ended);
}

function answer(status: number, stream: EventStream, { principal }: Ended): Response {
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
