/**
 * The egress policy (§6.8) of webhooks and tunnels: by address and port when a connection is opened, and by URL as far as possible before
 * resolution. In this order: own listeners are refused; addresses of the allow-list are permitted at any port that Fetch does not block;
 * other public addresses are permitted at permitted ports.
 */

import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { commaSeparated } from '../config/refusals.ts';
import type { Settings } from '../config/settings.ts';
import { originOfUrl } from '../http/syntax/uri.ts';
import {
  type Address,
  type Block,
  contains,
  isSameAddress,
  lastFourOctets,
  parseAddress,
  parseBlock,
  unmapAddress,
} from './address.ts';

export type EgressPolicyOptions = {
  /** Permitted blocks, as in the setting `egressAllow`. */
  readonly egressAllow: string;
  /** Ports of public addresses, as in the setting `egressPorts`. */
  readonly egressPorts: string;
  /**
   * Ignores `egressPorts` and the list of Fetch. Tunnels have port rules of their own, and Comity sends no HTTP through them that a server of
   * another protocol could take for commands.
   */
  readonly everyPort?: boolean;
  readonly ownListeners: () => readonly OwnListener[];
  /** Default: those of this machine's interfaces. */
  readonly localAddresses?: () => readonly string[];
};

export type DestinationVerdict =
  | { readonly allowed: true }
  /** `why` is for the operator's log: it may name the network of the address. */
  | { readonly allowed: false; readonly reason: 'address' | 'port' | 'own-listener'; readonly why: string };

type UrlVerdict =
  | { readonly ok: true; readonly url: URL }
  /** `why`: a predicate for the owner of the endpoint, as in `must be an absolute http or https URL`. */
  | { readonly ok: false; readonly why: string };

export type EgressPolicy = {
  /** Judges one address as text, without brackets, at one port. */
  readonly judge: (address: string, port: number) => DestinationVerdict;
  /** Judges a URL before any lookup: one that is `ok` may still be refused when its name resolves. */
  readonly checkUrl: (text: string, options?: { readonly httpsRequired?: boolean }) => UrlVerdict;
};

const urlCharactersMax = 2048;

const absolute = /^https?:\/\/[^/?]/i;
// Tabs and line breaks, which a URL parser drops, and backslashes, which it takes for slashes and others do not.
const misleading = /[\u0000-\u0020\u007f\\]/;
const authority = /^[^/]*\/\/([^/?]*)/;
const allowedVerdict: DestinationVerdict = { allowed: true };

/** Creates a policy from valid settings; throws for an invalid block. */
export function createEgressPolicy(options: EgressPolicyOptions): EgressPolicy {
  const allow = commaSeparated(options.egressAllow).map((text) => {
    const block = parseBlock(text);
    if (block === undefined) throw new Error(`"${text}" of egressAllow is not a block of addresses`);
    return block;
  });
  const ranges = readPortRanges(commaSeparated(options.egressPorts));
  const isBlocked = (port: number): boolean => options.everyPort !== true && blockedPorts.has(port);
  const isPermitted = (port: number): boolean => options.everyPort === true || permitsPort(ranges, port);
  const localAddresses = options.localAddresses ?? listLocalAddresses;

  function isAllowListed(address: Address): boolean {
    return allow.some((block) => contains(block, address));
  }

  function judge(text: string, port: number): DestinationVerdict {
    const parsed = parseAddress(text);
    if (parsed === undefined) return { allowed: false, reason: 'address', why: 'not an IP address' };
    const address = unmapAddress(parsed);
    if (isOwnListener({ address, port }, options.ownListeners(), localAddresses)) {
      return { allowed: false, reason: 'own-listener', why: 'a listener of this program' };
    }
    if (isBlocked(port)) return portVerdict(port);
    if (isAllowListed(address)) return allowedVerdict;
    const judged = judgeParsed(address);
    if (!judged.allowed) return { allowed: false, reason: 'address', why: judged.reason };
    return isPermitted(port) ? allowedVerdict : portVerdict(port);
  }

  /** Judges a name: by port unless an address of the allow-list may be behind it; `localhost` by RFC 6761. */
  function judgeName(hostname: string, port: number): DestinationVerdict {
    if (isLocalhost(hostname)) {
      const verdicts = [judge('127.0.0.1', port), judge('::1', port)];
      return verdicts.find(({ allowed }) => allowed) ?? verdicts[0] ?? allowedVerdict;
    }
    const isOpen = isPermitted(port) || (allow.length > 0 && !isBlocked(port));
    return isOpen ? allowedVerdict : portVerdict(port);
  }

  function checkUrl(text: string, { httpsRequired = false } = {}): UrlVerdict {
    if (text.length > urlCharactersMax) return refuse(`must have at most ${urlCharactersMax} characters`);
    if (!absolute.test(text) || !URL.canParse(text)) return refuse('must be an absolute http or https URL');
    if (misleading.test(text)) return refuse('must have no spaces, control characters or backslashes');
    if (authority.exec(text)?.[1]?.includes('@')) return refuse('must have no user name or password');
    if (text.includes('#')) return refuse('must have no fragment');
    const url = new URL(text);
    if (httpsRequired && url.protocol !== 'https:') return refuse('must be https');
    const hostname = hostnameOf(url);
    const verdict = (isIP(hostname) === 0 ? judgeName : judge)(hostname, portOf(url));
    if (verdict.allowed) return { ok: true, url };
    return refuse(
      verdict.reason === 'port'
        ? `must not name port ${portOf(url)}, which webhooks are not sent to`
        : 'must name a host of the public internet',
    );
  }

  return { judge, checkUrl };
}

