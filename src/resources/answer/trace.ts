/**
 * TRACE (§4.11; RFC 9110 §9.3.8): the request as received, as message/http. This server is the
 * last recipient whatever Max-Forwards says, since it forwards to no one. Fields that carry credentials are left out.
 */
import type { Response } from '../../http/message.ts';
import { formatHttpMessage } from '../../http/syntax/http-message.ts';
import type { Ended } from './ended.ts';

const withheld: ReadonlySet<string> = new Set([
  'authorization',
  'proxy-authorization',
  'cookie',
  'x-api-key',
  'idempotency-key',
]);

export function traceResponse(status: number, ended: Ended): Response {
  const { method, target, version, rawFields } = ended.request;
  return {
    status,
    fields: ['Content-Type', 'message/http', 'Cache-Control', 'no-store'],
    content: formatHttpMessage({
      method,
      target: withoutKey(target),
      version: `HTTP/${version}`,
      rawFields,
      withheld,
    }),
  };
}

/** The query parameter `api_key` is a credential too (§5.2). */
function withoutKey(target: string): string {
  const at = target.indexOf('?');
  if (at < 0) return target;
  const kept = target
    .slice(at + 1)
    .split('&')
    .filter((pair) => decodeName(pair) !== 'api_key');
  return kept.length === 0 ? target.slice(0, at) : `${target.slice(0, at)}?${kept.join('&')}`;
}

function decodeName(pair: string): string {
  const name = pair.split('=', 1)[0] ?? '';
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
