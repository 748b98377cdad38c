/**
 * What the program may reach outside (§6.8), decided once for webhooks and tunnel: by address and port when a connection is opened, and by
 * URL as far as that can be said before any name is looked up. In this order: a listener of this program is never reached; an address of
 * the allow-list is, at any port that Fetch does not block; of the rest, public addresses are, at permitted ports.
 */
import { isIP } from 'node:net';
import { partsOf } from '../config/refuse-addresses.ts';
import { type Address, contains, parseAddress, parseBlock, unmapAddress } from './address.ts';
import { judgeParsed } from './judge-address.ts';
import { isOwnListener, listLocalAddresses, type OwnListener } from './own-listeners.ts';
import { blockedPorts, permitsPort, readPortRanges } from './port-ranges.ts';

export type EgressPolicyOptions = {
  /** Blocks that are let through, as in the setting `egressAllow`. */
  readonly egressAllow: string;
  /** Ports of public addresses, as in the setting `egressPorts`. */
  readonly egressPorts: string;
  /**
   * Ports are judged elsewhere, as those of the tunnel are, which speaks no HTTP to them that a server of another protocol could take for
   * commands: neither `egressPorts` nor the list of Fetch counts then.
   */
  readonly everyPort?: boolean;
  /** Where this program listens now. */
  readonly ownListeners: () => readonly OwnListener[];
  /** Default: those of this machine's interfaces. */
  readonly localAddresses?: () => readonly string[];
};

export type DestinationVerdict =
  | { readonly allowed: true }
  /** `why` is for the operator's log: it may name the network that the address lies in. */
  | { readonly allowed: false; readonly reason: 'address' | 'port' | 'own-listener'; readonly why: string };

export type UrlVerdict =
  | { readonly ok: true; readonly url: URL }
  /** `why`: a predicate for the owner of the endpoint, as in `must be an absolute http or https URL`. */
  | { readonly ok: false; readonly why: string };

export type EgressPolicy = {
  /** Judges one address as text, without brackets, at one port. */
  readonly judge: (address: string, port: number) => DestinationVerdict;
  /** Judges a URL before any lookup: what it answers with `ok` may still be refused when its name resolves. */
  readonly checkUrl: (text: string, options?: { readonly httpsRequired?: boolean }) => UrlVerdict;
};

/** Longest URL of a receiver. */
export const urlCharactersMax = 2048;

const absolute = /^https?:\/\/[^/?]/i;
// Tabs and line breaks, which a URL parser drops, and backslashes, which it takes for slashes and others do not.
const misleading = /[\u0000-\u0020\u007f\\]/;
const authority = /^[^/]*\/\/([^/?]*)/;
const allowedVerdict: DestinationVerdict = { allowed: true };

/** A policy of the settings, which must be good ones; throws for a block that is none. */
export function createEgressPolicy(options: EgressPolicyOptions): EgressPolicy {
  const allow = partsOf(options.egressAllow).map((text) => {
    const block = parseBlock(text);
    if (block === undefined) throw new Error(`"${text}" of egressAllow is no block of addresses`);
    return block;
  });
  const ranges = readPortRanges(partsOf(options.egressPorts));
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

  /** Names: the port counts unless an address of the allow-list may be behind it, and `localhost` is what RFC 6761 says it is. */
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

/** The port that a connection goes to, also where the URL leaves it out. */
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
