/**
 * The address that a caller without a principal is counted by. IPv6 counts by /64, the smallest network that a customer
 * receives; an IPv4-mapped IPv6 address counts as IPv4. Behind a declared proxy it is the last address of
 * X-Forwarded-For, the one that the proxy itself saw and appended; clients can forge those before it. If that is not an
 * address, the peer's counts, which is the proxy's.
 */
import type { Request } from '../../http/message.ts';
import { isIpv4Address, parseIpv6Address } from '../../http/syntax/uri.ts';
import { memoryBounds } from '../../memory/bounds.ts';
import { ownText } from '../../memory/octet-cache.ts';

export type CallerAddress = (request: Pick<Request, 'fields' | 'peer'>) => string;

/** A cache of prefixes: parsing an address takes 0.7 µs. */
const prefixesMax = memoryBounds.callerAddresses.entries;

/** With a zone; longer text is not an address. */
const addressCharactersMax = 64;

export function createCallerAddress(behindProxy: boolean): CallerAddress {
  const prefixes = new Map<string, string | undefined>();

  /** Returns undefined for text that is not an address. */
  function counted(text: string): string | undefined {
    if (text.length > addressCharactersMax) return undefined;
    // A slice of a long field would keep the whole field in memory.
    if (!text.includes(':')) return isIpv4Address(text) ? ownText(text) : undefined;
    if (prefixes.has(text)) return prefixes.get(text);
    const prefix = prefixOf(text);
    if (prefixes.size >= prefixesMax) prefixes.clear();
    prefixes.set(ownText(text), prefix);
    return prefix;
  }

  function ofPeer(peer: string): string {
    // The operating system wrote it; a closed socket has none.
    return peer.includes(':') ? (counted(peer) ?? peer) : peer;
  }

  return ({ fields, peer }) => {
    if (!behindProxy || fields.xForwardedFor === undefined) return ofPeer(peer);
    return counted(lastForwarded(fields.xForwardedFor)) ?? ofPeer(peer);
  };
}

/** Returns the last member without its brackets and without the port that some proxies append. */
function lastForwarded(field: string): string {
  const last = field.slice(field.lastIndexOf(',') + 1).trim();
  if (last.startsWith('[')) return last.slice(1, Math.max(1, last.indexOf(']')));
  const colon = last.indexOf(':');
  return colon !== -1 && colon === last.lastIndexOf(':') ? last.slice(0, colon) : last;
}

function prefixOf(text: string): string | undefined {
  // A link-local address ends with its zone.
  const groups = parseIpv6Address(text.split('%', 1)[0] ?? '');
  if (groups === undefined) return undefined;
  const [g0 = 0, g1 = 0, g2 = 0, g3 = 0, , g5 = 0, g6 = 0, g7 = 0] = groups;
  const mapped = g5 === 0xffff && groups.slice(0, 5).every((group) => group === 0);
  if (mapped) return `${g6 >> 8}.${g6 & 255}.${g7 >> 8}.${g7 & 255}`;
  return `${[g0, g1, g2, g3].map((group) => group.toString(16)).join(':')}::/64`;
}
