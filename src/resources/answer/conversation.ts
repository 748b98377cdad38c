/**
 * 101 with a conversation (§4.13): the connection becomes a WebSocket. Status line and fields of the handshake are the server's, because
 * they differ between HTTP/1.1 and HTTP/2 (RFC 6455 §4.2.2, RFC 8441 §5).
 */
import type { Conversation, Response } from '../../http/message.ts';
import type { MaybePromise } from '../../store/store.ts';
import { type Ended, holderOf } from './ended.ts';

export function conversationResponse(status: number, ended: Ended): MaybePromise<Response> {
  const { operation } = ended.reading;
  if (operation?.converse === undefined || ended.ask === undefined || ended.standing === undefined) {
    throw new Error('a conversation without anybody to speak to');
  }
  const conversation = operation.converse(ended.ask, ended.standing);
  return conversation instanceof Promise
    ? conversation.then((found) => answer(status, found, ended))
    : answer(status, conversation, ended);
}

function answer(status: number, conversation: Conversation, { principal }: Ended): Response {
  return { status, fields: [], content: null, conversation, holder: holderOf(principal) };
}
