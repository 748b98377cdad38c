/**
 * Hosts that tunnels and forwarded requests may connect to, by caller (§4.10), as a configuration declares them. Up to three lists apply to a
 * caller, and a host must pass each of them:
 *
 * - `everybody`, which no rule overrides;
 * - the list of the first rule that names the caller, or `others` if none does. `others: { allow: [] }` closes the tunnel for everyone else;
 * - those of the API key that is used, and of the keys that it was created with.
 *
 * Only the first matching rule applies, so that each rule can be read by itself: joining several raises the question whether a join widens or
 * narrows, which people get wrong. Put narrow rules before wide ones.
 */
import { isIPv6 } from 'node:net';
import { type TObject, Type } from 'typebox';
import { parseIpv6Address } from '../http/syntax/uri.ts';
import { type HostRules, isAddress, isHostGlob } from '../model/host-rules.ts';
import { idPrefixes } from '../model/id.ts';
import type { Authenticated, Known } from '../model/principal.ts';
import {
  choiceOf,
  inspectShape,
  listInParts,
  type Reporter,
  type SoundParts,
  textThat,
  textUpTo,
} from './shape.ts';

export type TunnelDeclaration = {
  /** Applies to every caller. Default: every host. */
  readonly everybody?: HostRulesDeclaration;
  /** The first rule that names the caller applies. */
  readonly rules?: readonly TunnelRuleDeclaration[];
  /** Applies to callers that no rule names. Default: every host. */
  readonly others?: HostRulesDeclaration;
};

/** A rule names a caller by any of the three. */
type TunnelRuleDeclaration = HostRulesDeclaration & {
  readonly roles?: readonly string[];
  /** Ids of principals: `usr_...` of an account, `key_...` of a key without an account, `administrator`, `{issuer}|{sub}` of issuers. */
  readonly users?: readonly string[];
  /** Ids of API keys, `key_...`; also names the keys that were created with one. */
  readonly keys?: readonly string[];
};

type TunnelRule = {
  readonly roles: ReadonlySet<string>;
  readonly users: ReadonlySet<string>;
  readonly keys: ReadonlySet<string>;
  readonly hosts: HostRules;
};

export type TunnelAccess = {
  /** Undefined: every host. */
  readonly everybody: HostRules | undefined;
  readonly rules: readonly TunnelRule[];
  readonly others: HostRules | undefined;
};

/** All lists that apply to a caller. */
type HostLists = (principal: Authenticated, known: Known) => readonly HostRules[];

export function createHostLists({ everybody, rules, others }: TunnelAccess): HostLists {
  return (principal, known) => {
    const own = rules.find((rule) => names(rule, principal, known))?.hosts ?? others;
    const lists: HostRules[] = [];
    if (everybody !== undefined) lists.push(everybody);
    if (own !== undefined) lists.push(own);
    if (known.hosts !== undefined) lists.push(...known.hosts);
    return lists;
  };
}

function names({ roles, users, keys }: TunnelRule, principal: Authenticated, known: Known): boolean {
  if (users.has(principal.id)) return true;
  if (known.key !== null && keys.size > 0) {
    if (keys.has(known.key) || known.makers?.some((maker) => keys.has(maker))) return true;
  }
  for (const role of principal.roles) if (roles.has(role)) return true;
  return false;
}

// Lists of hosts as people write them, in a configuration or for a key (§4.10): checks them and converts them to the canonical spelling of
// model/host-rules.ts.

type HostRulesDeclaration = {
  /** `report`: hosts that the lists would refuse are allowed and logged. Default `enforce`. */
  readonly mode?: 'enforce' | 'report';
  /** Allowed hosts: `api.example.com`, `*.example.com`, `192.0.2.1`, `*`. Absent: all. An empty list: none. */
  readonly allow?: readonly string[] | null;
  /** Refused hosts; takes precedence over `allow`. */
  readonly deny?: readonly string[];
};

/** Entries of one list: each is compared with the host of every tunnel. */
const hostGlobsMax = 1000;
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
const hostRulesMembers = {
  mode: Type.Optional(choiceOf(['enforce', 'report'], { must: 'must be enforce or report' })),
  allow: Type.Optional(listInParts(glob, { ...hosts, orNull: true })),
  deny: Type.Optional(listInParts(glob, hosts)),
};

/** @param name of the list in the log */
function resolveHostRules(
  { mode = 'enforce', allow, deny = [] }: SoundParts<TObject<typeof hostRulesMembers>>,
  name: string,
): HostRules {
  const globs = (list: readonly (string | undefined)[]): readonly string[] =>
    list.flatMap((glob) => canonicalHostGlob(glob ?? '') ?? []);
  return { mode, allow: allow === undefined ? null : globs(allow), deny: globs(deny), name };
}

// Rules by caller.

const rulesMax = 1000;
const namedMax = 1000;
const nameCharactersMax = 600;

const named = Type.Optional(
  Type.Array(textUpTo(nameCharactersMax), {
    maxItems: namedMax,
    orNull: true,
    must: `must be a list of ${namedMax} texts at most`,
  }),
);
const ruleShape = Type.Object({ ...hostRulesMembers, roles: named, users: named, keys: named });
const listShape = Type.Optional(Type.Object(hostRulesMembers));
const tunnelShape = Type.Object({
  everybody: listShape,
  rules: Type.Optional(listInParts(Type.Unknown(), { maxItems: rulesMax })),
  others: listShape,
});

/**
 * Checks `tunnel` of a configuration. A mistake here opens or closes the tunnel for everyone, so nothing is guessed.
 * @param written undefined: every host for everybody
 * @param mistakes receives a sentence for each mistake; the result is then unusable
 */
export function inspectTunnel(written: unknown, mistakes: string[]): TunnelAccess {
  const report: Reporter = (sentence) => void mistakes.push(sentence);
  const sound = written === undefined ? {} : inspectShape(tunnelShape, written, 'tunnel', report);
  const { everybody, rules = [], others } = sound ?? {};
  const listed = (list: typeof everybody, name: string): HostRules | undefined =>
    list === undefined ? undefined : resolveHostRules(list, name);
  return {
    everybody: listed(everybody, 'tunnel.everybody'),
    rules: rules.flatMap((each, at) => {
      const place = `tunnel.rules[${at}]`;
      const rule = inspectShape(ruleShape, each, place, report);
      return rule === undefined ? [] : [resolveTunnelRule(rule, place, report)];
    }),
    others: listed(others, 'tunnel.others'),
  };
}

function resolveTunnelRule(rule: SoundParts<typeof ruleShape>, place: string, report: Reporter): TunnelRule {
  const { roles = [], users = [], keys = [] } = rule;
  for (const key of new Set(keys)) {
    if (!key.startsWith(idPrefixes.key))
      report(`${place}.keys holds "${key}", which is not the id of a key (${idPrefixes.key}...)`);
  }
  for (const user of new Set(users)) {
    // An e-mail address is not an id and would match no principal; ids of issuers may contain one after their bar.
    if (user.includes('@') && !user.includes('|'))
      report(`${place}.users holds "${user}", which is not the id of a principal (usr_...)`);
  }
  if (roles.length + users.length + keys.length === 0) {
    report(
      `${place} must name at least one role, user or key; rules for all other callers belong in tunnel.others`,
    );
  }
  return {
    roles: new Set(roles),
    users: new Set(users),
    keys: new Set(keys),
    hosts: resolveHostRules(rule, place),
  };
}
