/**
 * Where a tunnel leads (§4.10, rule 1; RFC 9110 §9.3.6): a host in one canonical spelling and a port, so that lists of hosts compare
 * what will be dialled. The spelling is that of the URL Standard: lower case, A-labels, an IPv4 address however it was written
 * (`2130706433`, `0x7f.1`), an IPv6 address compressed and without brackets. Resolves nothing and judges nothing.
 */
import { parseAddress, unmapAddress } from '../../egress/address.ts';

export type Destination = {
  /** Lower case, without a last dot and without brackets. */
  readonly host: string;
  readonly port: number;
};

/** RFC 1035 §2.3.4, without the last dot. */
const nameCharactersMax = 253;
const labelCharactersMax = 63;
const portMax = 65_535;
const portDigits = /^[1-9][0-9]{0,4}$/;
/** What a URL parser would take for something else than a part of the host, or drop; escapes and zones (RFC 6874) are refused. */
const misleading = /[\u0000-\u0020\u007f/?#@\\%<>^|]/;
/** A target comes as octets, one character each: those beyond ASCII would be read as other letters than were meant. */
const beyondAscii = /[^\u0000-\u007f]/;
const label = /^[a-z0-9_-]+$/;

/** Reads `host:port`, the authority form without user information. Undefined: 400. */
export function readAuthority(authority: string): Destination | undefined {
  const colon = authority.lastIndexOf(':');
  if (colon <= 0 || beyondAscii.test(authority)) return undefined;
  const host = authority.slice(0, colon);
  // An IPv6 address has its brackets here, or its last group would be taken for the port.
  if (host.includes(':') && !host.startsWith('[')) return undefined;
  return toDestination(host, authority.slice(colon + 1));
}

/** Of a host with or without the brackets of an IPv6 address, and the digits of a port from 1 to 65535. Undefined: 400. */
export function toDestination(host: string, port: string): Destination | undefined {
  const canonical = canonicalHost(host);
  if (canonical === undefined || !portDigits.test(port)) return undefined;
  const number = Number(port);
  return number > portMax ? undefined : { host: canonical, port: number };
}

/** One spelling for each host; undefined for what is none: empty, escaped, with a zone, a name that no resolver could be asked for. */
export function canonicalHost(host: string): string | undefined {
  if (misleading.test(host)) return undefined;
  const isBracketed = host.startsWith('[') && host.endsWith(']');
  const url = `http://${host.includes(':') && !isBracketed ? `[${host}]` : host}/`;
  if (!URL.canParse(url)) return undefined;
  const { hostname } = new URL(url);
  if (hostname.startsWith('[')) return unmapped(hostname.slice(1, -1));
  const name = hostname.endsWith('.') ? hostname.slice(0, -1) : hostname;
  return isName(name) ? name : undefined;
}

/** `::ffff:192.0.2.1` is the IPv4 address inside (RFC 4291 §2.5.5.2): a list that names one names both. */
function unmapped(text: string): string | undefined {
  const address = parseAddress(text);
  if (address === undefined) return undefined;
  const { bytes } = unmapAddress(address);
  return bytes.length === 4 ? bytes.join('.') : text;
}

function isName(name: string): boolean {
  if (name.length > nameCharactersMax) return false;
  return name.split('.').every((part) => part.length <= labelCharactersMax && label.test(part));
}
