/**
 * Lists of hosts as people write them, in a configuration or for a key (§4.10): checks them and converts them to the canonical spelling of
 * model/host-rules.ts.
 */
import { isIPv6 } from 'node:net';
import { parseIpv6Address } from '../http/syntax/ip-address.ts';
import { type HostRules, isAddress, isHostGlob } from '../model/host-rules.ts';
import { isRecord, kindOf } from './inspection.ts';
import { suggestion } from './nearest.ts';

export type HostRulesDeclaration = {
  /** `report`: hosts that the lists would refuse are allowed and logged. Default `enforce`. */
  readonly mode?: 'enforce' | 'report';
  /** Allowed hosts: `api.example.com`, `*.example.com`, `192.0.2.1`, `*`. Absent: all. An empty list: none. */
  readonly allow?: readonly string[] | null;
  /** Refused hosts; takes precedence over `allow`. */
  readonly deny?: readonly string[];
};

/** Entries of one list: each is compared with the host of every tunnel. */
export const hostGlobsMax = 1000;
/** Longer than any name: up to four octets a character in other scripts, and `*.` before it. */
export const hostGlobCharactersMax = 1024;

export const hostRulesMembers = ['mode', 'allow', 'deny'] as const;

/** Characters that a host in a URL cannot contain, or that end the host. */
const foreign = /[\s\p{Cc}/?#@\\%:[\]<>^|*]/u;

/** The canonical spelling of a glob, such as `*.example.com` for `*.Example.COM.`; undefined for anything else. */
export function canonicalHostGlob(text: string): string | undefined {
  if (text === '*') return text;
  if (text.length > hostGlobCharactersMax) return undefined;
  if (!text.startsWith('*.')) return canonicalHost(text);
  const name = canonicalHost(text.slice(2));
  return name === undefined || isAddress(name) ? undefined : `*.${name}`;
}

function canonicalHost(text: string): string | undefined {
  const bare = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text;
  const groups = isIPv6(bare) ? parseIpv6Address(bare.toLowerCase()) : undefined;
  if (groups === undefined && (text === '' || foreign.test(text))) return undefined;
  const hostname = URL.parse(`http://${groups === undefined ? text : spellIpv6(groups)}`)?.hostname;
  if (hostname === undefined) return undefined;
  const unbracketed = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  const host = unbracketed.endsWith('.') ? unbracketed.slice(0, -1) : unbracketed;
  return isHostGlob(host) ? host : undefined;
}

/** The host of a URL for an address; for `::ffff:192.0.2.1` the IPv4 address inside, which leads to the same host (RFC 4291 §2.5.5.2). */
function spellIpv6(groups: readonly number[]): string {
  const [high = 0, low = 0] = groups.slice(6);
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) {
    return [high >> 8, high & 255, low >> 8, low & 255].join('.');
  }
  return `[${groups.map((group) => group.toString(16)).join(':')}]`;
}

/**
 * @param refuse receives the rest of a sentence whose subject is the list, as in `.allow must be a list`
 * @returns an unusable value after any refusal
 */
export function inspectHostRules(
  written: Readonly<Record<string, unknown>>,
  name: string,
  refuse: (predicate: string) => void,
): HostRules {
  const { mode = 'enforce', allow = null, deny = [] } = written;
  if (mode !== 'enforce' && mode !== 'report') refuse(`.mode must be enforce or report`);
  return {
    mode: mode === 'report' ? 'report' : 'enforce',
    allow: allow === null ? null : inspectGlobs(allow, '.allow', refuse),
    deny: inspectGlobs(deny, '.deny', refuse),
    name,
  };
}

export function inspectHostList(
  written: unknown,
  name: string,
  refuse: (predicate: string) => void,
): HostRules {
  if (!isRecord(written)) {
    refuse(` must be an object, not ${kindOf(written)}`);
    return { mode: 'enforce', allow: [], deny: [], name };
  }
  for (const member of Object.keys(written)) {
    if (!hostRulesMembers.some((known) => known === member)) {
      refuse(` has no member "${member}"${suggestion(member, hostRulesMembers)}`);
    }
  }
  return inspectHostRules(written, name, refuse);
}

function inspectGlobs(
  written: unknown,
  place: string,
  refuse: (predicate: string) => void,
): readonly string[] {
  if (!Array.isArray(written)) {
    refuse(`${place} must be a list of hosts, not ${kindOf(written)}`);
    return [];
  }
  if (written.length > hostGlobsMax) {
    refuse(`${place} may hold ${hostGlobsMax} hosts at most`);
    return [];
  }
  return written.flatMap((each: unknown, at) => {
    const glob = typeof each === 'string' ? canonicalHostGlob(each) : undefined;
    if (glob !== undefined) return [glob];
    refuse(`${place}[${at}] must be ${hostGlobMeaning}`);
    return [];
  });
}

export const hostGlobMeaning =
  'a host such as api.example.com, *.example.com or 192.0.2.1, without scheme, port and path, or *';
