/**
 * The destination of a tunnel (§4.10.1; RFC 9110 §9.3.6): a port, and a host in one canonical spelling, so that host
 * rules compare what is dialled. The spelling is that of the URL Standard: lower case, A-labels, any notation of an
 * IPv4 address in decimal (`2130706433`, `0x7f.1`), an IPv6 address compressed and without brackets. Grammar only.
 */
import { parseAddress, unmapAddress } from '../egress/address.ts';
import { isLocalhost } from '../egress/policy.ts';
import type { Request } from '../http/message.ts';
import { parseMaxForwards } from '../http/request-fields.ts';
import { parseRequestTarget } from '../http/syntax/request-target.ts';
import { splitHost } from '../http/syntax/uri.ts';

export type Destination = {
  readonly host: string;
  readonly port: number;
};

/** RFC 1035 §2.3.4, without the final dot. */
const nameCharactersMax = 253;
const labelCharactersMax = 63;
const portMax = 65_535;
const portDigits = /^[1-9][0-9]{0,4}$/;
/** Characters that a URL parser takes for other parts than the host, or drops; with escapes and zones (RFC 6874). */
const misleading = /[\u0000-\u0020\u007f/?#@\\%<>^|]/;
/** A target arrives as octets, one character each: those beyond ASCII would be read as different letters. */
const beyondAscii = /[^\u0000-\u007f]/;
const label = /^[a-z0-9_-]+$/;

/** Reads `host:port`, the authority form without user information. Undefined: 400. */
export function readAuthority(authority: string): Destination | undefined {
  const colon = authority.lastIndexOf(':');
  if (colon <= 0 || beyondAscii.test(authority)) return undefined;
  const host = authority.slice(0, colon);
  // An IPv6 address must have brackets here, or its last group would be taken for the port.
  if (host.includes(':') && !host.startsWith('[')) return undefined;
  return toDestination(host, authority.slice(colon + 1));
}

/** Reads a host, an IPv6 address with or without brackets, and a port from 1 to 65535. Undefined: 400. */
export function toDestination(host: string, port: string): Destination | undefined {
  const canonical = canonicalHost(host);
  if (canonical === undefined || !portDigits.test(port)) return undefined;
  const number = Number(port);
  return number > portMax ? undefined : { host: canonical, port: number };
}

/** The canonical spelling of a host; undefined if empty, escaped, with a zone, or a name that cannot be resolved. */
export function canonicalHost(host: string): string | undefined {
  if (misleading.test(host)) return undefined;
  const isBracketed = host.startsWith('[') && host.endsWith(']');
  const url = `http://${host.includes(':') && !isBracketed ? `[${host}]` : host}/`;
  if (!URL.canParse(url)) return undefined;
  const { hostname } = new URL(url);
  if (hostname.startsWith('[')) return unmapIpv6(hostname.slice(1, -1));
  const name = hostname.endsWith('.') ? hostname.slice(0, -1) : hostname;
  return isName(name) ? name : undefined;
}

/** `::ffff:192.0.2.1` is the IPv4 address inside (RFC 4291 §2.5.5.2): rules for one apply to both. */
function unmapIpv6(text: string): string | undefined {
  const address = parseAddress(text);
  if (address === undefined) return undefined;
  const { bytes } = unmapAddress(address);
  return bytes.length === 4 ? bytes.join('.') : text;
}

function isName(name: string): boolean {
  if (name.length > nameCharactersMax) return false;
  return name.split('.').every((part) => part.length <= labelCharactersMax && label.test(part));
}

// Recognises requests for another server (RFC 9112 §3.2.2): their target is an absolute URI whose authority is not this
// program's. Over HTTP/2 every request names an authority, so only credentials for a proxy mark one. TRACE and OPTIONS
// with `Max-Forwards: 0` are for the recipient, whatever the target (RFC 9110 §7.6.2).

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
