/**
 * Rules for the hosts of tunnels (§4.10): allowed and denied hosts, enforced or only reported. Names are compared as
 * requested, in lower case and without a final dot; the egress guard judges the addresses that they resolve to.
 *
 * A glob is a name (`api.example.com`: only that), `*.` and a name (`*.example.com`: every name below it, but not
 * itself), an address (`192.0.2.1`, `2001:db8::1`: only that) or `*` (everything, addresses too). Globs and hosts must
 * be canonical: config/tunnel.ts and the URL parser see to that.
 */
import { isDigitCode, isHexCode, isIpv4Address, parseIpv6Address } from '../http/syntax/uri.ts';

export type HostRules = {
  /** `report`: hosts that the rules would refuse are allowed and logged. */
  readonly mode: 'enforce' | 'report';
  /** Globs; null: every host. */
  readonly allow: readonly string[] | null;
  /** Globs; takes precedence over `allow`. */
  readonly deny: readonly string[];
  /** Name of the rules, for the log: `the list of the key`. */
  readonly name?: string | undefined;
};

/** `why` is for operators: it names the list, which a caller need not know. */
export type HostJudgement = { readonly allowed: true } | { readonly allowed: false; readonly why: string };

export type HostsJudgement =
  /** `reported`: objections of rules in the mode `report`. */
  | { readonly allowed: true; readonly reported: readonly string[] }
  | { readonly allowed: false; readonly why: string };

const allowed: HostJudgement = { allowed: true };
const allowedByAll: HostsJudgement = { allowed: true, reported: [] };

/** RFC 1035 §2.3.4, without the root. */
const hostCharactersMax = 253;
const labelCharactersMax = 63;

/** Judges a host by one set of rules, whatever its mode. @param host canonical, an IPv6 address without brackets */
export function judgeHost(rules: HostRules, host: string): HostJudgement {
  const { allow, deny, name = 'the list of hosts' } = rules;
  const denied = deny.find((glob) => matches(glob, host));
  if (denied !== undefined) return { allowed: false, why: `${name} denies ${denied}` };
  if (allow === null || allow.some((glob) => matches(glob, host))) return allowed;
  return { allowed: false, why: `${name} does not allow it` };
}

/** Judges a host by all rules: it must pass each of them, except those in the mode `report`. */
export function judgeHosts(lists: readonly HostRules[], host: string): HostsJudgement {
  const reported: string[] = [];
  for (const rules of lists) {
    const judged = judgeHost(rules, host);
    if (judged.allowed) continue;
    if (rules.mode === 'enforce') return judged;
    reported.push(judged.why);
  }
  return reported.length === 0 ? allowedByAll : { allowed: true, reported };
}

/** True for a glob with a canonical name. Any spelling of an IPv6 address passes, so make it canonical first. */
export function isHostGlob(text: string): boolean {
  if (text === '*') return true;
  if (text.startsWith('*.')) return isName(text.slice(2));
  return isName(text) || isAddress(text);
}

export function isAddress(host: string): boolean {
  return host.includes(':') ? parseIpv6Address(host) !== undefined : isIpv4Address(host);
}

function matches(glob: string, host: string): boolean {
  if (glob === host || glob === '*') return true;
  if (!glob.startsWith('*.')) return false;
  // The dot before the name must match too, and something must precede it.
  return host.length > glob.length - 1 && host.endsWith(glob.slice(1));
}

/** Labels of lower-case letters, digits, hyphens, and the underscores of service names. */
function isName(text: string): boolean {
  if (text === '' || text.length > hostCharactersMax) return false;
  const labels = text.split('.');
  return labels.every(isLabel) && !isNumber(labels.at(-1) ?? '');
}

function isLabel(label: string): boolean {
  if (label === '' || label.length > labelCharactersMax) return false;
  if (label.startsWith('-') || label.endsWith('-')) return false;
  for (let at = 0; at < label.length; at += 1) {
    const code = label.charCodeAt(at);
    const isLetter = code >= 0x61 && code <= 0x7a;
    if (!isLetter && !isDigitCode(code) && code !== 0x2d && code !== 0x5f) return false;
  }
  return true;
}

/** True if a last label makes the host an address or invalid (URL Standard, "ends in a number"). */
function isNumber(label: string): boolean {
  const isHex = label.startsWith('0x');
  for (let at = isHex ? 2 : 0; at < label.length; at += 1) {
    const code = label.charCodeAt(at);
    if (!(isHex ? isHexCode(code) : isDigitCode(code))) return false;
  }
  return true;
}
