/**
 * Hosts, IP addresses, origins and the characters of URIs (RFC 3986, RFC 6454). Grammar only, without resolution. An empty host, user
 * information and IPv6 zones are refused.
 */

/** A host as written (IP literals with their brackets), and the digits of its port if a colon was there. */
type HostAndPort = { readonly host: string; readonly port: string | undefined };

const PORT_MAX = 65_535;

/** True if the value of a `Host` field is well-formed. The port may be empty, else it is 0 to 65535. */
export function isHost(value: string): boolean {
  const end = hostEnd(value);
  return end > 0 && (end === value.length || isPortAt(value, end));
}

/** Splits `uri-host [ ":" port ]`; undefined if malformed. */
export function splitHost(value: string): HostAndPort | undefined {
  const end = hostEnd(value);
  if (end <= 0) return undefined;
  if (end === value.length) return { host: value, port: undefined };
  return isPortAt(value, end) ? { host: value.slice(0, end), port: value.slice(end + 1) } : undefined;
}

/** The index after the host at the start of the value; 0 or -1 without one. */
function hostEnd(value: string): number {
  // An IPv4 address is a registered name by its characters, so one scan serves both.
  if (value.charCodeAt(0) !== 0x5b) return uriEnd(value, 0, NAME_CHARACTERS);
  const close = value.indexOf(']');
  if (close === -1) return -1;
  const future = (value.charCodeAt(1) | 0x20) === 0x76;
  const address = value.slice(1, close);
  const sound = future ? isFutureAddress(value, close) : parseIpv6Address(address) !== undefined;
  return sound ? close + 1 : -1;
}

function isPortAt(value: string, colon: number): boolean {
  if (value.charCodeAt(colon) !== 0x3a) return false;
  let port = 0;
  for (let at = colon + 1; at < value.length; at += 1) {
    const code = value.charCodeAt(at);
    if (!isDigitCode(code)) return false;
    port = port * 10 + code - 0x30;
    if (port > PORT_MAX) return false;
  }
  return true;
}

/** `"v" 1*HEXDIG "." 1*( unreserved / sub-delims / ":" )` from index 1 up to `close`. */
function isFutureAddress(value: string, close: number): boolean {
  let at = 2;
  while (isHexCode(value.charCodeAt(at))) at += 1;
  if (at === 2 || value.charCodeAt(at) !== 0x2e || at + 1 === close) return false;
  const address = value.slice(at + 1, close);
  return !address.includes('%') && uriEnd(address, 0, ADDRESS_CHARACTERS) === address.length;
}

// IP addresses in text: IPv4 as `dec-octet` and IPv6 as `IPv6address` of RFC 3986 §3.2.2 (RFC 4291 §2.2), without zones and prefix lengths.
//

const GROUPS = 8;

export function isIpv4Address(text: string): boolean {
  return ipv4Octets(text) !== undefined;
}

/**
 * The eight 16-bit groups of an IPv6 address; undefined if malformed. One `::` replaces at least one group, an IPv4 address at the end the
 * last two.
 */
export function parseIpv6Address(text: string): readonly number[] | undefined {
  // The longest is six groups and an IPv4 address: 45 characters.
  if (text.length < 2 || text.length > 45) return undefined;
  const gap = text.indexOf('::');
  if (gap === -1) {
    const groups = groupsOf(text, true);
    return groups?.length === GROUPS ? groups : undefined;
  }
  const before = gap === 0 ? [] : groupsOf(text.slice(0, gap), false);
  const after = gap + 2 === text.length ? [] : groupsOf(text.slice(gap + 2), true);
  if (before === undefined || after === undefined) return undefined;
  const missing = GROUPS - before.length - after.length;
  if (missing < 1) return undefined;
  return [...before, ...new Array<number>(missing).fill(0), ...after];
}

/** The 16-bit groups of the text. Only its end may be an IPv4 address. */
function groupsOf(text: string, ipv4Allowed: boolean): number[] | undefined {
  const parts = text.split(':');
  const groups: number[] = [];
  for (let index = 0; index < parts.length; index += 1) {
    const part = parts[index] ?? '';
    if (ipv4Allowed && index === parts.length - 1 && part.includes('.')) {
      const octets = ipv4Octets(part);
      if (octets === undefined) return undefined;
      const [a = 0, b = 0, c = 0, d = 0] = octets;
      groups.push(a * 256 + b, c * 256 + d);
      continue;
    }
    if (part.length === 0 || part.length > 4) return undefined;
    for (let at = 0; at < part.length; at += 1) if (!isHexCode(part.charCodeAt(at))) return undefined;
    groups.push(Number.parseInt(part, 16));
  }
  return groups;
}

