/**
 * The address that a caller without a principal is counted by. IPv6 counts by /64, the smallest network that a customer
 * receives; an IPv4-mapped IPv6 address counts as IPv4. Behind declared proxies it is an address of X-Forwarded-For: the last
 * for one proxy, the one that it saw and appended, the one before for two, and so on. Clients can forge those before it. Of a field with fewer
 * addresses the first counts: the request came past the outer proxies. If it is not an address, the peer's counts, which is the proxy's.
 */
import type { Settings } from '../../config/settings.ts';
import type { Request } from '../../http/message.ts';
import { isIpv4Address, parseIpv6Address } from '../../http/syntax/uri.ts';
import { memoryBounds } from '../../memory/bounds.ts';
import { ownText } from '../../memory/octet-cache.ts';

export type CallerAddress = (request: Pick<Request, 'fields' | 'peer'>) => string;

export function proxiesOf({
  behindProxy,
  proxiesTrusted,
}: Pick<Settings, 'behindProxy' | 'proxiesTrusted'>): number {
  return behindProxy ? proxiesTrusted : 0;
}

/** A cache of prefixes: parsing an address takes 0.7 µs. */
const prefixesMax = memoryBounds.callerAddresses.entries;

/** With a zone; longer text is not an address. */
const addressCharactersMax = 64;

/** @param proxies that each append an address; 0: none is declared */
export function createCallerAddress(proxies: number): CallerAddress {
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
    if (proxies === 0 || fields.xForwardedFor === undefined) return ofPeer(peer);
    return counted(forwarded(fields.xForwardedFor, proxies)) ?? ofPeer(peer);
  };
}

/** @returns a member, counted from the end, without its brackets and without the port that some proxies append */
function forwarded(field: string, fromEnd: number): string {
  let end = field.length;
  let start = field.lastIndexOf(',') + 1;
  for (let skipped = 1; skipped < fromEnd && start > 0; skipped += 1) {
    end = start - 1;
    start = field.lastIndexOf(',', end - 1) + 1;
  }
  const member = field.slice(start, end).trim();
  if (member.startsWith('[')) return member.slice(1, Math.max(1, member.indexOf(']')));
  const colon = member.indexOf(':');
  return colon !== -1 && colon === member.lastIndexOf(':') ? member.slice(0, colon) : member;
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
