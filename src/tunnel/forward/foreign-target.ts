/**
 * Recognises requests for another server (RFC 9112 §3.2.2): their target is an absolute URI whose authority is not this
 * program's. Over HTTP/2 every request names an authority, so only credentials for a proxy mark one. TRACE and OPTIONS
 * with `Max-Forwards: 0` are for the recipient, whatever the target (RFC 9110 §7.6.2).
 */
import { parseAddress, unmapAddress } from '../../egress/address.ts';
import { isLocalhost } from '../../egress/policy.ts';
import type { Request } from '../../http/message.ts';
import { parseMaxForwards } from '../../http/request-fields.ts';
import { parseRequestTarget } from '../../http/syntax/request-target.ts';
import { splitHost } from '../../http/syntax/uri.ts';
import { canonicalHost, type Destination, toDestination } from '../destination.ts';

export type ForeignTarget = {
  readonly scheme: 'http' | 'https';
  /** Undefined: the authority is well-formed, but its host cannot be reached by any name or address. */
  readonly destination: Destination | undefined;
  readonly path: string;
};

const defaultPorts = { http: '80', https: '443' } as const;
const slash = 0x2f;

const counted: ReadonlySet<string> = new Set(['TRACE', 'OPTIONS']);

/** Remaining hops; undefined: the field is absent, or malformed and may be ignored. */
export function hopsLeft({ method, fields }: Request): number | undefined {
  if (fields.maxForwards === undefined || !counted.has(method)) return undefined;
  return parseMaxForwards(fields.maxForwards);
}

/** @param ownOrigins `host:port` of everything that this program serves, in any spelling of the hosts */
export function createIsForeign(ownOrigins: () => readonly string[]): (request: Request) => boolean {
  return (request) => {
    if (request.version === '2.0') {
      if (request.fields.proxyAuthorization === undefined) return false;
    } else if (request.target.charCodeAt(0) === slash) return false;
    const target = readForeignTarget(request);
    if (target === undefined || hopsLeft(request) === 0) return false;
    const { destination } = target;
    return destination === undefined || !ownOrigins().some((own) => isSameOrigin(own, destination));
  };
}

/** Undefined: the target names no other server, or is malformed. */
export function readForeignTarget({ method, target, version, fields }: Request): ForeignTarget | undefined {
  const read = parseRequestTarget(method, target);
  if (read === undefined || read.form === 'authority') return undefined;
  if (read.form === 'absolute') {
    return targetOf(read.scheme, read.authority, pathOf(read.path, read.query));
  }
  if (version !== '2.0' || fields.host === undefined) return undefined;
  return targetOf('http', fields.host, target);
}

function targetOf(scheme: 'http' | 'https', authority: string, path: string): ForeignTarget {
  const split = splitHost(authority);
  if (split === undefined) return { scheme, destination: undefined, path };
  const port = split.port === undefined || split.port === '' ? defaultPorts[scheme] : split.port;
  return { scheme, destination: toDestination(split.host, port), path };
}

function pathOf(path: string, query: string | undefined): string {
  return query === undefined ? path : `${path}?${query}`;
}

/** True if both are one origin. Every spelling of this machine reaches a listener on loopback or on all interfaces. */
function isSameOrigin(own: string, { host, port }: Destination): boolean {
  const colon = own.lastIndexOf(':');
  if (own.slice(colon + 1) !== String(port)) return false;
  const name = canonicalHost(own.slice(0, colon));
  if (name === undefined) return false;
  return name === host || (isThisMachine(name) && isThisMachine(host));
}

/** Loopback, or the unspecified address, which reaches it. */
function isThisMachine(host: string): boolean {
  if (isLocalhost(host)) return true;
  const parsed = parseAddress(host);
  if (parsed === undefined) return false;
  const { bytes } = unmapAddress(parsed);
  if (bytes.length === 4) return bytes[0] === 127 || bytes.every((octet) => octet === 0);
  return bytes.every((octet, at) => octet === 0 || (octet === 1 && at === bytes.length - 1));
}
