/**
 * CONNECT at an origin without a tunnel (§4.10, rule 9): 405. node:http hands the bare socket over, before any answer
 * that is still owed on it, so those are waited for. A tunnel moves in here, behind the same event.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { connectionOf } from './connection.ts';
import type { Context } from './context.ts';
import { rawAnswer } from './raw-answer.ts';

const supportedVersions: ReadonlySet<string> = new Set(['1.0', '1.1']);

/** @param allow what the server supports, for the Allow field that 405 must have (RFC 9110 §15.5.6) */
export function refuseConnect(
  context: Context,
  incoming: IncomingMessage,
  stream: Duplex,
  allow: string,
): void {
  const connection = connectionOf(incoming.socket, context.monotonic);
  const { last, closing } = connection;
  // node:http has taken its own listener off; a reset by the client is no news.
  stream.on('error', () => stream.destroy());
  if (closing) return;
  const answer = () => {
    connection.closing = true;
    const code = supportedVersions.has(incoming.httpVersion) ? 'method_not_allowed' : 'version_unsupported';
    const { status, text } = rawAnswer(
      context,
      { code },
      code === 'method_not_allowed' ? ['Allow', allow] : [],
    );
    context.observe({ kind: 'client-error', code, status, peer: connection.peer });
    stream.end(text);
    stream.resume();
    const timer = setTimeout(() => stream.destroy(), context.limits.unreadContentTimeoutMs).unref();
    stream.once('close', () => clearTimeout(timer));
  };
  if (last === undefined || last.outgoing.writableFinished) answer();
  else last.outgoing.once('finish', answer);
}
