/**
 * The target of connect-udp (RFC 9298 §2 and §3) in the default template `/.well-known/masque/udp/{target_host}/{target_port}/`. The caller
 * checks whether the host is valid.
 */
import { parseIpv6Address } from './ip-address.ts';
import { decodePathSegments, parseRequestTarget } from './request-target.ts';
import { isDigitCode } from './uri-characters.ts';

/** `host`: percent-decoded; an IPv6 address without brackets. */
export type UdpTarget = { readonly host: string; readonly port: number };

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
