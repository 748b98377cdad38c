/**
 * The destination of a tunnel (§4.10.1; RFC 9110 §9.3.6): a port, and a host in one canonical spelling, so that host
 * rules compare what is dialled. The spelling is that of the URL Standard: lower case, A-labels, any notation of an
 * IPv4 address in decimal (`2130706433`, `0x7f.1`), an IPv6 address compressed and without brackets. Grammar only.
 */
import { parseAddress, unmapAddress } from '../egress/address.ts';

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
