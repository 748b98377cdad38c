/**
 * Fields of a message that goes on to the next server, and of its answer (RFC 9110 §7.6). What belongs to one connection ends here, whatever
 * else the message says of it: the fields named below and those that Connection names. What frames the message is written anew from what
 * was understood, never copied, so that nobody behind reads another end into it (RFC 9112 §11.2). Trailers are dropped, as §6.5 permits,
 * and so are the fields that speak of them.
 */
import type { Request } from '../../http/message.ts';
import { parseFieldList } from '../../http/syntax/field-list.ts';
import type { Destination } from '../tunnel/destination.ts';
import { hopsLeft } from './foreign-target.ts';

/** RFC 9110 §7.6.1, and what predates it: `Keep-Alive`, `Proxy-Connection` (RFC 9112 §C.2.2), `HTTP2-Settings` (RFC 7540 §3.2.1). */
const ofConnection = [
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
] as const;

/** Credentials for us; and what is written anew. */
const ofRequest: ReadonlySet<string> = new Set([
  ...ofConnection,
  'content-length',
  'expect',
  'host',
  'proxy-authorization',
]);

/** A proxy speaks to its own client with these, and the destination is none. */
const ofAnswer: ReadonlySet<string> = new Set([
  ...ofConnection,
  'proxy-authenticate',
  'proxy-authentication-info',
]);

/** How the content is delimited on the way on. */
export type Framing =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly length: string }
  | { readonly kind: 'chunked' };

/** Methods that say nothing by having no content, so that it need not be said that they have none (RFC 9110 §8.6). */
const bare: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT']);

/**
 * Of a request for a destination, as a flat list.
 * @param via this proxy's name in Via; the version in front is that which the message came by
 */
export function requestFields(
  request: Request,
  destination: Destination,
  framing: Framing,
  via: string,
): string[] {
  const { rawFields, version, method } = request;
  const named = namedByConnection(rawFields);
  const hops = hopsLeft(request);
  const kept = ['Host', hostOf(destination)];
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    const name = rawFields[at] ?? '';
    const lower = name.toLowerCase();
    if (lower.startsWith(':') || ofRequest.has(lower) || named?.has(lower)) continue;
    if (lower === 'max-forwards' && hops !== undefined) kept.push(name, String(hops - 1));
    else kept.push(name, rawFields[at + 1] ?? '');
  }
  if (framing.kind === 'chunked') kept.push('Transfer-Encoding', 'chunked');
  else if (framing.kind === 'length') kept.push('Content-Length', framing.length);
  else if (!bare.has(method)) kept.push('Content-Length', '0');
  if (awaitsContinue(request)) kept.push('Expect', '100-continue');
  kept.push('Via', `${version === '2.0' ? '2' : version} ${via}`, 'Connection', 'close');
  return kept;
}

/** Of an answer of a destination. @param version of the answer, such as `1.1` @param status what it is answered with */
export function answerFields(
  rawFields: readonly string[],
  status: number,
  version: string,
  via: string,
): string[] {
  const named = namedByConnection(rawFields);
  const kept: string[] = [];
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    const name = rawFields[at] ?? '';
    const lower = name.toLowerCase();
    if (ofAnswer.has(lower) || named?.has(lower)) continue;
    // 1xx and 204 have none (RFC 9110 §8.6), whatever the destination thinks.
    if (lower === 'content-length' && (status < 200 || status === 204)) continue;
    kept.push(name, rawFields[at + 1] ?? '');
  }
  if (status >= 200) kept.push('Via', `${version} ${via}`);
  return kept;
}

/** RFC 9110 §10.1.1: an expectation of an HTTP/1.0 client is none. */
export function awaitsContinue({ version, fields }: Request): boolean {
  return version !== '1.0' && fields.expect?.toLowerCase() === '100-continue';
}

/** Names that Connection lists; undefined where there is nothing to look up. A list that cannot be read names nothing. */
function namedByConnection(rawFields: readonly string[]): ReadonlySet<string> | undefined {
  let named: Set<string> | undefined;
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    if (rawFields[at]?.toLowerCase() !== 'connection') continue;
    named ??= new Set();
    for (const token of parseFieldList(rawFields[at + 1] ?? '') ?? []) named.add(token);
  }
  // What says how long the content is does not go because somebody names it.
  named?.delete('content-length');
  return named;
}

/** Host as a URL has it: without the port that http has anyway. */
function hostOf({ host, port }: Destination): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return port === 80 ? name : `${name}:${port}`;
}
