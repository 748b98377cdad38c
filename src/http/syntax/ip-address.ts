/**
 * IP addresses in text: IPv4 as `dec-octet` and IPv6 as `IPv6address` of RFC 3986 §3.2.2 (RFC 4291 §2.2), without zones and prefix lengths.
 */
import { isDigitCode, isHexCode } from './uri-characters.ts';

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
