/**
 * Whether an address is one of the public internet. `::ffff:0:0/96` (mapped) and `64:ff9b::/96` (NAT64) stand for the IPv4 address inside
 * and are judged by it: on a network that has IPv6 alone, DNS64 gives the latter for every IPv4 receiver there is. 6to4 and Teredo carry an
 * IPv4 address too, but through relays of anyone, and are refused. Knows no exceptions: those are the policy's.
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
import {
  globalUnicastIpv6,
  type SpecialPurpose,
  specialPurposeIpv4,
  specialPurposeIpv6,
  translatedIpv6,
} from './special-purpose.ts';

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

/** Judges an address as text; one with a zone, and what is no address at all, is refused. */
export function judgeAddress(text: string): AddressJudgement {
  const address = parseAddress(text);
  if (address !== undefined) return judgeParsed(address);
  return { allowed: false, reason: text.includes('%') ? 'an address with a zone' : 'not an IP address' };
}

/** The same of an address that has been read already. */
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
  if (block === undefined) throw new Error(`"${text}" is no block of addresses`);
  return block;
}
