/**
 * Judges whether an address is on the public internet. `::ffff:0:0/96` (mapped) and `64:ff9b::/96` (NAT64) are judged by the IPv4 address
 * inside: on IPv6-only networks, DNS64 gives the latter for every IPv4 receiver. 6to4 and Teredo also carry an IPv4 address, but through
 * arbitrary relays, and are refused. The policy has the exceptions.
 */
import {
  type Address,
  type Block,
  contains,
  lastFourOctets,
  parseAddress,
  parseBlock,
  unmapAddress,
} from './address.ts';

type SpecialPurpose = {
  readonly block: string;
  readonly name: string;
  /** The registration, and the reason for the refusal if it is not obvious. */
  readonly source: string;
};

/**
 * Addresses that are not public receivers: the complete IANA special-purpose registries of IPv4 and IPv6 (RFC 6890, RFC 8190; state of
 * 2025-10-09), and other reservations: multicast, class E, and IPv6 outside 2000::/3, the only allocated space. Globally reachable registered
 * blocks (anycast of PCP, TURN and AS112) are refused as well: they are infrastructure. A block inside another follows it.
 */
export const specialPurposeIpv4: readonly SpecialPurpose[] = [
  { block: '0.0.0.0/8', name: 'this network', source: 'RFC 791; 0.0.0.0 reaches the loopback interface' },
  { block: '10.0.0.0/8', name: 'private use', source: 'RFC 1918' },
  {
    block: '100.64.0.0/10',
    name: 'shared address space',
    source: 'RFC 6598; carriers, and metadata services',
  },
  { block: '127.0.0.0/8', name: 'loopback', source: 'RFC 1122' },
  { block: '169.254.0.0/16', name: 'link local', source: 'RFC 3927; metadata services of cloud providers' },
  { block: '172.16.0.0/12', name: 'private use', source: 'RFC 1918' },
  { block: '192.0.0.0/24', name: 'IETF protocol assignments', source: 'RFC 6890' },
  { block: '192.0.0.0/29', name: 'IPv4 service continuity', source: 'RFC 7335' },
  { block: '192.0.0.8/32', name: 'IPv4 dummy address', source: 'RFC 7600' },
  { block: '192.0.0.9/32', name: 'port control protocol anycast', source: 'RFC 7723' },
  { block: '192.0.0.10/32', name: 'TURN anycast', source: 'RFC 8155' },
  { block: '192.0.0.170/32', name: 'NAT64 and DNS64 discovery', source: 'RFC 7050' },
  { block: '192.0.0.171/32', name: 'NAT64 and DNS64 discovery', source: 'RFC 7050' },
  { block: '192.0.2.0/24', name: 'documentation', source: 'RFC 5737' },
  { block: '192.31.196.0/24', name: 'AS112', source: 'RFC 7535' },
  { block: '192.52.193.0/24', name: 'automatic multicast tunnelling', source: 'RFC 7450' },
  { block: '192.88.99.0/24', name: '6to4 relay anycast', source: 'RFC 7526; withdrawn' },
  { block: '192.168.0.0/16', name: 'private use', source: 'RFC 1918' },
  { block: '192.175.48.0/24', name: 'AS112 direct delegation', source: 'RFC 7534' },
  { block: '198.18.0.0/15', name: 'benchmarking', source: 'RFC 2544' },
  { block: '198.51.100.0/24', name: 'documentation', source: 'RFC 5737' },
  { block: '203.0.113.0/24', name: 'documentation', source: 'RFC 5737' },
  { block: '224.0.0.0/4', name: 'multicast', source: 'RFC 5771' },
  { block: '240.0.0.0/4', name: 'reserved', source: 'RFC 1112; class E' },
  { block: '255.255.255.255/32', name: 'limited broadcast', source: 'RFC 919' },
];

