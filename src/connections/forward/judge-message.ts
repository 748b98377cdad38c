/**
 * What is wrong with a request that is to go on to another server (RFC 9112 §3.2, §6.1): no resource looks at it, so what the kernel refuses
 * there is refused here. Versions and the framing of HTTP/1.0 were judged when it was received.
 */
import type { Request } from '../../http/message.ts';
import { parseFieldList } from '../../http/syntax/field-list.ts';
import { isHost } from '../../http/syntax/host.ts';
import { isUnderstoodTransferCoding } from '../../http/syntax/transfer-coding.ts';
import type { Refusal } from '../tunnel/refusal.ts';
import type { ForeignTarget } from './foreign-target.ts';

/** In the order of the kernel's own checks; undefined: it can go on. */
export function judgeMessage(request: Request, { scheme }: ForeignTarget): Refusal | undefined {
  const { fields, version, method, rawFields } = request;
  const { host, hostCount } = fields;
  if (hostCount > 1 || (host === undefined ? version === '1.1' : !isHost(host))) {
    return bad('host_invalid');
  }
  if (fields.transferEncoding !== undefined && !isUnderstoodTransferCoding(fields.transferEncoding)) {
    return bad('transfer_coding_unknown');
  }
  if (scheme === 'https') return { ...bad('tunnel_target_invalid'), message: throughConnect };
  if (!namesFields(rawFields))
    return { ...bad('field_invalid'), message: 'Connection must be a list of tokens' };
  if (method === 'TRACE' && (fields.transferEncoding ?? fields.contentLength ?? '0') !== '0') {
    return bad('content_unexpected');
  }
  if (version !== '1.0' && fields.expect !== undefined && fields.expect.toLowerCase() !== '100-continue') {
    return bad('expectation_failed');
  }
  return undefined;
}

const throughConnect = 'https URLs are asked for through a tunnel: CONNECT host:443, then TLS within it';

function bad(code: Refusal['code']): Refusal {
  return { code, error: 'http_request_error' };
}

/** What Connection names must go; where that cannot be read, something would stay that should not. */
function namesFields(rawFields: readonly string[]): boolean {
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    if (rawFields[at]?.toLowerCase() !== 'connection') continue;
    if (parseFieldList(rawFields[at + 1] ?? '') === undefined) return false;
  }
  return true;
}