function ipv4Octets(text: string): readonly number[] | undefined {
  const parts = text.split('.');
  if (parts.length !== 4) return undefined;
  const octets: number[] = [];
  for (const part of parts) {
    if (part.length === 0 || part.length > 3 || (part.length > 1 && part.startsWith('0'))) return undefined;
    for (let at = 0; at < part.length; at += 1) if (!isDigitCode(part.charCodeAt(at))) return undefined;
    const octet = Number(part);
    if (octet > 255) return undefined;
    octets.push(octet);
  }
  return octets;
}

// The `Origin` field: RFC 6454 §6.2 and §7, one serialised origin or `null`. Lists of origins, which that RFC allows and no browser sends,
// are refused.
//

/** True if the value is `scheme "://" host [ ":" port ]` or `null`. */
export function isOrigin(value: string): boolean {
  if (value === 'null') return true;
  const colon = value.indexOf('://');
  if (colon <= 0 || !isScheme(value.slice(0, colon))) return false;
  const authority = splitHost(value.slice(colon + 3));
  return authority !== undefined && authority.port !== '';
}

const authorityEnd = /[/?#]/;

/** The URL up to its path, query or fragment, as written: its origin, and what else stands before the host. */
export function originOfUrl(url: string): string {
  const authority = url.indexOf('://') + 3;
  const length = url.slice(authority).search(authorityEnd);
  return length === -1 ? url : url.slice(0, authority + length);
}

/**
 * The path under which clients see this program, from its public URL: empty, or such as `/backend`, which a proxy removes from requests.
 * Each path that the program gives out begins with it; the router finds resources without it.
 */
export function publicRoot(publicUrl: string | undefined): string {
  return publicUrl === undefined ? '' : publicUrl.slice(originOfUrl(publicUrl).length);
}

/** RFC 3986 §3.1: `ALPHA *( ALPHA / DIGIT / "+" / "-" / "." )`. */
function isScheme(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    const letter = code | 0x20;
    if (letter >= 0x61 && letter <= 0x7a) continue;
    const later = isDigitCode(code) || code === 0x2b || code === 0x2d || code === 0x2e;
    if (at === 0 || !later) return false;
  }
  return true;
}

// The character classes of URIs (RFC 3986 §2 and §3) as one table of bits, and a scanner over it.

/** `unreserved / sub-delims`: a registered name without percent-encodings. */
const NAME_CHARACTERS = 1;
/** `NAME_CHARACTERS / ":"`: the tail of an IPvFuture address. */
const ADDRESS_CHARACTERS = 2;
/** `pchar / "/"`: a path. */
export const PATH_CHARACTERS = 4;
/**
 * `pchar / "/" / "?"`, and `[` and `]`, which RFC 3986 does not allow in a query but every browser and most clients send unescaped; without
 * them `?price[gte]=10` would be malformed.
 */
export const QUERY_CHARACTERS = 8;

const CLASSES: Uint8Array = classTable();

/** The index of the first character at or after `from` that is neither in the class nor the start of a valid percent-encoding. */
export function uriEnd(text: string, from: number, characterClass: number): number {
  let at = from;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code < 128 && ((CLASSES[code] ?? 0) & characterClass) !== 0) at += 1;
    else if (code === 0x25 && isHexCode(text.charCodeAt(at + 1)) && isHexCode(text.charCodeAt(at + 2)))
      at += 3;
    else return at;
  }
  return at;
}

/** True if the code is a hexadecimal digit; false for NaN, which lies past the end of a text. */
export function isHexCode(code: number): boolean {
  const letter = code | 0x20;
  return isDigitCode(code) || (letter >= 0x61 && letter <= 0x66);
}

export function isDigitCode(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function classTable(): Uint8Array {
  const table = new Uint8Array(128);
  const all = NAME_CHARACTERS | ADDRESS_CHARACTERS | PATH_CHARACTERS | QUERY_CHARACTERS;
  const put = (characters: string, classes: number): void => {
    for (let at = 0; at < characters.length; at += 1) table[characters.charCodeAt(at)] = classes;
  };
  put('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789', all);
  put("-._~!$&'()*+,;=", all);
  put(':', ADDRESS_CHARACTERS | PATH_CHARACTERS | QUERY_CHARACTERS);
  put('@/', PATH_CHARACTERS | QUERY_CHARACTERS);
  put('?[]', QUERY_CHARACTERS);
  return table;
}
