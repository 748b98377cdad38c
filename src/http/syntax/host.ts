/**
 * `uri-host [ ":" port ]`: RFC 9110 §7.2 over RFC 3986 §3.2.2. Grammar only, without resolution. An empty host, user information and IPv6
 * zones are refused.
 */
import { parseIpv6Address } from './ip-address.ts';
import { ADDRESS_CHARACTERS, isDigitCode, isHexCode, NAME_CHARACTERS, uriEnd } from './uri-characters.ts';

/** A host as written (IP literals with their brackets), and the digits of its port if a colon was there. */
export type HostAndPort = { readonly host: string; readonly port: string | undefined };

const PORT_MAX = 65_535;

/** Whether the value of a `Host` field is well-formed. The port may be empty, else it is 0 to 65535. */
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
