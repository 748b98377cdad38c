/**
 * Lists of hosts as people write them, in a configuration or for a key (§4.10): checks them and converts them to the canonical spelling of
 * model/host-rules.ts.
 */
import { isIPv6 } from 'node:net';
import { type TObject, Type } from 'typebox';
import { parseIpv6Address } from '../http/syntax/uri.ts';
import { type HostRules, isAddress, isHostGlob } from '../model/host-rules.ts';
import { choiceOf, listInParts, type SoundParts, textThat } from './shape.ts';

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

export const hostGlobMeaning =
  'a host such as api.example.com, *.example.com or 192.0.2.1, without scheme, port and path, or *';

const glob = textThat((written) => canonicalHostGlob(written) !== undefined, {
  must: `must be ${hostGlobMeaning}`,
});
const hosts = { maxItems: hostGlobsMax, must: 'must be a list of hosts', holds: 'hosts' };

/** The members of a declared list, alone or beside others. */
export const hostRulesMembers = {
  mode: Type.Optional(choiceOf(['enforce', 'report'], { must: 'must be enforce or report' })),
  allow: Type.Optional(listInParts(glob, { ...hosts, orNull: true })),
  deny: Type.Optional(listInParts(glob, hosts)),
};

/** @param name of the list in the log */
export function resolveHostRules(
  { mode = 'enforce', allow, deny = [] }: SoundParts<TObject<typeof hostRulesMembers>>,
  name: string,
): HostRules {
  const globs = (list: readonly (string | undefined)[]): readonly string[] =>
    list.flatMap((glob) => canonicalHostGlob(glob ?? '') ?? []);
  return { mode, allow: allow === undefined ? null : globs(allow), deny: globs(deny), name };
}
