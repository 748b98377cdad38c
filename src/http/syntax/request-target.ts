/**
 * The request target: RFC 9112 §3.2, its four forms and which method may use which, and the target of connect-udp. Node's parser accepts
 * fragments, `GET *` and stray characters, so every target is read again here, in one pass over a table of RFC 3986 characters (uri.ts names
 * the one exception: brackets in a query).
 */
import {
  isDigitCode,
  PATH_CHARACTERS,
  parseIpv6Address,
  QUERY_CHARACTERS,
  splitHost,
  uriEnd,
} from './uri.ts';

/**
 * A target by its form. `path` is as sent, still percent-encoded; `query` is the text after the first `?`, undefined without one. In the
 * authority form `host` keeps the brackets of an IP literal.
 */
type RequestTarget =
  | { readonly form: 'origin'; readonly path: string; readonly query: string | undefined }
  | {
      readonly form: 'absolute';
      readonly scheme: 'http' | 'https';
      readonly authority: string;
      readonly path: string;
      readonly query: string | undefined;
    }
  | { readonly form: 'authority'; readonly host: string; readonly port: number }
  | { readonly form: 'asterisk' };

/**
 * Reads a target; undefined means 400. `CONNECT` takes only `host:port` with a port of 1 to 65535, and `*` only goes with `OPTIONS`. The
 * absolute form is http or https without user information; its empty path is `/`, or `*` for `OPTIONS` without a query, which asks about the
 * server (RFC 9112 §3.2.4).
 */
export function parseRequestTarget(method: string, target: string): RequestTarget | undefined {
  if (method === 'CONNECT') return authorityForm(target);
  if (target.charCodeAt(0) === 0x2f) {
    const pathEnd = uriEnd(target, 1, PATH_CHARACTERS);
    if (pathEnd === target.length) return { form: 'origin', path: target, query: undefined };
    if (!isQueryAt(target, pathEnd)) return undefined;
    return { form: 'origin', path: target.slice(0, pathEnd), query: target.slice(pathEnd + 1) };
  }
  if (target === '*') return method === 'OPTIONS' ? { form: 'asterisk' } : undefined;
  return absoluteForm(method, target);
}

/**
 * The percent-decoded segments of a path: `/a/b%2Fc` gives `a` and `b/c`, and a slash at the end gives a last empty segment. Undefined if the
 * path does not begin with a slash, an escape is malformed or not UTF-8, a segment holds NUL, or a segment is `.` or `..` in any spelling.
 */
export function decodePathSegments(path: string): readonly string[] | undefined {
  if (path.charCodeAt(0) !== 0x2f || path.includes('\0')) return undefined;
  const segments = path.split('/');
  segments.shift();
  const encoded = path.includes('%');
  // The usual path has no escape and no segment that begins with a dot.
  if (!encoded && !path.includes('/.')) return segments;
  for (let index = 0; index < segments.length; index += 1) {
    const segment = segments[index] ?? '';
    const decoded = segment.includes('%') ? decodeSegment(segment) : segment;
    if (decoded === undefined || decoded === '.' || decoded === '..') return undefined;
    segments[index] = decoded;
  }
  return segments;
}

function decodeSegment(segment: string): string | undefined {
  try {
    const decoded = decodeURIComponent(segment);
    return decoded.includes('\0') ? undefined : decoded;
  } catch {
    // ECMA-262 throws exactly for a malformed escape and for bytes that are not UTF-8.
    return undefined;
  }
}

function authorityForm(target: string): RequestTarget | undefined {
  const split = splitHost(target);
  const port = Number(split?.port ?? '');
  return split === undefined || port === 0 ? undefined : { form: 'authority', host: split.host, port };
}

function absoluteForm(method: string, target: string): RequestTarget | undefined {
  const lower = target.slice(0, 8).toLowerCase();
  const scheme = lower === 'https://' ? 'https' : lower.startsWith('http://') ? 'http' : undefined;
  if (scheme === undefined) return undefined;
  const start = scheme.length + 3;
  let authorityEnd = start;
  while (authorityEnd < target.length && !isAuthorityEnd(target.charCodeAt(authorityEnd))) authorityEnd += 1;
  const authority = target.slice(start, authorityEnd);
  if (splitHost(authority) === undefined) return undefined;
  const pathEnd = uriEnd(target, authorityEnd, PATH_CHARACTERS);
  const hasQuery = pathEnd < target.length;
  if (hasQuery && !isQueryAt(target, pathEnd)) return undefined;
  const query = hasQuery ? target.slice(pathEnd + 1) : undefined;
  const emptyPath = method === 'OPTIONS' && !hasQuery ? '*' : '/';
  const path = authorityEnd === pathEnd ? emptyPath : target.slice(authorityEnd, pathEnd);
  return { form: 'absolute', scheme, authority, path, query };
}

function isQueryAt(target: string, at: number): boolean {
  return target.charCodeAt(at) === 0x3f && uriEnd(target, at + 1, QUERY_CHARACTERS) === target.length;
}

function isAuthorityEnd(code: number): boolean {
  return code === 0x2f || code === 0x3f || code === 0x23;
}

// The target of connect-udp (RFC 9298 §2 and §3) in the default template `/.well-known/masque/udp/{target_host}/{target_port}/`. The caller
// checks whether the host is valid.
//

/** `host`: percent-decoded; an IPv6 address without brackets. */
type UdpTarget = { readonly host: string; readonly port: number };

const prefix = '/.well-known/masque/udp/';
const portDigitsMax = 5;
const portMax = 65_535;

/**
 * Reads a request target, also in the absolute form that some clients send. Undefined if it does not match the template or has no host and
 * port of 1 to 65535. Colons of an IPv6 address must be percent-encoded (RFC 9298 §3), so raw ones and zones are refused.
 */
export function parseUdpTarget(target: string): UdpTarget | undefined {
  const parsed = parseRequestTarget('GET', target);
  if (parsed === undefined || parsed.form === 'authority' || parsed.form === 'asterisk') return undefined;
  if (parsed.query !== undefined || !parsed.path.startsWith(prefix)) return undefined;
  const variables = parsed.path.slice(prefix.length - 1);
  const [host = '', portText = '', end, ...more] = decodePathSegments(variables) ?? [];
  if (end !== '' || more.length > 0 || variables.includes(':') || !isHostText(host)) return undefined;
  const port = readPort(portText);
  return port === undefined ? undefined : { host, port };
}

function isHostText(host: string): boolean {
  if (host.includes(':')) return parseIpv6Address(host) !== undefined;
  // After decoding there is no escape left, and brackets belong to an authority.
  return host !== '' && !host.includes('%') && !host.includes('[');
}

function readPort(text: string): number | undefined {
  if (text.length === 0 || text.length > portDigitsMax) return undefined;
  for (let at = 0; at < text.length; at += 1) if (!isDigitCode(text.charCodeAt(at))) return undefined;
  const port = Number(text);
  return port >= 1 && port <= portMax ? port : undefined;
}
