/**
 * IP addresses and blocks of them as octets, so that one comparison serves both versions (RFC 4291 §2.2, RFC 4632). Addresses with a zone
 * (RFC 4007) are refused: a zone names an interface of this machine.
 */
import { isIPv4, isIPv6 } from 'node:net';

export type Address = {
  readonly bytes: Uint8Array;
};

export type Block = {
  readonly bytes: Uint8Array;
  readonly prefixBits: number;
};

const groupsCount = 8;
const mappedPrefixBits = 96;

/** Parses an address without a zone, in the form that sockets accept; undefined for any other text. */
export function parseAddress(text: string): Address | undefined {
  if (isIPv4(text)) return { bytes: Uint8Array.from(text.split('.'), Number) };
  if (isIPv6(text) && !text.includes('%')) return { bytes: parseIpv6(text) };
  return undefined;
}

/** Parses `10.0.0.0/8`, `fd00::/8`; an address alone is a block of one. Bits after the prefix are ignored. */
export function parseBlock(text: string): Block | undefined {
  const slash = text.indexOf('/');
  const address = parseAddress(slash < 0 ? text : text.slice(0, slash));
  if (address === undefined) return undefined;
  const bitsMax = address.bytes.length * 8;
  const prefixBits = slash < 0 ? bitsMax : Number(text.slice(slash + 1));
  if (!Number.isInteger(prefixBits) || prefixBits < 0 || prefixBits > bitsMax) return undefined;
  return unmapBlock({ bytes: address.bytes, prefixBits });
}

/** True if the address lies in the block; false for different versions. */
export function contains(block: Block, { bytes }: Address): boolean {
  if (block.bytes.length !== bytes.length) return false;
  const whole = block.prefixBits >> 3;
  for (let at = 0; at < whole; at += 1) if (block.bytes[at] !== bytes[at]) return false;
  const rest = block.prefixBits & 7;
  if (rest === 0) return true;
  const mask = (0xff << (8 - rest)) & 0xff;
  return ((block.bytes[whole] ?? 0) & mask) === ((bytes[whole] ?? 0) & mask);
}

/** The IPv4 address in `::ffff:10.0.0.1`, to which the kernel sends IPv4 packets (RFC 4291 §2.5.5.2); any other address unchanged. */
export function unmapAddress(address: Address): Address {
  return isMapped(address.bytes) ? lastFourOctets(address) : address;
}

export function lastFourOctets({ bytes }: Address): Address {
  return { bytes: bytes.slice(-4) };
}

export function isSameAddress(one: Address, other: Address): boolean {
  return contains({ bytes: one.bytes, prefixBits: one.bytes.length * 8 }, other);
}

function unmapBlock(block: Block): Block {
  if (block.prefixBits < mappedPrefixBits || !isMapped(block.bytes)) return block;
  return { bytes: block.bytes.slice(-4), prefixBits: block.prefixBits - mappedPrefixBits };
}

function isMapped(bytes: Uint8Array): boolean {
  if (bytes.length !== 16 || bytes[10] !== 0xff || bytes[11] !== 0xff) return false;
  for (let at = 0; at < 10; at += 1) if (bytes[at] !== 0) return false;
  return true;
}

/** Requires a valid IPv6 address (`isIPv6`). */
function parseIpv6(text: string): Uint8Array {
  const [head = '', tail] = text.split('::');
  const first = readGroups(head);
  const last = tail === undefined ? [] : readGroups(tail);
  const gap = Array.from({ length: groupsCount - first.length - last.length }, () => 0);
  const bytes = new Uint8Array(16);
  for (const [at, group] of [...first, ...gap, ...last].entries()) {
    bytes[at * 2] = group >> 8;
    bytes[at * 2 + 1] = group & 0xff;
  }
  return bytes;
}

/** Reads groups of 16 bits; a dotted quad at the end is two of them. */
function readGroups(text: string): readonly number[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (!group.includes('.')) return [Number.parseInt(group, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
    return [(a << 8) | b, (c << 8) | d];
  });
}
