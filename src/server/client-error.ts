/**
 * Responses to octets that are not an HTTP request (RFC 9110 §15.5.1). node:http reports them once a connection, then
 * its parser is unusable and the connection must close. Unknown methods end here as well, because the parser has a
 * fixed list.
 *
 * Never writes into a response under way: the error may concern octets after a valid request, whose response is still
 * in progress. If the content of that request is broken, its reader receives the error and responds.
 */

import { METHODS } from 'node:http';
import type { Socket } from 'node:net';
import type { Problem } from '../http/problem.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import { isToken } from '../http/syntax/field-value.ts';
import { type Connection, connectionOf } from './connection.ts';
import type { Context } from './context.ts';
import { rawAnswer } from './handle.ts';
import { closeInStages } from './unread-content.ts';

export function answerClientError(context: Context, error: ParserError, socket: Socket): void {
  const connection = connectionOf(socket, context.monotonic);
  if (connection.broken) {
    connection.unread?.onOctets();
    return;
  }
  // Content that is taken as it arrives has a minimal rate in place of a whole time (arriving-content.ts); node:http says this once a request.
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && isArriving(connection)) return;
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

function isArriving({ last }: Connection): boolean {
  return last?.isArriving === true && !last.answered && !last.incoming.complete;
}

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
  // A client that never sent anything does not wait for a response.
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0) {
    socket.destroySoon();
    return;
  }
  const fields = context.corsFields(originIn(error));
  const { status, text, code } = rawAnswer(context, diagnose(error), fields);
  context.observe({ kind: 'client-error', code, status, peer: connection.peer });
  socket.write(text);
  closeInStages(context, socket);
}

type ParserError = Error & {
  readonly code?: string;
  readonly reason?: string;
  readonly bytesParsed?: number;
  readonly rawPacket?: Uint8Array;
};

const methodBytesMax = 32;

/**
 * Maps a parser error of node:http to the error registry (§7). The error has a code and the parsed octets, of
 * which only the method and the request line are examined, and never repeated in full.
 */
function diagnose(error: ParserError): Problem {
  switch (error.code) {
    case 'HPE_INVALID_METHOD':
      return methodProblem(error);
    case 'HPE_HEADER_OVERFLOW':
      return { code: overflowsInTarget(error) ? 'target_too_long' : 'fields_too_large' };
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return { code: 'content_too_large', message: 'chunk extensions are too large' };
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { code: 'request_timeout' };
    case 'HPE_INVALID_VERSION':
      // The parser has the same code for a request line that ends in a bare LF.
      return { code: error.reason === 'Invalid HTTP version' ? 'version_unsupported' : 'message_invalid' };
    case 'HPE_PAUSED_H2_UPGRADE':
      return { code: 'version_unsupported' };
    default:
      return { code: 'message_invalid' };
  }
}

/** A token that is not a known method is 501; anything else is not HTTP. */
function methodProblem(error: ParserError): Problem {
  const method = methodText(error);
  if (method === undefined) return { code: 'message_invalid' };
  const upper = method.toUpperCase();
  if (method === upper || !METHODS.includes(upper)) return { code: 'method_unknown' };
  return { code: 'method_unknown', message: `method not implemented; methods are case-sensitive: ${upper}` };
}

function methodText({ rawPacket, bytesParsed = 0 }: ParserError): string | undefined {
  if (rawPacket === undefined) return undefined;
  // Earlier requests of the same packet end in LF or in content; empty lines before a request are allowed.
  const start = rawPacket.lastIndexOf(0x0a, Math.max(bytesParsed - 1, 0)) + 1;
  const text = Buffer.from(rawPacket.subarray(start, start + methodBytesMax)).toString('latin1');
  const space = text.indexOf(' ');
  const method = space < 0 ? text : text.slice(0, space);
  return isToken(method) ? method : undefined;
}

const originLine = /\r\norigin:[ \t]*([^\r\n]*?)[ \t]*\r\n/i;

/** The Origin of the refused request, if it came in the same packet. */
function originIn({ rawPacket, bytesParsed = 0 }: ParserError): string | undefined {
  if (rawPacket === undefined) return undefined;
  // An earlier request of the packet ended before what was parsed last.
  const packet = Buffer.from(rawPacket);
  const before = Math.max(Math.min(bytesParsed - 1, packet.length - 5), 0);
  const start = Math.max(packet.lastIndexOf('\r\n\r\n', before, 'latin1'), 0);
  const end = packet.indexOf('\r\n\r\n', start + 1, 'latin1');
  const head = packet.toString('latin1', start, end === -1 ? undefined : end + 2);
  return originLine.exec(head)?.[1];
}

/**
 * True if the request line alone was too long: no line ended before the limit. If that line came in several packets
 * this cannot be seen, and the response is 431, which is true as well.
 */
function overflowsInTarget({ rawPacket, bytesParsed = 0 }: ParserError): boolean {
  if (rawPacket === undefined) return false;
  const parsed = rawPacket.subarray(0, Math.max(bytesParsed, 1));
  return !parsed.includes(0x0a) && methodText({ rawPacket, bytesParsed: 0 } as ParserError) !== undefined;
}
