/**
 * The egress policy (§6.8) of webhooks and tunnels: by address and port when a connection is opened, and by URL as far as possible before
 * resolution. In this order: own listeners are refused; addresses of the allow-list are permitted at any port that Fetch does not block;
 * other public addresses are permitted at permitted ports.
 */
import { isIP } from 'node:net';
import { commaSeparated } from '../config/refusals.ts';
import { type Address, contains, parseAddress, parseBlock, unmapAddress } from './address.ts';
import { judgeParsed } from './judge-address.ts';
import { isOwnListener, listLocalAddresses, type OwnListener } from './own-listeners.ts';

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

export type UrlVerdict =
  | { readonly ok: true; readonly url: URL }
  /** `why`: a predicate for the owner of the endpoint, as in `must be an absolute http or https URL`. */
  | { readonly ok: false; readonly why: string };

export type EgressPolicy = {
  /** Judges one address as text, without brackets, at one port. */
  readonly judge: (address: string, port: number) => DestinationVerdict;
  /** Judges a URL before any lookup: one that is `ok` may still be refused when its name resolves. */
  readonly checkUrl: (text: string, options?: { readonly httpsRequired?: boolean }) => UrlVerdict;
};

export const urlCharactersMax = 2048;

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
