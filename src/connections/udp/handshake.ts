/**
 * What a request for connect-udp must look like besides its target: over HTTP/1.1 a GET with Upgrade, Connection and one Host (RFC 9298 §3.2),
 * over HTTP/2 an extended CONNECT (§3.4), and no content framed by fields over either (RFC 9297 §3.2). Capsule-Protocol is not
 * looked at: it tells intermediaries, and the protocol says it already (RFC 9297 §3.4).
 */
import type { Request } from '../../http/message.ts';
import type { Problem } from '../../http/problem.ts';
import { isHost } from '../../http/syntax/host.ts';
import { trimWhitespace } from '../../http/syntax/token.ts';

/** The upgrade token, and the `:protocol`. */
export const udpProtocol = 'connect-udp';

/** Undefined: as it should be. */
export function handshakeProblem(request: Request): Problem | undefined {
  const { fields } = request;
  if (request.protocol === undefined) {
    if (request.version !== '1.1') return broken('connect-udp needs HTTP/1.1, or an extended CONNECT');
    if (request.method !== 'GET') return broken('connect-udp is asked for with GET');
    if (fields.hostCount !== 1 || !isHost(fields.host ?? '')) return { code: 'host_invalid' };
    if (!hasToken(request, 'upgrade', udpProtocol)) return broken('Upgrade must name connect-udp');
    if (!hasToken(request, 'connection', 'upgrade')) return broken('Connection must name Upgrade');
    return fields.transferEncoding === undefined ? withoutLength(request) : withContent;
  }
  if (request.protocol !== udpProtocol) {
    return broken('the protocol of the extended CONNECT must be connect-udp');
  }
  // `host` beside an `:authority` that differs from it.
  if (fields.hostCount > 1) return { code: 'host_invalid' };
  // HTTP/2 has no Transfer-Encoding: where the fields seem to have one it means a stream that goes on.
  return withoutLength(request);
}

const withContent: Problem = { code: 'content_unexpected', message: 'connect-udp has no content' };

function withoutLength({ fields }: Request): Problem | undefined {
  return fields.contentLength === undefined ? undefined : withContent;
}

function broken(message: string): Problem {
  return { code: 'handshake_invalid', message };
}

/** Whether a list field, on however many lines, has the token, whose case means nothing. */
function hasToken({ rawFields }: Request, name: string, token: string): boolean {
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    if (rawFields[at]?.toLowerCase() !== name) continue;
    const members = (rawFields[at + 1] ?? '').split(',');
    if (members.some((member) => trimWhitespace(member).toLowerCase() === token)) return true;
  }
  return false;
}
