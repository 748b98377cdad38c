/**
 * The fields of forwarded requests and their answers (RFC 9110 §7.6). Fields of one connection are removed: those below
 * and those that Connection names. Framing is written anew and never copied, so that no later recipient reads another
 * end into the message (RFC 9112 §11.2). Trailers and the fields that announce them are dropped (RFC 9110 §6.5).
 */
import type { Request } from '../../http/message.ts';
import { parseFieldList } from '../../http/syntax/field-value.ts';
import type { Destination } from '../destination.ts';
import type { ForwardCall } from '../proxy-call.ts';
import { hopsLeft } from './foreign-target.ts';

/** RFC 9110 §7.6.1; older: `Keep-Alive`, `Proxy-Connection` (RFC 9112 §C.2.2), HTTP2-Settings (RFC 7540 §3.2.1). */
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

/** Credentials for this proxy, and fields that are written anew. */
const ofRequest: ReadonlySet<string> = new Set([
  ...ofConnection,
  'content-length',
  'expect',
  'host',
  'proxy-authorization',
]);

/** Fields by which a proxy addresses its own client; the destination is not one. */
const ofAnswer: ReadonlySet<string> = new Set([
  ...ofConnection,
  'proxy-authenticate',
  'proxy-authentication-info',
]);

export type Framing =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly length: string }
  | { readonly kind: 'chunked' };

/** Methods that need no Content-Length without content (RFC 9110 §8.6). */
const bare: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT']);

/**
 * The fields of a request for a destination, as a flat list.
 * @param via this proxy's name in Via, after the version in which the message was received
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

/** The fields of an answer. @param version of the answer, such as `1.1` @param status of the forwarded answer */
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
    // 1xx and 204 must have none (RFC 9110 §8.6).
    if (lower === 'content-length' && (status < 200 || status === 204)) continue;
    kept.push(name, rawFields[at + 1] ?? '');
  }
  if (status >= 200) kept.push('Via', `${version} ${via}`);
  return kept;
}

/** RFC 9110 §10.1.1: an expectation of an HTTP/1.0 client is ignored. */
export function awaitsContinue({ version, fields }: Request): boolean {
  return version !== '1.0' && fields.expect?.toLowerCase() === '100-continue';
}

/** Names that Connection lists; undefined without the field. A malformed list counts as empty. */
function namedByConnection(rawFields: readonly string[]): ReadonlySet<string> | undefined {
  let named: Set<string> | undefined;
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    if (rawFields[at]?.toLowerCase() !== 'connection') continue;
    named ??= new Set();
    for (const token of parseFieldList(rawFields[at + 1] ?? '') ?? []) named.add(token);
  }
  // Connection must not remove the length of the content.
  named?.delete('content-length');
  return named;
}

/** Host as in a URL: without the default port of http. */
function hostOf({ host, port }: Destination): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return port === 80 ? name : `${name}:${port}`;
}

/**
 * Determines the framing of a request's content for the destination (RFC 9112 §6). HTTP/1.1 fields tell; HTTP/2 does
 * not need them (RFC 9113 §8.1), so it waits for the first octets or the end, unless the client waits for 100
 * (Continue) from the destination.
 */
export async function framingOf({ request, content, signal }: ForwardCall): Promise<Framing> {
  const { fields, version } = request;
  if (fields.contentLength !== undefined) return { kind: 'length', length: fields.contentLength };
  if (fields.transferEncoding === undefined) return { kind: 'none' };
  if (version !== '2.0') return { kind: 'chunked' };
  if (!awaitsContinue(request) && content.readableLength === 0 && !content.readableEnded && !signal.aborted) {
    await new Promise<void>((resolve) => {
      const settle = (): void => {
        for (const event of ['readable', 'end', 'close']) content.off(event, settle);
        signal.removeEventListener('abort', settle);
        resolve();
      };
      for (const event of ['readable', 'end', 'close']) content.on(event, settle);
      signal.addEventListener('abort', settle);
    });
  }
  const isEmpty = content.readableLength === 0 && !awaitsContinue(request);
  return isEmpty ? { kind: 'none' } : { kind: 'chunked' };
}