/** The host as sockets take it: an IPv6 address without its brackets. */
export function hostnameOf({ hostname }: URL): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}

/** The port of a connection, also if the URL leaves it out. */
export function portOf({ port, protocol }: URL): number {
  if (port !== '') return Number(port);
  return protocol === 'https:' ? 443 : 80;
}

function portVerdict(port: number): DestinationVerdict {
  return { allowed: false, reason: 'port', why: `port ${port}` };
}

/** This machine, by definition (RFC 6761 §6.3). */
export function isLocalhost(hostname: string): boolean {
  const name = hostname.endsWith('.') ? hostname.slice(0, -1) : hostname;
  return name === 'localhost' || name.endsWith('.localhost');
}

function refuse(why: string): UrlVerdict {
  return { ok: false, why };
}

type PortRange = { readonly first: number; readonly last: number };

/**
 * Ports that the Fetch standard blocks, because a server of another protocol could take a request for commands (state of 2025):
 * https://fetch.spec.whatwg.org/#bad-port
 */
export const blockedPorts: ReadonlySet<number> = new Set([
  ...[0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103],
  ...[
    104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514,
  ],
  ...[515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723],
  ...[2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080],
]);

/** Reads the entries of a checked list, such as `443` and `8000-8999`. */
export function readPortRanges(parts: readonly string[]): readonly PortRange[] {
  return parts.map((part) => {
    const [first = '', last = first] = part.split('-');
    return { first: Number(first), last: Number(last) };
  });
}

function permitsPort(ranges: readonly PortRange[], port: number): boolean {
  return !blockedPorts.has(port) && ranges.some(({ first, last }) => first <= port && port <= last);
}

// Judges whether an address is on the public internet. `::ffff:0:0/96` (mapped) and `64:ff9b::/96` (NAT64) are judged by the IPv4 address
// inside: on IPv6-only networks, DNS64 gives the latter for every IPv4 receiver. 6to4 and Teredo also carry an IPv4 address, but through
// arbitrary relays, and are refused. The policy has the exceptions.

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

type AddressJudgement =
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

function judgeParsed(given: Address): AddressJudgement {
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

// Recognises a destination that is a listener of this program, so that no event returns to the API that emitted it. A listener on the unspecified
// address (`0.0.0.0`, `::`) is on every address of this machine. Proxies and translators outside that lead back cannot be detected.

export type OwnListener = { readonly address: string; readonly port: number };

const loopbacks = ['127.0.0.0/8', '::1'].flatMap((text) => parseBlock(text) ?? []);

function listLocalAddresses(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((of) => (of ?? []).map(({ address }) => address));
}

/** True if one of the listeners receives what is sent to the address and port. */
function isOwnListener(
  { address, port }: { readonly address: Address; readonly port: number },
  listeners: readonly OwnListener[],
  localAddresses: () => readonly string[] = listLocalAddresses,
): boolean {
  const destination = unmapAddress(address);
  return listeners.some((listener) => {
    if (listener.port !== port) return false;
    const at = parseAddress(listener.address);
    if (at === undefined) return false;
    const own = unmapAddress(at);
    if (isSameAddress(own, destination)) return true;
    // A packet to the unspecified address goes to the loopback interface.
    if (isUnspecified(destination)) return isUnspecified(own) || isLoopback(own);
    return isUnspecified(own) && (isLoopback(destination) || isLocal(destination, localAddresses()));
  });
}

function isLocal(address: Address, local: readonly string[]): boolean {
  return local.some((text) => {
    const own = parseAddress(text);
    return own !== undefined && isSameAddress(unmapAddress(own), address);
  });
}

function isUnspecified({ bytes }: Address): boolean {
  return bytes.every((octet) => octet === 0);
}

function isLoopback(address: Address): boolean {
  return loopbacks.some((block) => contains(block, address));
}

type OwnListeners = {
  /** The origin that clients see, as far as it is known. A mounted program does not know its own; COMITY_PUBLIC_URL gives it. */
  readonly origin: () => string;
  readonly ownListeners: () => readonly OwnListener[];
  readonly listensAt: (url: string, listener: OwnListener) => void;
};

/** The listeners of this program, which open after what may not reach them is made. */
export function createOwnListeners({
  publicUrl,
  tlsCert,
  tlsPort,
  host,
  port,
}: Pick<Settings, 'publicUrl' | 'tlsCert' | 'tlsPort' | 'host' | 'port'>): OwnListeners {
  let listening = originOf(host, port, tlsCert !== undefined && tlsPort === undefined);
  const ownListeners: OwnListener[] = [];
  return {
    origin: () => (publicUrl === undefined ? listening : originOfUrl(publicUrl)),
    ownListeners: () => ownListeners,
    listensAt(url, own) {
      listening = url;
      ownListeners.push(own);
    },
  };
}

export function originOf(host: string, port: number, secure: boolean): string {
  return `${secure ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