export const specialPurposeIpv6: readonly SpecialPurpose[] = [
  { block: '::/96', name: 'IPv4-compatible', source: 'RFC 4291; deprecated' },
  { block: '::/128', name: 'unspecified', source: 'RFC 4291; reaches the loopback interface' },
  { block: '::1/128', name: 'loopback', source: 'RFC 4291' },
  { block: '::ffff:0:0:0/96', name: 'IPv4-translated', source: 'RFC 2765; obsolete' },
  {
    block: '64:ff9b:1::/48',
    name: 'local translation',
    source: 'RFC 8215; its destination is not known here',
  },
  { block: '100::/64', name: 'discard only', source: 'RFC 6666' },
  { block: '100:0:0:1::/64', name: 'dummy prefix', source: 'RFC 9780' },
  { block: '2001::/23', name: 'IETF protocol assignments', source: 'RFC 2928' },
  {
    block: '2001::/32',
    name: 'Teredo',
    source: 'RFC 4380; tunnels to an IPv4 address behind a server of anyone',
  },
  { block: '2001:1::1/128', name: 'port control protocol anycast', source: 'RFC 7723' },
  { block: '2001:1::2/128', name: 'TURN anycast', source: 'RFC 8155' },
  { block: '2001:1::3/128', name: 'service registration anycast', source: 'RFC 9665' },
  { block: '2001:2::/48', name: 'benchmarking', source: 'RFC 5180' },
  { block: '2001:3::/32', name: 'automatic multicast tunnelling', source: 'RFC 7450' },
  { block: '2001:4:112::/48', name: 'AS112', source: 'RFC 7535' },
  { block: '2001:10::/28', name: 'ORCHID', source: 'RFC 4843; deprecated' },
  { block: '2001:20::/28', name: 'ORCHIDv2', source: 'RFC 7343; no locators' },
  { block: '2001:30::/28', name: 'drone remote identification', source: 'RFC 9374; no locators' },
  { block: '2001:db8::/32', name: 'documentation', source: 'RFC 3849' },
  { block: '2002::/16', name: '6to4', source: 'RFC 3056; tunnels to the IPv4 address inside' },
  { block: '2620:4f:8000::/48', name: 'AS112 direct delegation', source: 'RFC 7534' },
  { block: '3fff::/20', name: 'documentation', source: 'RFC 9637' },
  { block: '5f00::/16', name: 'segment routing', source: 'RFC 9602' },
  { block: 'fc00::/7', name: 'unique local', source: 'RFC 4193' },
  { block: 'fe80::/10', name: 'link local', source: 'RFC 4291' },
  { block: 'fec0::/10', name: 'site local', source: 'RFC 3879; deprecated, still routed in places' },
  { block: 'ff00::/8', name: 'multicast', source: 'RFC 4291' },
];

/** Allocated IPv6 (RFC 4291 §2.4): an address outside is reserved, and not a public server even if it is in use. */
const globalUnicastIpv6 = '2000::/3';

/** A translator on the path sends to the IPv4 address in the last four octets (RFC 6052 §2.1). */
const translatedIpv6 = '64:ff9b::/96';

export type AddressJudgement =
  | { readonly allowed: true }
  /** `reason`: the purpose and its block, as in `loopback, 127.0.0.0/8`. */
  | { readonly allowed: false; readonly reason: string };

type Special = { readonly block: Block; readonly reason: string };

const ipv4 = specialPurposeIpv4.map(toSpecial);
const ipv6 = specialPurposeIpv6.map(toSpecial);
const globalUnicast = blockOf(globalUnicastIpv6);
const translated = blockOf(translatedIpv6);
const allowed: AddressJudgement = { allowed: true };

/** Judges an address as text; refuses one with a zone, and any other text. */
export function judgeAddress(text: string): AddressJudgement {
  const address = parseAddress(text);
  if (address !== undefined) return judgeParsed(address);
  return { allowed: false, reason: text.includes('%') ? 'an address with a zone' : 'not an IP address' };
}

export function judgeParsed(given: Address): AddressJudgement {
  const address = unmapAddress(given);
  if (contains(translated, address)) return judgeParsed(lastFourOctets(address));
  const isIpv4 = address.bytes.length === 4;
  const special = (isIpv4 ? ipv4 : ipv6).findLast(({ block }) => contains(block, address));
  if (special !== undefined) return { allowed: false, reason: special.reason };
  if (isIpv4 || contains(globalUnicast, address)) return allowed;
  return { allowed: false, reason: `reserved, outside ${globalUnicastIpv6}` };
}

function toSpecial({ block, name }: SpecialPurpose): Special {
  return { block: blockOf(block), reason: `${name}, ${block}` };
}

function blockOf(text: string): Block {
  const block = parseBlock(text);
  if (block === undefined) throw new Error(`"${text}" is not a block of addresses`);
  return block;
}
