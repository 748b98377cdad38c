/**
 * Answers to what is not an HTTP request (RFC 9110 §15.5.1): node:http reports it once a connection, then the parser is
 * of no more use and the connection must close. Unknown methods end here as well, because the parser knows a list.
 *
 * Never writes into an answer under way: an error may concern octets that came after a good request, whose answer is
 * still being produced. Where the content of that request is what broke, whoever reads it is told, and answers.
 */
import type { Socket } from 'node:net';
import type { ProblemCode } from '../http/problem-registry.ts';
import { type Connection, connectionOf } from './connection.ts';
import type { Context } from './context.ts';
import type { ParserError } from './diagnose.ts';
import { diagnose } from './diagnose.ts';
import { rawAnswer } from './raw-answer.ts';

export function answerClientError(context: Context, error: ParserError, socket: Socket): void {
  const connection = connectionOf(socket, context.monotonic);
  if (connection.broken) {
    dropMore(context, connection);
    return;
  }
  connection.broken = true;
  connection.closing = true;
  if (!socket.writable || error.code === 'ECONNRESET' || error.code === 'EPIPE') {
    socket.destroy();
    return;
  }
  const { last } = connection;
  if (last !== undefined && !last.incoming.complete) {
    if (!last.answered) last.failContent(contentCode(error));
    else if (!last.outgoing.writableEnded) return;
    else whenSent(last.outgoing, () => socket.destroySoon());
  } else if (last === undefined || last.outgoing.writableFinished) refuse(context, connection, error);
  else if (error.code === 'HPE_CLOSED_CONNECTION') return;
  else whenSent(last.outgoing, () => refuse(context, connection, error));
}

/** What the reader of broken content is told. */
function contentCode(error: ParserError): ProblemCode {
  const { code } = diagnose(error);
  return code === 'request_timeout' || code === 'content_too_large' ? code : 'content_malformed';
}

function whenSent(
  outgoing: { writableFinished: boolean; once(event: 'finish', listener: () => void): unknown },
  act: () => void,
): void {
  if (outgoing.writableFinished) act();
  else outgoing.once('finish', act);
}

function refuse(context: Context, connection: Connection, error: ParserError): void {
  const { socket } = connection;
  if (!socket.writable) return;
  // Who connected and never spoke is not waiting for an answer.
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0) {
    socket.destroySoon();
    return;
  }
  const { status, text, code } = rawAnswer(context, diagnose(error));
  context.observe({ kind: 'client-error', code, status, peer: connection.peer });
  socket.end(text);
  const timer = setTimeout(() => socket.destroy(), context.limits.unreadContentTimeoutMs).unref();
  socket.once('close', () => clearTimeout(timer));
}

/** The rest of a broken message is dropped up to the same bound as content that nobody reads. */
function dropMore(context: Context, connection: Connection): void {
  const { socket } = connection;
  const allowance = context.limits.fieldsBytesMax + context.limits.unreadContentBytesMax;
  if (socket.writableFinished && socket.bytesRead > allowance) socket.destroy();
}
